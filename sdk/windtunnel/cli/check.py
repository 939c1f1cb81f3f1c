"""`windtunnel check SCRIPT`: what can be said about a script before it runs.

The SDK's own checks (entry point, packing, limits, image), and a reading of the script's text: does it
parse, are the modules it imports beside it. What only shows when it runs, this cannot see, and says so.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from windtunnel.cli.script_options import add_script_arguments, estimator_of, hyperparameters_of
from windtunnel.errors import SourceError
from windtunnel.local_paths import reading


def add_parser(commands: Any) -> None:
    """Register the command."""
    check = commands.add_parser(
        "check",
        help="check a script and its arguments without starting anything",
        description="Check a script and its arguments as `run` would, without starting anything.",
    )
    add_script_arguments(check)
    check.set_defaults(func=_check)


def _check(arguments: argparse.Namespace) -> int:
    from windtunnel.request.training_request import SourceUpload

    estimator = estimator_of(arguments, hyperparameters=hyperparameters_of(arguments))
    request = estimator.request()
    trees = [upload.tree for upload in request.uploads if isinstance(upload, SourceUpload)]
    scripts = [tree.entry_point for tree in trees if tree.entry_point.suffix == ".py"]
    packed = arguments.source_dir is not None
    notes = [note for script in scripts for note in notes_on(script, packed=packed)]
    if packed and estimator.session.local and not arguments.image_uri:
        notes += notes_on_requirements(Path(arguments.source_dir, "requirements.txt"))
    print(f"ok: the request for {request.name} is valid ({len(request.uploads)} upload(s)).")
    print(f"ok: image {estimator.training_image_uri()}")
    for note in notes:
        print(f"note: {note}")
    print("Not checked: what the script does when it runs.")
    return 0


def notes_on(script: Path, *, packed: bool) -> list[str]:
    """Remarks on a Python script; raises `SourceError` when it does not parse.

    ``packed``: the script's directory goes into the container too, not the script alone.
    """
    with reading(script, SourceError):
        source = script.read_bytes()
    try:
        tree = ast.parse(source, str(script))  # bytes: the script may state its encoding
    except SyntaxError as error:
        raise SourceError(f"{script}, line {error.lineno}: {error.msg}. It cannot be imported.") from error
    except (ValueError, RecursionError) as error:  # null bytes; nested too deeply
        raise SourceError(f"{script}: {error}. It cannot be imported.") from error
    modules = imported_modules(tree)
    notes = []
    if not packed:
        beside = sorted(name for name in modules if is_module(script.parent, name))
        if beside:
            notes.append(
                f"imports {', '.join(beside)} from its own directory, which does not go into the container "
                "unless --source-dir names it (or --dependency the file)."
            )
    if not modules & {"torch_xla", "torch_neuronx", "optimum", "accelerate", "transformers"}:
        notes.append(
            "imports nothing that uses a NeuronCore (torch_xla, ...): it would train on the instance's CPU."
        )
    for name, where in cuda_uses(tree):
        notes.append(f"line {where}: {name} does not exist on Trainium; use torch_xla's device.")
    return notes


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


def imported_modules(tree: ast.AST) -> set[str]:
    """Top-level names of all modules imported anywhere, relative imports left out."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


def is_module(folder: Path, name: str) -> bool:
    """Whether ``import name`` would find a module in this directory."""
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def cuda_uses(tree: ast.AST) -> list[tuple[str, int]]:
    """Calls of ``.cuda()`` and mentions of a ``"cuda"`` device, with their lines."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            found.append((".cuda()", node.lineno))
        elif isinstance(node, ast.Constant) and re.match("cuda(:|$)", str(node.value)):
            found.append((f"device {node.value!r}", node.lineno))
    return found
