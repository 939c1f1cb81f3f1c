"""Installs a script's requirements.txt on a Python, and beside libraries, that it was not written for.

AWS's toolkit installs it. If pip cannot, or if that would break installed packages, the pins that ask for another
version of an installed package are left out, provided that this helps: the installed version stands in, and the log
says so. The log also names packages that break all the same, and hosts that pip cannot reach (`unreached`).
The simulator's own packages (`_OURS`) are never replaced: the real ones need a real device. Nor is torch
(`_ONE_VERSION`): what needs torch, as torchaudio does, comes in a version for the one that is there. The device's
compiler (`_OF_THE_DEVICE`), which would have nothing to compile here, is left out.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from sagemaker_training.errors import InstallRequirementsError  # type: ignore[import-not-found]

from neuron_sim import settings
from neuron_sim.launcher import unreached

Install = Callable[[str, bool], None]
"""The toolkit's function. It takes the folder of requirements.txt, and whether its error contains pip's output."""

_OURS = ("torch-neuronx", "libneuronxla")
"""Packages that the simulator stands in for, under their names. AWS's index has newer versions of them."""
_OF_THE_DEVICE = ("neuronx-cc", "neuronx-cc-stubs", "neuronx-hwm")
"""The compiler comes from AWS's index alone, weighs a gigabyte, and would replace numpy with an older version."""
_CANNOT = ("pip cannot install it",)
_LOG = "windtunnel-pip-"
"""What the name of pip's log begins with, if it is ours."""
_ONE_VERSION = ("torch", "torch-xla")
"""torch_xla and the simulator need one minor version of both, which their metadata does not say."""
_UNSAID = {"datasets": (SpecifierSet("<2.14.7"), "pyarrow", SpecifierSet("<21"))}
"""Requirements that a package's metadata omits: datasets imports pyarrow's PyExtensionType."""
_OF_NUMPY_1 = SpecifierSet("<2.21")
"""Versions of datasets that raise instead of giving tensors where numpy is 2; in a loader's thread that ends training
silently. They are installed all the same, since many scripts need a datasets below 3.
"""
_MAKES_A_GROUP = Version("4.26")
"""From this transformers on, `import transformers.training_args` makes a process group (xla) of torchrun's workers."""


@dataclass(frozen=True)
class Pin:
    """A line of requirements.txt that asks for another version of an installed package."""

    line: str
    asked: str
    installed: str
    """Name and version."""


def with_stand_ins(install: Install) -> Install:
    """Wrap the toolkit's function: installed versions stand in for pins that cannot be had."""

    def install_requirements(path: str, capture_error: bool = False) -> None:
        def as_it_is() -> None:
            with _constrained(_ONE_VERSION):
                install(path, capture_error)

        before = _versions()
        with _constrained(_OURS), _log():
            try:
                if settings.strict_requirements():
                    as_it_is()
                else:
                    _install_without_compiler(as_it_is, Path(path, "requirements.txt"))
                _say_what_broke(before)
            except InstallRequirementsError as error:
                error.output = "\n".join(unreached.without_warnings(error.output or ""))
                if hosts := _unreached():
                    said = unreached.advice(hosts)
                    error.output = f"{said}\n{error.output}"
                else:
                    said = (
                        f"Windtunnel: where pip names {' or '.join((*_OURS, *_ONE_VERSION))} above: simulated "
                        "NeuronCores need the version of it that is here, and no other is installed."
                    )
                print(said, flush=True)
                raise

    return install_requirements


def _install_without_compiler(install: Callable[[], None], file: Path) -> None:
    compilers = dict(_compilers(_read(file)))
    if not compilers:
        return _install_with_stand_ins(install, file)
    print(f"Windtunnel: {', '.join(compilers.values())} is left out: the compiler is simulated.", flush=True)
    with _without(file, compilers):
        return _install_with_stand_ins(install, file)


