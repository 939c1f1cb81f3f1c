"""Workers that another than torchrun starts are cores of one job too: Ray Train's, and those of a script's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import FORKED, SCRIPTS, records

LIKE_RAYS = """
import threading

class ThreadRunner:
    def run(self, target):
        def run_target():
            self.failed = 1
            try:
                target()
                self.failed = 0
            except BaseException as error:
                print("to Ray it failed:", repr(error), flush=True)

        self.thread = threading.Thread(target=run_target, daemon=True)
        self.thread.start()
"""
"""What of Ray's class the simulator meets."""


def by_ray(rank: int) -> dict[str, str]:
    """What Ray 2.60 tells a worker: a run id and a core of its own, and no count of restarts."""
    return {
        "TORCHELASTIC_RUN_ID": f"id of {rank}",
        "NEURON_RT_VISIBLE_CORES": str(1 - rank),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1.0",
    }


def by_neurons_variables(rank: int) -> dict[str, str]:
    """What a script that starts workers itself, say by mpirun, tells the Neuron plug-in."""
    return {
        "NEURON_PJRT_PROCESSES_NUM_DEVICES": "1,1",
        "NEURON_PJRT_PROCESS_INDEX": str(rank),
        "NEURON_RT_VISIBLE_CORES": str(1 - rank),
    }


@pytest.fixture
def run(tmp_path: Path):
    """Two workers of a host, each in a shell of its own: exit codes and outputs."""
    folder = tmp_path / "like" / "ray" / "train" / "v2" / "_internal" / "execution" / "worker_group"
    folder.mkdir(parents=True)
    (folder / "thread_runner.py").write_text(LIKE_RAYS)

    def start(given: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
        script = [*FORKED, str(SCRIPTS / "by_ray.py"), str(tmp_path / "like"), *arguments]
        known = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29123",
            "WINDTUNNEL_COUNTERS_DIR": str(tmp_path / "counters"),
            "WINDTUNNEL_COLLECTIVE_TIMEOUT_SECONDS": "60",
        }
        return subprocess.Popen(
            ["sh", "-c", '"$@"; exit $?', "sh", *script],
            env={**os.environ, **known, **given},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def both(*arguments: str, told=by_ray, **environment: str) -> list[tuple[int, str]]:
        workers = [start({**told(rank), **environment}, *arguments) for rank in (0, 1)]
        outputs = [worker.communicate(timeout=600)[0] for worker in workers]
        return [(worker.returncode, output) for worker, output in zip(workers, outputs, strict=True)]

    return both


@pytest.mark.parametrize("told", [by_ray, by_neurons_variables])
def test_two_workers_are_one_group_on_cores_of_their_own(run, tmp_path, told):
    """However they are told who they are. The end is counted and told although the process is killed."""
    for rank, (code, output) in enumerate(run(told=told)):
        assert code == 0, output
        assert f"sum 3.0 on core {1 - rank}" in output
        assert [end["exit"] for end in records(tmp_path / "counters", "end", rank)] == ["ok"]
        assert ("what to change before trn1" in output) is (rank == 0), output
    assert [step["samples"] for step in records(tmp_path / "counters", "step") if step["optimizer"]] == [
        4,
        4,
        2,
    ]


def test_a_function_that_fails_is_counted_so(run, tmp_path):
    """And Ray gets its error."""
    for rank, (code, output) in enumerate(run("fails")):
        assert code == 1 and "to Ray it failed: ValueError('as the script has it')" in output
        assert [end["exit"] for end in records(tmp_path / "counters", "end", rank)] == ["error"]


def test_a_short_rehearsal_is_no_failure(run, tmp_path):
    """It may end the function where it stands."""
    for rank, (code, output) in enumerate(run(WINDTUNNEL_REHEARSE_STEPS="2")):
        assert code == 0, output
        assert [end["exit"] for end in records(tmp_path / "counters", "end", rank)] == ["ok"]
