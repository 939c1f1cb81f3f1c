"""Tests of the simulator, run inside the training image (`make test-container`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
# Cores enough for every test; a test that needs another instance names it.
INSTANCE = {"WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.32xlarge"}
LAUNCHER = [sys.executable, "-m", "neuron_sim.launcher.torchrun"]


@dataclass
class Launch:
    """One finished torchrun: its exit code, its output, and the JSON lines its workers printed."""

    code: int
    output: str

    @property
    def said(self) -> list[dict[str, Any]]:
        """What the workers said with `say`, in the order of their ranks."""
        lines = (line.partition("SAY ")[2] for line in self.output.splitlines() if "SAY " in line)
        return sorted((json.loads(line) for line in lines), key=lambda entry: entry["rank"])


@pytest.fixture
def torchrun(tmp_path: Path) -> Callable[..., Launch]:
    """Run a script of `scripts/` on simulated cores. Each worker's output stays apart from the others'."""

    def run(script: str, *arguments: str, workers: int = 2, check: bool = True, **environment: str) -> Launch:
        path = Path(script) if Path(script).is_absolute() else SCRIPTS / script
        command = [*LAUNCHER, "--nnodes", "1", "--nproc_per_node", str(workers), str(path), *arguments]
        finished = subprocess.run(
            command,
            env={**os.environ, **INSTANCE, "SAY_TO": str(tmp_path / "said"), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        output = finished.stdout
        for said in sorted(tmp_path.glob("said.*")):
            output += said.read_text()
            said.unlink()
        launch = Launch(finished.returncode, output)
        if check:
            assert launch.code == 0, launch.output
        return launch

    return run
