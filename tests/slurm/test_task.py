"""What runs on a node, without a cluster: the task of a host, and whether it is one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from windtunnel_local.runner.slurm.job_folder import JobFolder

pytestmark = pytest.mark.slurm

HOST = "algo-2"
NOBODY = "65534"


@pytest.fixture
def folder() -> Iterator[JobFolder]:
    """Of a job with two hosts, whose second says who it is; open to all users."""
    with tempfile.TemporaryDirectory() as path:
        folder = JobFolder(Path(path) / "job")
        folder.make(["algo-1", HOST])
        place = folder.host(HOST)
        (place / "names").write_text(f"127.0.0.9 algo-1\n127.0.0.8 {HOST}\n")
        orders = {
            "command": ["/bin/sh", "-c", "id -u; hostname; getent hosts algo-1"],
            "environment": {"PATH": os.environ["PATH"], "WINDTUNNEL_PROCESS": "token of this test"},
            "banner": "begin",
            "shared": True,
            "names": True,
        }
        (place / "orders.json").write_text(json.dumps(orders))
        for each in (Path(path), folder.path, *folder.path.rglob("*")):
            each.chmod(0o777)
        yield folder


def run_task(folder: JobFolder, job: str, user: str) -> str:
    """The output of the second host's task of a Slurm job."""
    task = ["/usr/bin/python3", "-I", f"{folder.path}/task.py", str(folder.path)]
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *task]
    subprocess.run([*command, job, "1", "node1", "127.0.0.1", "algo-1", HOST], check=True, timeout=60)
    output = folder.host(HOST) / "output.log"
    return output.read_text() if output.exists() else ""


@pytest.mark.parametrize("user", ["0", NOBODY])
def test_a_host_has_its_name_and_knows_the_others(folder: JobFolder, user: str) -> None:
    """Whoever submits the job: it runs as that user."""
    lines = run_task(folder, "1", user).splitlines()
    assert lines[:3] == ["begin", user, HOST]
    assert lines[3].split() == ["127.0.0.9", "algo-1"]
    (ended,) = folder.read(HOST, "exit.json")
    assert ended is not None
    assert ended["exit_code"] == 0


def test_of_two_submissions_of_a_job_one_runs(folder: JobFolder) -> None:
    """The first whose tasks come; those of the other leave."""
    assert run_task(folder, "7", "0")
    for name in ("output.log", "run.json", "exit.json"):
        (folder.host(HOST) / name).unlink()
    assert run_task(folder, "8", "0") == ""
    assert folder.number == 7
