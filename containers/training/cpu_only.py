"""Make torch's CUDA build work without the CUDA libraries. Run once at the image's build, after torch is installed.

Where no CPU build of torch is available, its CUDA build asks for 5 GB of NVIDIA's libraries and triton, and cannot
be imported without the libraries. Here one small library takes their names (`cuda_absent.c`), and empty packages with
their names, marked ``+absent``, keep pip from fetching them with a job's requirements. A CPU build is left unchanged.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from pretend import SITE, pretend

LIBRARIES = SITE / "torch" / "lib"
STAND_IN = "libcuda_absent.so"
SOURCE = Path(__file__).with_name("cuda_absent.c")
SUMMARY = "Not in this image, which is for CPUs and simulated NeuronCores; only the name is, for pip."
# How to recognise NVIDIA's symbols among those that torch's libraries leave undefined: by version or by prefix.
VERSIONS = ("libcu", "NVSHMEM")
PREFIXES = ("cuFile", "curand", "cusparseLt", "nccl", "nvshmem")


def main() -> None:
    """Replace the CUDA packages that torch asks for, if any, and print how many they are."""
    required = "\n".join(metadata.requires("torch") or ())
    absent = dict(re.findall(r"^(nvidia-[\w-]+|triton)==([\w.]+)", required, re.M))
    if not absent:
        return
    for name, version in absent.items():
        pretend(name, f"{version}+absent", SUMMARY)
    build(absent)
    sys.stdout.write(
        f"Left out: {len(absent)} packages of torch's CUDA build; `pip list` shows them as +absent.\n"
    )


def build(absent: dict[str, str]) -> None:
    """Build the library, and link to it by every name that torch's own libraries load."""
    # libcaffe2_nvrtc is loaded only with a GPU, and needs the driver, which is in no package.
    users = [str(file) for file in LIBRARIES.glob("lib*.so") if file.name != "libcaffe2_nvrtc.so"]
    undefined = output("nm", "--dynamic", "--undefined-only", "--with-symbol-versions", *users)
    asked = dict(re.findall(r" U (\w+)@?(\S*)$", undefined, re.M))
    names = {n: v for n, v in asked.items() if v.startswith(VERSIONS) or n.startswith(PREFIXES)}
    code = ["int refuse(const char *name), no_driver(void);"]
    for name, version in names.items():
        # Functions of libcudart return the error of a machine without a driver, which torch raises in Python.
        answer = "no_driver()" if version.startswith("libcudart") else f'refuse("{name}")'
        code.append(f"__attribute__((weak)) int {name}(void) {{ return {answer}; }}")
    nodes = [
        f"{version} {{ {'; '.join(n for n, v in names.items() if v == version)}; }};"
        for version in sorted(set(names.values()) - {""})
    ]
    built_for = [
        f"-D{lib.upper()}_VERSION={number(absent[f'nvidia-{lib}-cu12'])}" for lib in ("cudnn", "nccl")
    ]
    with tempfile.TemporaryDirectory() as folder:
        refused, versions = Path(folder, "refused.c"), Path(folder, "versions")
        refused.write_text("\n".join(code) + "\n")
        versions.write_text("\n".join(nodes) + "\n")
        target = [f"-Wl,--version-script={versions}", "-o", str(LIBRARIES / STAND_IN)]
        output(
            "gcc", "-shared", "-fPIC", "-Os", "-fno-builtin", *built_for, str(SOURCE), str(refused), *target
        )
    for library in set(re.findall(r"\[(lib(?:cu|nv|nccl)[^]]+)]", output("readelf", "--dynamic", *users))):
        (LIBRARIES / library).symlink_to(STAND_IN)


def number(version: str) -> int:
    """A version as the number that cuDNN and NCCL use: 9.10.2.21 is 91002."""
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return major * 10_000 + minor * 100 + patch


def output(*command: str) -> str:
    """Run a command, and return its standard output."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
