"""Compiles a library of custom operators: compute functions, which a device would run, and shape functions for XLA.

Both become one library for the host. NEURON_LIBRARY gives only the name of a compute function, so its signature is
read from the compiled code.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from neuron_sim.errors import CustomOperatorError

_OURS = Path(__file__).with_name("include")
_SIGNATURE = re.compile(
    r"^[0-9a-f]+ T (\w+)\(((?:(?:at::Tensor|c10::Scalar)(?: const&)?|double|long|, )*)\)$", re.M
)
"""Functions with arguments of the documented types, as `nm` shows them: AWS's developer guide, "Kernel Function"."""
_DEFINE = "inline bool neuron_sim::define(torch::Library& library, const char* op, const std::string& kernel)"
PROBLEM = "neuron_library_problem"
"""The function of the built library that tells why it cannot be registered."""


def library(
    name: str,
    compute_srcs: Sequence[str],
    shape_srcs: Sequence[str],
    folder: Path,
    extra_cflags: Sequence[str] = (),
) -> Path:
    """Build ``lib<name>.so`` in the folder, if its sources have changed. Blocks while another process builds it.

    Raises:
        CustomOperatorError: a source is missing, or the compiler refuses it.
    """
    sources = [Path(source) for source in (*compute_srcs, *shape_srcs)]
    for source in sources:
        if not source.is_file():
            raise CustomOperatorError(f"custom_op.load: {source} is no file. Give paths of C++ sources.")
    if not (compute_srcs and shape_srcs):
        raise CustomOperatorError("custom_op.load: compute_srcs and shape_srcs need a C++ source each.")
    made_of = [
        *map(os.fsencode, (*extra_cflags, torch.__version__)),
        *(each.read_bytes() for each in sources),
    ]
    key = hashlib.sha256(b"\0".join(made_of)).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    target, stamp = folder / f"lib{name}.so", folder / f".lib{name}.so.sha256"
    with stamp.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # every rank of a job comes here at once
        if not target.is_file() or not stamp.is_file() or stamp.read_text() != key:
            with tempfile.TemporaryDirectory(dir=folder) as work:
                count = len(compute_srcs)
                _build(sources[:count], sources[count:], Path(work), extra_cflags).replace(target)
            stamp.write_text(key)
    return target


def _build(compute: Sequence[Path], shape: Sequence[Path], work: Path, extra: Sequence[str]) -> Path:
    objects = [_compile(source, work / f"compute{number}.o", extra) for number, source in enumerate(compute)]
    defined = _run("nm", "--demangle", "--defined-only", *map(str, objects))
    kernels = work / "kernels.h"
    kernels.write_text(_kernels(dict(_SIGNATURE.findall(defined))))
    extra = [*extra, "-include", str(kernels)]
    objects += [_compile(source, work / f"shape{number}.o", extra) for number, source in enumerate(shape)]
    built = work / "built.so"
    libraries = [f"-L{Path(torch.__file__).parent / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    _run("g++", "-shared", *map(str, objects), *libraries, "-o", str(built))
    return built


def _kernels(signatures: dict[str, str]) -> str:
    """Code that registers a compute function by its name."""
    declared = [f"at::Tensor {name}({arguments});" for name, arguments in signatures.items()]
    found = [
        f'  if (kernel == "{name}") return library.def(op, torch::dispatch(c10::DispatchKey::CPU, &{name})), true;'
        for name in signatures
    ]
    told = f'extern "C" __attribute__((weak)) const char* {PROBLEM}() {{ return neuron_sim::problem().c_str(); }}'
    parts = [
        "#include <torchneuron/register.h>",
        *declared,
        f"{_DEFINE} {{",
        *found,
        "  return false;",
        "}",
        told,
    ]
    return "\n".join([*parts, ""])


def _compile(source: Path, target: Path, extra: Sequence[str]) -> Path:
    torch_headers = Path(torch.__file__).parent / "include"
    folders = [_OURS, torch_headers, torch_headers / "torch" / "csrc" / "api" / "include"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    # -fno-gnu-unique: else all libraries that a process loads share the variables of inline functions.
    options = [
        "-c",
        "-O1",
        "-fPIC",
        "-std=c++17",
        "-fno-gnu-unique",
        abi,
        *(f"-I{folder}" for folder in folders),
        *extra,
    ]
    _run("g++", *options, str(source), "-o", str(target))
    return target


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CustomOperatorError(
            f"{command[0]} cannot make a library for the host of {command[-3]}:\n{done.stderr.strip()[-4000:]}\n"
            "Standard tensor accessors work here; streaming and TCM accessors and get_dst_tensor are the device's."
        )
    return done.stdout
