"""The operators of a custom library on tensors of the device: each call ends the pending graph and runs on the host."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from neuron_sim.counters import script_lines, script_time
from neuron_sim.custom_ops import build
from neuron_sim.device.transfer import to_device, to_host
from neuron_sim.diagnostics import advice, findings
from neuron_sim.errors import CustomOperatorError, NotSimulatedError

_MOST_OPERATORS = 10
"""The most functions of a library: AWS Neuron documentation, "Neuron Custom C++ Operators Developer Guide"."""

_libraries: list[torch.library.Library] = []
_loaded: dict[Path, int] = {}
"""Libraries that were opened, and the inode of each: a new build has another."""
_calls: Counter[tuple[str, str]] = Counter()


def load(
    name: str,
    compute_srcs: Sequence[str],
    shape_srcs: Sequence[str],
    build_directory: str | None = None,
    multicore: bool = False,
    verbose: bool = False,
    extra_cflags: Sequence[str] = (),
) -> None:
    """`custom_op.load`: build ``lib<name>.so`` in the folder, and load it. Blocks.

    Raises:
        CustomOperatorError: the sources cannot be compiled, or define more operators than a library may have.
        NotSimulatedError: ``multicore`` asks for several cores of the GpSimd engine.
    """
    if multicore:
        raise NotSimulatedError(
            "custom_op.load(multicore=True)", "Use standard tensor accessors and one core."
        )
    folder = Path(build_directory) if build_directory else Path.cwd()
    load_library(str(build.library(name, compute_srcs, shape_srcs, folder, extra_cflags)))


def load_library(path: str) -> None:
    """`custom_op.load_library`: load what `load` has built. Idempotent."""
    before = _defined()
    place = Path(path).absolute()
    try:
        problem = getattr(ctypes.CDLL(str(place)), build.PROBLEM)
        made = place.stat().st_ino
    except (OSError, AttributeError) as error:
        raise CustomOperatorError(
            f"custom_op.load_library: {path} cannot be loaded ({error}). Build it here, with custom_op.load."
        ) from error
    if _loaded.setdefault(place, made) != made:
        raise CustomOperatorError(
            f"{path} was built anew after this process had loaded it, and a process keeps what it has loaded. "
            "Start the script, or the notebook's kernel, again."
        )
    problem.restype = ctypes.c_char_p
    if reason := problem().decode().strip():
        raise CustomOperatorError(f"{path}: {reason}")
    names = sorted(_defined() - before)
    if len(names) > _MOST_OPERATORS:
        raise CustomOperatorError(
            f"{path} defines {len(names)} operators: a library can have {_MOST_OPERATORS} on the device."
        )
    for name in names:
        namespace, _, operator = name.partition("::")
        library = torch.library.Library(namespace, "IMPL")
        operators = getattr(torch.ops, namespace)
        library.impl(operator, _on_meta(getattr(operators, f"shape_of_{operator}")), "Meta")
        library.impl(operator, _on_device(name, getattr(operators, operator)), "XLA")
        _libraries.append(library)


def _defined() -> set[str]:
    return set(torch._C._dispatch_get_registrations_for_dispatch_key("CPU"))


def _on_meta(shape: Any) -> Callable[..., torch.Tensor]:
    # A shape function's result is on the CPU.
    return lambda *given: shape(*given).to("meta")


def _on_device(name: str, operator: Any) -> Callable[..., torch.Tensor]:
    def run(*given: Any) -> torch.Tensor:
        line = script_lines.calling_line()
        _calls[name, line] += 1
        with script_time.aside():
            tensors = [value for value in given if isinstance(value, torch.Tensor)]
            if elsewhere := [str(tensor.device) for tensor in tensors if tensor.device.type != "xla"]:
                raise CustomOperatorError(
                    f"{name}: a tensor is on {elsewhere[0]}, another on the device. Move all there: "
                    "tensor.to(torch_xla.device())."
                )
            shape = operator(*(_as(value, lambda tensor: tensor.to("meta")) for value in given))
            on_host = iter(to_host(tensors))
            result = operator(*(_as(value, lambda _: next(on_host)) for value in given))
            if (result.shape, result.dtype) != (shape.shape, shape.dtype):
                raise CustomOperatorError(
                    f"{name}: its compute function gives {result.dtype} of {list(result.shape)}, its shape function "
                    f"says {shape.dtype} of {list(shape.shape)}. The device takes the latter for granted."
                )
            findings.note(advice.custom_operator(name, line, _calls[name, line]))
            return to_device(result, tensors[0])

    return run


def _as(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return change(value) if isinstance(value, torch.Tensor) else value
