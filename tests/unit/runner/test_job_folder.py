"""A job's folder that is removed while its tasks, on a node that nobody reaches, still write into it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel_local.runner.slurm.job_folder import JobFolder

_HOST = "algo-1"
_WRITES = """
import os
print("begins", flush=True)
while True:
    try:
        os.close(os.open("exit.json", os.O_CREAT | os.O_WRONLY))
    except FileNotFoundError:
        break
"""


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A process that writes there until the folder is gone, as a task's supervisor may once."""
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", _WRITES], cwd=folder, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def test_the_next_attempt_sees_nothing_of_what_the_last_still_writes(tmp_path: Path) -> None:
    """Else it would count as ended, with the last one's exit code: half of the time, without the care taken."""
    for number in range(10):
        folder = JobFolder(tmp_path / f"job-{number}")
        folder.make([_HOST])
        with writing(folder.host(_HOST)):
            folder.remove()
            folder.make([_HOST])
            assert list(folder.host(_HOST).iterdir()) == []
        folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_never_made_is_removed(tmp_path: Path) -> None:
    """By a server that sweeps up."""
    JobFolder(tmp_path / "none").remove()
    assert list(tmp_path.iterdir()) == []
