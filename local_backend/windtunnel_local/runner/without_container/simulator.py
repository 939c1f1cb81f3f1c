"""The NeuronCore simulator outside of an image: its sources on PYTHONPATH, its commands on PATH."""

from __future__ import annotations

import re
import shlex
from pathlib import Path


def console_scripts(pyproject: str) -> dict[str, tuple[str, str]]:
    """``[project.scripts]`` of our own pyproject.toml as {command: (module, function)}.

    Not a TOML parser: Python 3.10 has none, and one table of plain strings needs none.
    """
    table = re.search(r"^\[project\.scripts\]\n(.*?)(?=^\[|\Z)", pyproject, re.MULTILINE | re.DOTALL)
    lines = table.group(1) if table else ""
    found = re.findall(r'^"?([\w.-]+)"?\s*=\s*"([\w.]+):(\w+)"', lines, re.MULTILINE)
    return {command: (module, function) for command, module, function in found}


def install_commands(simulator: Path, python: Path, folder: Path) -> None:
    """Write the simulator's commands into ``folder``, to be run by ``python``. Idempotent."""
    folder.mkdir(parents=True, exist_ok=True)
    for command, (module, function) in console_scripts((simulator / "pyproject.toml").read_text()).items():
        code = (
            f"import sys; sys.argv[0] = {command!r}; from {module} import {function}; sys.exit({function}())"
        )
        script = folder / command
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} -c {shlex.quote(code)} "$@"\n')
        script.chmod(0o755)
