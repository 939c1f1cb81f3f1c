"""kill -9 of the store at every step that an operation takes in the file system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.objects.crashing import OUTCOMES


def test_a_kill_at_any_step_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Whole, with nothing left over after the next start, and what was not answered can be asked again."""
    path = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.objects.crashing", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = dict(line.split() for line in done.stdout.splitlines())
    assert steps.keys() == OUTCOMES.keys()
    assert min(map(int, steps.values())) > 4, "so many steps has the shortest"
