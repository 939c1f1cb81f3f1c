"""`windtunnel check SCRIPT`: what can be said about a script before it runs.

The SDK's own checks (entry point, packing, limits, image), and a reading of the script's text (`porting`).
What only shows when it runs, this cannot see, and says so.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from windtunnel.cli.script_options import add_script_arguments, estimator_of, hyperparameters_of
from windtunnel.porting.finding import Finding
from windtunnel.porting.patch import diff
from windtunnel.porting.reading import of_its_imports, read
from windtunnel.porting.script import Script


def add_parser(commands: Any) -> None:
    """Register the command."""
    check = commands.add_parser(
        "check",
        help="check a script and its arguments without starting anything",
        description="Check a script and its arguments as `run` would, without starting anything.",
    )
    add_script_arguments(check)
    check.add_argument(
        "--diff",
        action="store_true",
        help="print what is sure of a port from CUDA, for `patch -p1`, and notes on the rest to stderr",
    )
    check.set_defaults(func=_check)


def _check(arguments: argparse.Namespace) -> int:
    from windtunnel.request.training_request import SourceUpload

    estimator = estimator_of(arguments, hyperparameters=hyperparameters_of(arguments))
    request = estimator.request()
    trees = [upload.tree for upload in request.uploads if isinstance(upload, SourceUpload)]
    scripts = [Script(tree.entry_point) for tree in trees if tree.entry_point.suffix == ".py"]
    if arguments.diff:
        return _diff(scripts, arguments)
    packed = arguments.source_dir is not None
    notes = [note for script in scripts for note in of_its_imports(script, packed=packed)]
    findings = [finding for script in scripts for finding in _findings(script, arguments)]
    notes += map(str, findings)
    if packed and estimator.session.local and not arguments.image_uri:
        notes += notes_on_requirements(Path(arguments.source_dir, "requirements.txt"))
    print(f"ok: the request for {request.name} is valid ({len(request.uploads)} upload(s)).")
    print(f"ok: image {estimator.training_image_uri()}")
    for note in notes:
        print(f"note: {note}")
    if any(finding.edits for finding in findings):
        print("To port it: windtunnel check with --diff prints the edits that are sure.")
    print("Not checked: what the script does when it runs.")
    return 0


def _findings(script: Script, arguments: argparse.Namespace) -> list[Finding]:
    return read(script, arguments.framework_version, several=not arguments.no_torch_distributed)


def _diff(scripts: list[Script], arguments: argparse.Namespace) -> int:
    """The diff on stdout alone, so that it can be piped into `patch -p1`."""
    several = not arguments.no_torch_distributed
    edits = "".join(diff(script, arguments.framework_version, several=several) for script in scripts)
    print(edits, end="")
    if not edits:
        print("no edit of a port is sure, or none is left.", file=sys.stderr)
    for finding in (finding for script in scripts for finding in _findings(script, arguments)):
        if not finding.edits:
            print(f"note: {finding}", file=sys.stderr)
    return 0


def notes_on_requirements(file: Path) -> list[str]:
    """Remarks on pins of what the training image has in another version."""
    try:
        asked: dict[str, str] = dict(_PIN.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return []
    versions = _image_versions() if asked else {}
    return [
        f"requirements.txt asks for {name} {version}, the training image has {versions[_same(name)]}. If pip cannot "
        "install it on the image's Python, or that would break the image's libraries, the image's stands in and "
        "the log says so."
        for name, version in asked.items()
        if _same(versions.get(_same(name), version)) != _same(version)
    ]


_PIN = re.compile(r"^\s*([\w.-]+)(?:\[[^\]]*\])?\s*==\s*([\w.+!]+)(?![\w.+!]*\*)", re.MULTILINE)


def _same(word: str) -> str:
    """What two spellings of a distribution's name, or of a version, have in common."""
    return re.sub(r"[-_.]+", "-", re.sub(r"(\.0)+$", "", word)).lower()


def _image_versions() -> dict[str, str]:
    command = [sys.executable, "-m", "windtunnel_local", "image", "contents", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    return {_same(name): version for name, version in found.items()}
