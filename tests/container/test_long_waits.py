"""A rank that does not come: said once and soon, by one of those that wait, and left for who ends the job."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from collective_pool import LONGEST_S, Pool

from neuron_sim.interconnect import notes
from neuron_sim.interconnect.long_wait import Patience


def computes(communicator, seconds):
    """As a compile or an evaluation of this rank alone does, beside nine others on a processor; then it comes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        busy = time.thread_time() + 0.02
        while time.thread_time() < busy:
            pass
        time.sleep(0.18)
    return waits(communicator)


def idles(communicator, seconds):
    """As one that waits for a file."""
    time.sleep(seconds)
    return waits(communicator)


SLEEPS = inspect.getsourcelines(idles)[1] + 2


def waits(communicator):
    communicator.announce([0, 1, 2], "all_reduce of x at train.py:45")
    return communicator.all_reduce(torch.ones(1), "sum", [0, 1, 2])


def run_with(late, patience, capfd):
    """Two ranks wait for one that does something else for 8 seconds; the log, and what was noted meanwhile."""
    with Pool(3, patience=patience) as pool:
        pool.call([0, 1, 2], "agree", [([0, 1, 2], "all_gather of x at other.py:1")] * 3)
        pool.start(2, late, 8)
        pool.start(0, waits)
        pool.start(1, waits)
        deadline, noted = time.monotonic() + LONGEST_S, []
        while not all(pool.pipes[rank].poll() for rank in range(3)) and time.monotonic() < deadline:
            noted = max(noted, notes.there(patience.notes_folder), key=len)
            time.sleep(0.1)
        for rank in range(3):
            assert torch.equal(pool.answer(rank), torch.full((1,), 3.0))
    said = [line for line in capfd.readouterr().out.splitlines() if "[windtunnel]" in line]
    return said, noted


def test_an_idle_rank_is_named_once_and_by_one(tmp_path, capfd):
    """With the place of the wait, and what is to be done; the notes are gone when the wait is over."""
    patience = Patience(tmp_path, long_s=3, computing_s=1000, look_s=2)
    said, noted = run_with(idles, patience, capfd)
    assert len(said) == 1
    assert re.fullmatch(
        r"\[windtunnel\] rank 0 has waited [345] s in all_reduce at train.py:45; rank 2 has not come "
        rf"\(is at test_long_waits.py:{SLEEPS}, in no collective; "
        r"0\.0 s of processor time in the last 2 s\)\. "
        r"All ranks must call the same collectives equally often\.",
        said[0],
    ), said
    assert [(note.rank, note.place, note.missing) for note in noted] == [
        (rank, "all_reduce at train.py:45", [2]) for rank in (0, 1)
    ]
    assert not list(tmp_path.iterdir())
    (line,) = notes.lines(noted)
    assert re.fullmatch(
        r"ranks 0-1 had waited \d+ s in all_reduce at train.py:45 for rank 2 \(is at test_long_waits.py:\d+, .*\)",
        line,
    )


@pytest.mark.parametrize(("computing_s", "times"), [(1000, 0), (5, 1)])
def test_a_rank_that_computes_is_no_error(computing_s, times, tmp_path, capfd):
    """A first compile is waited for in silence, and one that lasts is told in words that do not read as a fault."""
    patience = Patience(tmp_path, long_s=3, computing_s=computing_s, look_s=2)
    said, _ = run_with(computes, patience, capfd)
    assert len(said) == times
    assert all(line.endswith("looks like this and ends by itself.") for line in said)


def test_a_stop_says_where_ranks_have_waited(tmp_path):
    """The log's last words of a job that is stopped, or has reached max_run: nobody else is left to say it."""
    ended = "from neuron_sim.launcher import train; import signal, time; "
    ended += "signal.signal(signal.SIGTERM, train._ended); print('ready', flush=True); time.sleep(60)"
    environment = {**os.environ, "WINDTUNNEL_COUNTERS_DIR": str(tmp_path)}
    for rank, waited_s in ((0, 93), (3, 60)):
        notes.leave(
            tmp_path / "waits", notes.Note(rank, "all_reduce at hang.py:45", time.time() - waited_s, [1], "")
        )
        path = tmp_path / "waits" / f"waits-{os.getpid()}"
        path.rename(path.with_name(f"waits-{os.getpid() if rank else os.getppid()}"))
    # Of a process that is gone.
    (tmp_path / "waits" / "waits-4194305").write_text(path.with_name(f"waits-{os.getpid()}").read_text())
    with subprocess.Popen(
        [sys.executable, "-c", ended], env=environment, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGTERM)
        said = job.stdout.read()
    assert job.returncode == -signal.SIGTERM
    assert re.fullmatch(
        r"\[windtunnel\] warning: when the job was stopped, ranks 0, 3 had waited 9\d s in all_reduce at hang.py:45 "
        r"for rank 1\.\n",
        said,
    ), said
