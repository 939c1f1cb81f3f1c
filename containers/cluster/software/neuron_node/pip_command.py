"""`pip` of ~/aws_neuron_venv_pytorch: the real pip, except for `pip install -r FILE`.

A FILE is installed in the way of a job's requirements.txt: unchanged if an index has what it asks for, else with the
image's versions in place of its pins. So AWS's samples install on a cluster without a network: the image has all
that they ask for, in some version.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_WITHIN = "NEURON_NODE_WITHIN_PIP"
"""Variable that is set for the pip process that this module starts."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run pip; returns its exit code. Blocks."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parsed = requirements_of(arguments)
    if parsed is not None and _WITHIN not in os.environ:
        return _install(*parsed)
    from pip._internal.cli.main import main as pip

    return int(pip(arguments))


def requirements_of(arguments: Sequence[str]) -> tuple[Path, list[str]] | None:
    """The file of ``install -r FILE`` and the other words; None for another command, no file, or several.

    None also if the file names other files (-r, -c), relative to its own folder: a copy could not be used.
    """
    if "install" not in arguments:
        return None
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-r", "--requirement", action="append", type=Path)
    given, others = parser.parse_known_args(list(arguments))
    files: list[Path] = given.requirement or []
    if len(files) != 1 or not files[0].is_file():
        return None
    if re.search(
        r"^\s*(-r|-c|--requirement|--constraint)\b", files[0].read_text(errors="replace"), re.MULTILINE
    ):
        return None
    return files[0], others


def _install(file: Path, others: list[str]) -> int:
    from sagemaker_training.errors import InstallRequirementsError  # type: ignore[import-not-found]

    from neuron_sim.launcher.requirements import with_stand_ins

    def install(folder: str, capture_error: bool) -> None:  # noqa: ARG001 - as the toolkit's
        command = [sys.executable, "-m", "pip", *others, "-r", f"{folder}/requirements.txt"]
        code = subprocess.run(command, check=False).returncode
        if code:
            raise InstallRequirementsError(command, return_code=code)

    os.environ[_WITHIN] = "1"
    # A copy, because lines are removed while pip runs, and other processes may read the file in the shared home.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "requirements.txt").write_bytes(file.read_bytes())
        try:
            with_stand_ins(install)(folder, False)
        except InstallRequirementsError as error:
            return int(error.return_code)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
