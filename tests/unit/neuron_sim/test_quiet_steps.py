"""Ranks of a host meet before steps that are timed, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

from neuron_sim.counters.quiet_steps import EVERY, FIRST, QuietSteps

LONG = 30.0


def run(folder: Path | None, ranks: int, steps: list[int], seconds: float = LONG) -> list[list[int]]:
    """Each rank's steps in a thread of its own; at which of its steps each let its device finish."""
    finished: list[list[int]] = [[] for _ in range(ranks)]

    def rank(number: int) -> None:
        quiet = QuietSteps(folder, number, ranks)
        for step in range(1, steps[number] + 1):
            quiet.step_ended(partial(finished[number].append, step), seconds)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    return finished


def test_all_ranks_meet_before_the_same_steps(tmp_path: Path) -> None:
    """The first ones, and every 64th; what they leave behind is little."""
    expected = [step for step in range(1, 2 * EVERY + 1) if step in FIRST or step % EVERY == 0]
    assert run(tmp_path, 3, [2 * EVERY] * 3) == [expected] * 3
    assert len(list((tmp_path / ".quiet").iterdir())) <= 3 * 3


def test_a_rank_that_never_comes_is_waited_for_once(tmp_path: Path) -> None:
    """As long as a step took; then there are no more meetings."""
    started = time.monotonic()
    finished = run(tmp_path, 2, [20, 4], seconds=3.0)
    assert finished == [[2, 3, 4, 5], [2, 3, 4]]
    assert time.monotonic() - started < LONG / 3


def test_a_run_that_counts_nothing_waits_for_nobody() -> None:
    """Without a folder there is nothing to time."""
    assert run(None, 2, [20, 3]) == [[], []]


def test_a_folder_that_cannot_be_written_ends_the_meetings(tmp_path: Path) -> None:
    """The script goes on."""
    (tmp_path / ".quiet").write_text("a file where the folder should be")
    assert run(tmp_path, 2, [20, 20]) == [[2], [2]]
