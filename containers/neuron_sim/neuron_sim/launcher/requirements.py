"""A script's requirements.txt, on a Python and beside libraries that it was not written for.

It is installed as AWS's toolkit does it. Where pip cannot, or where that would break what is installed, its
pins of what is installed in another version are left out, if that mends anything: the installed version stands
in, and the log says so. What breaks all the same, it names.
What plays the device (`_OURS`) is never replaced, whoever asks for it: real ones need a real device. The device's
compiler (`_OF_THE_DEVICE`), for which nothing compiles here, is left out.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

Install = Callable[[str, bool], None]
"""The toolkit's function: the folder of requirements.txt, and whether its error holds what pip said."""

_OURS = ("torch-neuronx", "libneuronxla")
"""Packages in whose place the simulator stands. pip counts it as them, and AWS's index has newer ones."""
_OF_THE_DEVICE = ("neuronx-cc", "neuronx-cc-stubs", "neuronx-hwm")
"""It comes from AWS's index alone, weighs a gigabyte, and would put an older numpy below all that is installed."""
_CANNOT = ("pip cannot install it",)
_ONE_VERSION = ("torch", "torch-xla")
"""torch_xla and the simulator are for one minor version of both, and do not state it as a requirement."""
_UNSAID = {"datasets": (SpecifierSet("<2.14.7"), "pyarrow", SpecifierSet("<21"))}
"""What some versions of a package need without saying so: datasets imports pyarrow's PyExtensionType."""
_OF_NUMPY_1 = SpecifierSet("<2.21")
"""Of datasets: they give no tensors where numpy is newer, and a loader's thread that raises ends training in silence.
All the same many a script needs one below 3, so that they are not left out.
"""
_MAKES_A_GROUP = Version("4.26")
"""Of transformers: from here on `import transformers.training_args` makes torchrun's processes an XLA group."""


@dataclass(frozen=True)
class Pin:
    """A line that asks for another version of what is installed."""

    line: str
    asked: str
    installed: str
    """Name and version."""


def with_stand_ins(install: Install) -> Install:
    """The toolkit's function, with installed versions in the place of pins that cannot be had."""

    def install_requirements(path: str, capture_error: bool = False) -> None:
        before = _versions()
        with _constrained():
            try:
                install_constrained(path, capture_error)
                _say_what_broke(before)
            except InstallRequirementsError:
                print(
                    f"Windtunnel: where pip names {' or '.join(_OURS)} above: simulated NeuronCores stand in for it, "
                    "and no other version of it is installed.",
                    flush=True,
                )
                raise

    def install_constrained(path: str, capture_error: bool) -> None:
        file = Path(path, "requirements.txt")
        compilers = {} if settings.strict_requirements() else dict(_compilers(_read(file)))
        if not compilers:
            return install_what_there_is(path, capture_error)
        print(
            f"Windtunnel: {', '.join(compilers.values())} is left out: the compiler is simulated.",
            flush=True,
        )
        with _without(file, compilers):
            return install_what_there_is(path, capture_error)

    def install_what_there_is(path: str, capture_error: bool) -> None:
        file = Path(path, "requirements.txt")
        pins = list(pins_of(_read(file)))
        if settings.strict_requirements() or not pins:
            return install(path, capture_error)
        left_out = {pin.line for pin in pins}
        with _cache():
            why = _obstacles(path)
            if why not in ((), _CANNOT):
                with _without(file, left_out):
                    mends_nothing = set(why) <= set(_obstacles(path))
                why = () if mends_nothing else why
            if not why:
                try:
                    return install(path, capture_error)
                except InstallRequirementsError:
                    why = _CANNOT
        _say(why, pins)
        os.environ[settings.OLDER_TRANSFORMERS] = next(
            (one.asked for one in pins if _makes_no_group(one)), ""
        )
        try:
            with _without(file, left_out):
                return install(path, capture_error)
        except InstallRequirementsError:
            return install(path, capture_error)  # its error is about what was asked for

    return install_requirements