def _install_with_stand_ins(install: Callable[[], None], file: Path) -> None:
    pins = list(pins_of(_read(file)))
    if not pins:
        return install()
    left_out = {pin.line for pin in pins}
    with _cache():
        why = _obstacles(file)
        if why == _CANNOT and unreached.are_named(_unreached(), _lines(_read(file))):
            return install()
        if why not in ((), _CANNOT):
            with _without(file, left_out):
                mends_nothing = set(why) <= set(_obstacles(file))
            why = () if mends_nothing else why
        if not why:
            try:
                return install()
            except InstallRequirementsError:
                why = _CANNOT
    _say(why, pins)
    os.environ[settings.OLDER_TRANSFORMERS] = next((one.asked for one in pins if _makes_no_group(one)), "")
    try:
        with _without(file, left_out):
            return install()
    except InstallRequirementsError:
        return install()  # its error is about what was asked for


def pins_of(text: str) -> Iterator[Pin]:
    """The lines of a requirements.txt that exclude the installed version of their package."""
    for line in _lines(text):
        try:
            asked = _requirement(line)
            installed = metadata.distribution(asked.name)
        except (InvalidRequirement, metadata.PackageNotFoundError):
            continue  # options, paths and URLs; packages that are not installed
        if _applies(asked) and not asked.specifier.contains(installed.version, prereleases=True):
            yield Pin(line, str(asked), f"{installed.name} {installed.version}")


def _compilers(text: str) -> Iterator[tuple[str, str]]:
    """The lines that ask for the device's compiler: each line, and its requirement."""
    for line in _lines(text):
        with suppress(InvalidRequirement):
            asked = _requirement(line)
            if canonicalize_name(asked.name) in _OF_THE_DEVICE:
                yield line, str(asked)


def _requirement(line: str) -> Requirement:
    return Requirement(re.sub(r"(^|\s)(#| --).*", "", line))


def broken_by(planned: Mapping[str, str]) -> Iterator[str]:
    """Which installed packages new versions would break, and why. ``planned``: the new versions by package name."""
    for installed in metadata.distributions():
        name = canonicalize_name(installed.name)
        if name in planned:
            if name in _ONE_VERSION and _minor(planned[name]) != _minor(installed.version):
                yield f"simulated NeuronCores are for {installed.name} {installed.version}, not {planned[name]}"
            if name in _UNSAID:
                versions, other, needed = _UNSAID[name]
                has = _version_of(other, planned)
                if versions.contains(planned[name]) and not needed.contains(has):
                    yield f"{installed.name} {planned[name]} needs {other}{needed}, not {has}"
            continue
        for text in installed.requires or ():
            need = Requirement(text)
            new = planned.get(canonicalize_name(need.name))
            if new and _applies(need) and not need.specifier.contains(new, prereleases=True):
                yield f"{installed.name} {installed.version} needs {need.name}{need.specifier}, not {new}"


def _version_of(name: str, planned: Mapping[str, str]) -> str:
    """The planned or installed version of a package; without one, "0", which fits any upper bound."""
    there = next(iter(metadata.distributions(name=name)), None)
    return planned.get(name) or (there.version if there else "0")


def _makes_no_group(pin: Pin) -> bool:
    """Whether the pin asks for a transformers older than `_MAKES_A_GROUP`."""
    asked = Requirement(pin.asked)
    versions = [Version(one.version.removesuffix(".*")) for one in asked.specifier]
    return canonicalize_name(asked.name) == "transformers" and max(versions) < _MAKES_A_GROUP


