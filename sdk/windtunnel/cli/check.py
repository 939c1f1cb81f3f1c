"""`windtunnel check SCRIPT`: check a script without running it.

Makes the SDK's own checks (entry point, packing, limits, image), and reads the script's text (`porting`). Mistakes that
only appear at run time are not found; the output says so. With findings the exit code is 1, as of linters. Notes do
not change it: they depend on facts that the text does not tell. With --diff it is 0: a pipe into `patch` must not fail.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from windtunnel.cli.script_options import (
    add_script_arguments,
    estimator_of,
    hyperparameters_of,
    only_rehearsed,
)
from windtunnel.errors import SourceError
from windtunnel.porting import flags, image_lacks
from windtunnel.porting.finding import Finding
from windtunnel.porting.patch import diff
from windtunnel.porting.program import left_behind, modules_of, of_its_imports, read_program
from windtunnel.porting.script import Script
from windtunnel.rendering.format import many


def add_parser(commands: Any) -> None:
    """Register the command."""
    check = commands.add_parser(
        "check",
        help="check a script and its arguments without starting anything",
        description="Check a script and its arguments as `run` would, without starting anything. "
        "Exit code: 0 no findings, 1 findings, 2 the script or an argument is wrong; with --diff always 0, or 2.",
    )
    add_script_arguments(check)
    check.add_argument(
        "--diff",
        action="store_true",
        help="print the sure edits of a port from CUDA, for `patch -p1`; notes on the rest go to stderr",
    )
    check.set_defaults(func=_check)


def _check(arguments: argparse.Namespace) -> int:
    try:
        return _checked(arguments)
    except RecursionError as error:  # Python parses deeper nesting than the code that walks the tree can
        raise SourceError(
            f"{arguments.script}: an expression is nested too deeply to be read. Split it."
        ) from error


def _checked(arguments: argparse.Namespace) -> int:
    from windtunnel.request.training_request import SourceUpload

    hyperparameters = hyperparameters_of(arguments)
    estimator = estimator_of(arguments, hyperparameters=hyperparameters)
    request = estimator.request()
    trees = [upload.tree for upload in request.uploads if isinstance(upload, SourceUpload)]
    scripts = {Script(one.entry_point): one.source_dir for one in trees if one.entry_point.suffix == ".py"}
    packed = arguments.source_dir is not None
    requirements = Path(arguments.source_dir, "requirements.txt") if packed else None
    in_our_image = estimator.session.local and not arguments.image_uri
    version, several = arguments.framework_version, not arguments.no_torch_distributed
    findings: dict[Script, list[Finding]] = {}
    modules: list[Script] = []
    whole = True
    notes: list[str] = []
    for script, source_dir in scripts.items():
        modules, whole, notes = modules_of(script, source_dir)
        program = [script, *modules]
        sent = [script.path, *map(Path, arguments.dependency)]
        folders = [source_dir or script.path.parent, *(one.resolve().parent for one in sent)]
        absent = image_lacks.absent(program, folders, requirements) if in_our_image else {}
        findings |= read_program(program, version, several=several, whole=whole, absent=absent)
        findings[script] += flags.refused(script, hyperparameters)
        findings[script] += flags.misread(script, hyperparameters)
    if arguments.diff:
        return _diff(findings, version)
    notes += only_rehearsed(estimator)
    for script in scripts:
        notes += [] if packed else left_behind(script, arguments.dependency)
        notes += of_its_imports(script, modules)
    if requirements and in_our_image:
        notes += notes_on_requirements(requirements)
    for line in (*_lines(findings), *(f"note: {note}" for note in notes)):
        print(line)
    print(f"The request for {request.name} is valid: {len(request.uploads)} upload(s).")
    print(f"Image: {estimator.training_image_uri()}")
    if modules and whole:
        print(f"Also read, as the script imports them: {', '.join(module.name for module in modules)}.")
    rest = "" if whole else f", and the more than {len(modules)} files beside it that it imports"
    print(f"Not checked: what the script does when it runs{rest}.")
    told = [finding for found in findings.values() for finding in found]
    sure = [finding for finding in told if finding.sure]
    return _summary(sure, notes=len(notes) + len(told) - len(sure))


def _lines(findings: Mapping[Script, list[Finding]]) -> list[str]:
    """Each finding in the form of linters, so that editors can open its place."""
    return [f"{script.name}:{finding}" for script, found in findings.items() for finding in found]


def _summary(findings: list[Finding], notes: int) -> int:
    """Print the last line; returns the exit code that tells a CI job the same."""
    if not findings:
        also = f"; {many(notes, 'note')} above" if notes else ""
        print(f"ok: no findings{also}.")
        return 0
    edits = sum(bool(finding.edits) for finding in findings)
    port = f"; with --diff, check prints the edits of {edits}" if edits else ""
    print(f"{many(len(findings), 'finding')}{port}.")
    return 1


def _diff(findings: Mapping[Script, list[Finding]], version: str) -> int:
    """Print only the diff on stdout, so that it can be piped into `patch -p1`; other findings on stderr."""
    edits = "".join(diff(script, found, version) for script, found in findings.items())
    print(edits, end="")
    if not edits:
        print("no edit of a port is sure, or none is left.", file=sys.stderr)
    if linked := [
        script.name for script in findings if f"--- a/{script.name}\n" in edits and _is_linked(script)
    ]:
        print(
            f"symbolic links: {', '.join(linked)}. GNU patch follows them with --follow-symlinks.",
            file=sys.stderr,
        )
    left = {script: [finding for finding in found if not finding.edits] for script, found in findings.items()}
    for line in _lines(left):
        print(line, file=sys.stderr)
    return 0


def _is_linked(script: Script) -> bool:
    """Whether the script, or a folder of its path below the current directory, is a symbolic link."""
    return Path(script.name).resolve() != Path.cwd().resolve() / script.name


def notes_on_requirements(file: Path) -> list[str]:
    """Notes on packages that requirements.txt pins to another version than the training image has."""
    try:
        asked: dict[str, str] = dict(_PIN.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return []
    versions = _image_versions() if asked else {}
    return [
        (
            f"requirements.txt asks for {name} {version}, but the training image has {versions[_same(name)]}. "
            "If pip cannot install it on the image's Python, or if it would break the image's libraries, the "
            "image's version is used and the log says so."
        )
        for name, version in asked.items()
        if _same(versions.get(_same(name), version)) != _same(version)
    ]


_PIN = re.compile(r"^\s*([\w.-]+)(?:\[[^\]]*\])?\s*==\s*([\w.+!]+)(?![\w.+!]*\*)", re.MULTILINE)


def _same(word: str) -> str:
    """A distribution's name or a version in one normal spelling, for comparison."""
    return image_lacks.spelled(re.sub(r"(\.0)+$", "", word))


def _image_versions() -> dict[str, str]:
    command = [sys.executable, "-m", "windtunnel_local", "image", "contents", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    return {_same(name): version for name, version in found.items()}