def pins_of(text: str) -> Iterator[Pin]:
    """The lines of a requirements.txt that exclude the version of what is installed."""
    for line in _lines(text):
        try:
            asked = _requirement(line)
            installed = metadata.distribution(asked.name)
        except (InvalidRequirement, metadata.PackageNotFoundError):
            continue  # options, paths and URLs; what the image does not have
        if _applies(asked) and not asked.specifier.contains(installed.version, prereleases=True):
            yield Pin(line, str(asked), f"{installed.name} {installed.version}")


def _compilers(text: str) -> Iterator[tuple[str, str]]:
    """The lines that ask for the device's compiler, with what they ask for."""
    for line in _lines(text):
        with suppress(InvalidRequirement):
            asked = _requirement(line)
            if canonicalize_name(asked.name) in _OF_THE_DEVICE:
                yield line, str(asked)


def _requirement(line: str) -> Requirement:
    return Requirement(re.sub(r"(^|\s)(#| --).*", "", line))


def broken_by(planned: Mapping[str, str]) -> Iterator[str]:
    """What is installed, stays, and would no longer find what it requires. ``planned``: new versions by name."""
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
    """Of a package that is there or planned, else none that could be in the way."""
    there = next(iter(metadata.distributions(name=name)), None)
    return planned.get(name) or (there.version if there else "0")


def _makes_no_group(pin: Pin) -> bool:
    """Whether it asks for a transformers of before `_MAKES_A_GROUP`."""
    asked = Requirement(pin.asked)
    versions = [Version(one.version.removesuffix(".*")) for one in asked.specifier]
    return canonicalize_name(asked.name) == "transformers" and max(versions) < _MAKES_A_GROUP


def _minor(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def _obstacles(path: str) -> tuple[str, ...]:
    """Why requirements.txt had better not be installed, as far as pip knows before it builds."""
    with tempfile.NamedTemporaryFile() as report:
        plan = ["install", "--dry-run", "--quiet", "--report", report.name, "-r", "requirements.txt"]
        if subprocess.run([sys.executable, "-m", "pip", *plan], cwd=path, check=False).returncode:
            return _CANNOT
        new = [item["metadata"] for item in json.load(report)["install"]]
    return tuple(broken_by({canonicalize_name(item["name"]): item["version"] for item in new}))


@contextmanager
def _cache() -> Iterator[None]:
    """What pip fetches to see what it would do, it need not fetch again."""
    # Whatever PIP_NO_CACHE_DIR is, "0" too, pip keeps nothing.
    with tempfile.TemporaryDirectory() as folder, _variables(PIP_NO_CACHE_DIR=None, PIP_CACHE_DIR=folder):
        yield


@contextmanager
def _constrained() -> Iterator[None]:
    """pip keeps what plays the device: a package that needs another version of it cannot be installed."""
    ours = (next(iter(metadata.distributions(name=name)), None) for name in _OURS)
    with tempfile.NamedTemporaryFile("w", suffix="-kept-by-windtunnel.txt") as kept:
        kept.writelines(f"{one.name}=={one.version}\n" for one in ours if one is not None)
        kept.flush()
        given = os.environ.get("PIP_CONSTRAINT", "")
        with _variables(PIP_CONSTRAINT=f"{given} {kept.name}".strip()):
            yield


@contextmanager
def _variables(**given: str | None) -> Iterator[None]:
    """Variables of the environment, for a while. None: it is not there."""
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
    """What no longer finds what it requires, whatever was left out. ``before``: all versions before pip ran."""
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
    """What was brought, and raises where some of it is used."""
    has, beside = (versions.get(name, "0") for name in ("datasets", "numpy"))
    if "datasets" in new and _OF_NUMPY_1.contains(has) and Version(beside) >= Version("2"):
        yield (
            f"datasets {has} is for numpy below 2, and numpy {beside} is there: with_format('torch') and its like "
            "raise. Name datasets==2.21.0 in requirements.txt"
        )


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _lines(text: str) -> list[str]:
    """A line each requirement, as pip joins them."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines()]


@contextmanager
def _without(file: Path, lines: Collection[str]) -> Iterator[None]:
    """For a while these lines are not in it."""
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
