"""What Slurm's commands print, as the runner reads it."""

from __future__ import annotations

import sys
from pathlib import Path

from windtunnel_local.runner.slurm.commands import Slurm, SlurmJob
from windtunnel_local.runner.without_container.interpreter import Interpreter

_SAID = """\
7|RUNNING|windtunnel:a|node1|None
8|RUNNING|two
lines|node2|None
9_1|PENDING||| Priority
10|PENDING|||Resources
"""


def test_the_users_other_jobs_are_passed_over(tmp_path: Path) -> None:
    """A comment of two lines, which is not the runner's, ended every job of the backend; an array's are none either."""
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\nprintf '%s' '{_SAID}'\n")
    squeue.chmod(0o755)
    slurm = Slurm(Interpreter(Path(sys.executable), {"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    assert slurm.jobs() == [
        SlurmJob(7, "RUNNING", "windtunnel:a", "node1", "None"),
        SlurmJob(10, "PENDING", "", "", "Resources"),
    ]