def _minor(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def _obstacles(file: Path) -> tuple[str, ...]:
    """Reasons against installing requirements.txt, as far as pip's dry run shows them."""
    with tempfile.NamedTemporaryFile() as report:
        plan = ["install", "--dry-run", "--quiet", "--report", report.name, "-r", file.name]
        if subprocess.run([sys.executable, "-m", "pip", *plan], cwd=file.parent, check=False).returncode:
            return _CANNOT
        new = [item["metadata"] for item in json.load(report)["install"]]
    return tuple(broken_by({canonicalize_name(item["name"]): item["version"] for item in new}))


@contextmanager
def _cache() -> Iterator[None]:
    """Let pip keep what its dry run downloads, so that the installation need not download it again."""
    # If PIP_NO_CACHE_DIR is set, even to "0", pip keeps nothing.
    with tempfile.TemporaryDirectory() as folder, _variables(PIP_NO_CACHE_DIR=None, PIP_CACHE_DIR=folder):
        yield


@contextmanager
def _log() -> Iterator[None]:
    """Let pip log all that it does, for `_unreached`. A log that the job itself asks for stays the job's alone."""
    if os.environ.get("PIP_LOG"):
        yield
        return
    with tempfile.NamedTemporaryFile(prefix=_LOG) as log, _variables(PIP_LOG=log.name):
        yield


def _unreached() -> Mapping[str, Sequence[str]]:
    log = Path(os.environ["PIP_LOG"])
    return unreached.hosts(log.read_text(errors="replace")) if log.name.startswith(_LOG) else {}


@contextmanager
def _constrained(names: Iterable[str]) -> Iterator[None]:
    """Constrain pip to packages as they are installed: what needs another version of them cannot be installed."""
    found = (next(iter(metadata.distributions(name=name)), None) for name in names)
    with tempfile.NamedTemporaryFile("w", suffix="-kept-by-windtunnel.txt") as kept:
        kept.writelines(f"{one.name}=={one.version}\n" for one in found if one is not None)
        kept.flush()
        given = os.environ.get("PIP_CONSTRAINT", "")
        with _variables(PIP_CONSTRAINT=f"{given} {kept.name}".strip()):
            yield


@contextmanager
def _variables(**given: str | None) -> Iterator[None]:
    """Set environment variables for the duration of the block; None unsets one."""
    before = {name: os.environ.get(name) for name in given}
    _set(given)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        os.environ.update({name: value} if value is not None else {})


def _say(why: Sequence[str], pins: Sequence[Pin]) -> None:
    python = ".".join(map(str, sys.version_info[:2]))
    print(f"Windtunnel: requirements.txt is not installed as it is on Python {python}: {'; '.join(why)}.")
    for pin in pins:
        print(f"Windtunnel: {pin.asked} is left out; {pin.installed}, which is installed, stands in.")
    print(
        "Windtunnel: on AWS the versions asked for run. "
        "WINDTUNNEL_STRICT_REQUIREMENTS=1 installs the file as it is, or fails.",
        flush=True,
    )


def _versions() -> dict[str, str]:
    importlib.invalidate_caches()
    return {canonicalize_name(one.name): one.version for one in metadata.distributions()}


def _say_what_broke(before: Mapping[str, str]) -> None:
    """Print which packages the installation has broken. ``before``: all versions before pip ran."""
    now = _versions()
    new = dict(now.items() - before.items())
    for text in half_working(now, new):
        print(f"Windtunnel: {text}.", flush=True)
    broken = list(broken_by(new))
    if broken:
        print(
            f"Windtunnel: what requirements.txt has brought breaks what the image has: {'; '.join(broken)}. An import "
            "may fail for it. Name versions that fit in requirements.txt too: of what broke, or of what is built "
            "for it, as pyarrow for numpy.",
            flush=True,
        )


def half_working(versions: Mapping[str, str], new: Collection[str]) -> Iterator[str]:
    """A sentence for each newly installed package of which only a part works."""
    has, beside = (versions.get(name, "0") for name in ("datasets", "numpy"))
    if "datasets" in new and _OF_NUMPY_1.contains(has) and Version(beside) >= Version("2"):
        yield (
            f"datasets {has} is for numpy below 2, and numpy {beside} is there: with_format('torch') and its like "
            "raise. Name datasets==2.21.0 in requirements.txt"
        )


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _lines(text: str) -> list[str]:
    """One line per requirement, continuation lines joined as pip does it."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines()]


@contextmanager
def _without(file: Path, lines: Collection[str]) -> Iterator[None]:
    """Remove these lines from the file for the duration of the block."""
    given = _read(file)
    _write(file, "\n".join(line for line in _lines(given) if line not in lines))
    try:
        yield
    finally:
        _write(file, given)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig", errors="surrogateescape")


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
