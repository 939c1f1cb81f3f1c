"""SIGKILL of one rank at random points: every survivor ends soon, is told who died, and nothing is left.

Fifty rounds in all: raw processes that only the shared memory tells of each other's end,
workers under torch's agent, and a script that trains on the simulated device.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from collective_pool import LONGEST_S, Pool
from conftest import INSTANCE, LAUNCHER, SCRIPTS
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from neuron_sim import cgroup
from neuron_sim.errors import PeerLostError
from neuron_sim.launcher import postmortem


def work(communicator, seed):
    """Collectives of all kinds and sizes, until one fails."""
    group = list(range(4))
    generator = random.Random(seed)  # noqa: S311 - for repeatable tests
    try:
        while True:
            name = generator.choice(["all_reduce", "all_gather", "all_to_all", "reduce_scatter"])
            tensor = torch.ones(4, generator.choice([1, 1000, 200_000]))
            extra = ("sum",) if "reduce" in name else ()
            communicator.announce(group, f"{name} of {list(tensor.shape)} at train.py:88")
            getattr(communicator, name)(tensor, *extra, group)
    except PeerLostError as error:
        return time.monotonic(), str(error)


def sockets() -> set[str]:
    """Listening TCP sockets of this container."""
    lines = (
        line.split()
        for path in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{path}").read_text().splitlines()
    )
    return {fields[1] for fields in lines if fields[3] == "0A"}


def processes() -> set[str]:
    """All of this container."""
    return {path.name for path in Path("/proc").glob("[0-9]*")}


def left() -> list[str]:
    """What a launch must not leave in shared memory."""
    return [path.name for path in Path("/dev/shm").glob("neuron_sim-*")]


def test_survivors_are_told_who_died():
    """30 rounds without a launcher: each of the three survivors raises, names rank, signal and its own line."""
    chance = random.Random(1)  # noqa: S311
    slowest = 0.0
    for number in range(30):
        victim = chance.randrange(4)
        with Pool(4) as pool:
            # Who dies before it has attached is only known to who started it.
            pool.call([0, 1, 2, 3], "join", [()] * 4)
            for rank in range(4):
                pool.start(rank, work, number)
            time.sleep(chance.uniform(0.0, 0.3))
            os.kill(pool.processes[victim].pid, signal.SIGKILL)
            killed = time.monotonic()
            for rank in set(range(4)) - {victim}:
                assert pool.pipes[rank].poll(LONGEST_S), f"rank {rank} still waits in round {number}"
                ended, message = pool.answer(rank)
                assert re.match(
                    rf"rank {victim} (exited with signal SIGKILL \(9\)|ended).*; "
                    rf"rank {rank} waited in (all_|reduce_)\w+ at train.py:88",
                    message,
                ), message
                slowest = max(slowest, ended - killed)
        assert not left()
    print(f"30 rounds, the slowest survivor ended after {slowest:.2f} s")
    assert slowest < LONGEST_S


@pytest.mark.parametrize(
    ("script", "workers", "rounds"), [("killed_workers.py", 4, 15), ("killed_training.py", 3, 5)]
)
def test_a_launch_names_the_dead_rank_and_leaves_nothing(script, workers, rounds, tmp_path):
    """20 launches: the log has the dead rank with its signal and where the others waited; all is gone after it."""
    chance = random.Random(2)  # noqa: S311
    before, running = sockets(), processes()
    slowest, ended = 0.0, 0
    command = [sys.executable, str(SCRIPTS / script), str(workers), str(rounds)]
    if script == "killed_training.py":
        command = [*LAUNCHER, "--nproc_per_node", str(workers), str(SCRIPTS / script)]
    launches = 1 if script == "killed_workers.py" else rounds
    for number in range(launches):
        environment = {**os.environ, **INSTANCE, "SEED": str(chance.randrange(2**30) + number)}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        said = re.findall(r"^KILLED (\d+) (\d+) ([\d.]+)", done.stdout, re.M)
        told = re.findall(
            r"^neuron_sim: ChildProcessError: rank (\d+) exited with signal SIGKILL \(9\)"
            r".*; ranks? [\d, -]+ (?:waited in|took part|had)",
            done.stdout,
            re.M,
        )
        over = re.findall(r"^OVER ([\d.]+)", done.stdout, re.M) or [str(time.monotonic())]
        assert [rank for rank, _, _ in said] == told, done.stdout[-3000:]
        assert done.returncode == (1 if script == "killed_training.py" else 0)
        assert len(over) == len(said) > 0
        for (_, _, killed), end in zip(said, over, strict=True):
            slowest = max(slowest, float(end) - float(killed))
            ended += 1
        assert not left()
        # Whoever killed is about to end, too.
        deadline = time.monotonic() + LONGEST_S
        while not (sockets() <= before and processes() <= running):
            assert time.monotonic() < deadline, (sockets() - before, processes() - running)
            time.sleep(0.05)
    print(f"{script}: {ended} rounds, the slowest launch was over after {slowest:.2f} s")
    assert ended == rounds
    assert slowest < LONGEST_S


@pytest.mark.parametrize(
    ("peak", "says"),
    [
        (
            2**30,
            "because this machine's memory was full: all of this host's had 1 of the 4 GiB that they may",
        ),
        (2**32, "because memory was full: all of this host's may have 4 GiB together, and the largest"),
        (None, "because memory was full: all of this host's may have 4 GiB together, and the largest"),
    ],
)
def test_a_kill_for_memory_says_whose_memory_was_full(peak, says, monkeypatch, capfd):
    """The container's, or the machine's, which others may have filled: what the container had at most tells."""
    kills = iter((0, 1))
    monkeypatch.setattr(cgroup, "oom_kills", lambda: next(kills))
    monkeypatch.setattr(cgroup, "memory_limit", lambda: 2**32)
    monkeypatch.setattr(cgroup, "memory_peak", lambda: peak)
    failures = {0: ProcessFailure(0, 1, -signal.SIGKILL, "<N/A>")}
    with pytest.raises(ChildFailedError), postmortem.watching(1, 0, 0):
        raise ChildFailedError("train.py", failures)
    assert f"rank 0 exited with signal SIGKILL (9); a process was ended {says}" in capfd.readouterr().err
