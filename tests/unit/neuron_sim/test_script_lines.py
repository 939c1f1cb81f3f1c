"""Whose a file is: the script's, a library's, torch's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SIMULATOR = Path(__file__).resolve().parents[3] / "containers" / "neuron_sim"
ASK = """
import sys
from neuron_sim.counters import script_lines
for name in sys.argv[1:]:
    print(script_lines.is_users(name), script_lines.is_torchs(name), script_lines.library_file(name))
"""


@pytest.mark.parametrize("below", ["lib/python3/site-packages", "user/site-packages"])
def test_packages_of_each_environment_on_the_path_are_libraries(tmp_path: Path, below: str) -> None:
    """A user's environment lies on top of the image's, whose torch is not the user's own code."""
    packages = tmp_path / below
    files = [packages / "torch/nn/x.py", packages / "transformers/x.py", tmp_path / "train.py"]
    done = subprocess.run(
        [sys.executable, "-c", ASK, *map(str, files)],
        env={"PYTHONPATH": f"{packages}:{SIMULATOR}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["False True ", "False False transformers/x.py", "True False "]
