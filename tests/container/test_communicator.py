"""Meetings of real processes: agreement, the end of a peer, waits in a circle, and what is left behind."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch
from collective_pool import LONGEST_S, Pool

from neuron_sim.errors import CollectiveError, MismatchError
from neuron_sim.interconnect import region
from neuron_sim.interconnect.communicator import Communicator
from neuron_sim.settings import Identity


def many_small(communicator, count):
    """So many all_reduces in a row; how many of them were right."""
    group = list(range(4))
    rank = torch.full((3,), float(communicator.group_of(None).index(communicator._identity.rank)))
    right = 0
    for number in range(count):
        wanted = torch.full((3,), 6.0 + 4 * (number % 7))
        right += torch.equal(communicator.all_reduce(rank + number % 7, "sum", group), wanted)
    return right


def test_thousands_of_small_all_reduces_are_all_right():
    """Slots alternate and counters grow: nothing of one operation leaks into another."""
    with Pool(4) as pool:
        assert pool.call([0, 1, 2, 3], many_small, [(2_000,)] * 4) == [2_000] * 4


def test_mismatched_collectives_are_named_with_each_ranks_words():
    """Different calls on different ranks end in an error on all of them, not in wrong data."""
    with Pool(2) as pool:
        answers = pool.call(
            [0, 1], "agree", [([0, 1], "all_reduce sum at a.py:1"), ([0, 1], "all_gather at a.py:9")]
        )
        for answer in answers:
            assert isinstance(answer, MismatchError)
            assert "a.py:1" in str(answer) and "a.py:9" in str(answer)
        # The place in the script alone may differ.
        assert pool.call([0, 1], "agree", [([0, 1], "x at a.py:1"), ([0, 1], "x at a.py:2")]) == [None, None]


def test_waits_in_a_circle_of_groups_are_found():
    """0 waits for 1 in one group, 1 for 2 in another, 2 for 0 in a third: nobody is dead, nobody will come."""
    groups = [[0, 1], [1, 2], [2, 0]]
    with Pool(3) as pool:
        started = time.monotonic()
        for rank, group in enumerate(groups):
            pool.start(rank, "agree", group, f"all_reduce of x in group {group} at train.py:{rank + 10}")
        for rank in range(3):
            answer = pool.answer(rank)
            assert isinstance(answer, MismatchError)
            for other in range(3):
                assert f"at train.py:{other + 10}, waits for rank {(other + 1) % 3}" in str(answer)
        assert time.monotonic() - started < LONGEST_S


def test_a_rank_in_another_collective_is_found_while_a_third_is_still_missing():
    """Two that have come for different things need not wait for the third to be told so."""
    with Pool(3) as pool:
        started = time.monotonic()
        pool.start(0, "agree", [0, 1, 2], "all_reduce of x at train.py:10")
        pool.start(1, "agree", [0, 1, 2], "all_gather of x at train.py:20")
        for rank in (0, 1):
            answer = pool.answer(rank)
            assert isinstance(answer, MismatchError)
            assert "rank 0: all_reduce of x at train.py:10" in str(answer)
            assert "rank 1: all_gather of x at train.py:20" in str(answer)
        assert time.monotonic() - started < LONGEST_S


@pytest.mark.parametrize("delay_s", [0.0, 0.3])
def test_a_killed_peer_ends_the_wait_with_an_error(delay_s):
    """A survivor is told which rank has ended, within seconds."""
    group = [0, 1, 2]
    with Pool(3) as pool:
        pool.call(group, "all_reduce", [(torch.ones(4), "sum", group)] * 3)
        for rank in (0, 2):
            pool.start(rank, "all_reduce", torch.ones(4), "sum", group)
        time.sleep(delay_s)
        os.kill(pool.processes[1].pid, signal.SIGKILL)
        started = time.monotonic()
        answers = [pool.pipes[rank].recv() for rank in (0, 2)]
        assert time.monotonic() - started < LONGEST_S
        assert all(isinstance(answer, CollectiveError) for answer in answers)
        for rank, answer in zip((0, 2), answers, strict=True):
            assert "rank 1 exited with signal SIGKILL (9)" in str(answer)
            assert f"; rank {rank} waited in all_reduce" in str(answer)


def test_what_a_peer_has_left_for_the_others_is_why_it_ended():
    """And what it had to say of itself comes before the collectives that it missed."""
    with Pool(2) as pool:
        assert pool.call([0, 1], "join", [(), ()]) == [None, None]
        pool.call([1], "remark", [("its DataLoader raised KeyError: 'img'",)])
        pool.call([1], "leave", [()])
        (answer,) = pool.call([0], "all_reduce", [(torch.ones(1), "sum", [0, 1])])
        assert "rank 1 ended after its DataLoader raised KeyError: 'img'; rank 0 waited" in str(answer)
        assert "equally often" not in str(answer)


def test_a_peer_that_has_left_ends_the_wait_though_its_process_lives():
    """torch's agent keeps workers that have succeeded until all have. What came before leaving still counts."""
    with Pool(2) as pool:
        assert pool.call([0, 1], "join", [(), ()]) == [None, None]
        both = [(torch.ones(1), "sum", [0, 1])] * 2
        assert all(
            torch.equal(total, torch.full((1,), 2.0)) for total in pool.call([0, 1], "all_reduce", both)
        )
        pool.call([1], "leave", [()])
        started = time.monotonic()
        (answer,) = pool.call([0], "all_reduce", both[:1])
        assert isinstance(answer, CollectiveError) and "rank 1 ended: its script" in str(answer)
        assert time.monotonic() - started < LONGEST_S


def test_nothing_is_left_in_shared_memory():
    """The region has no name once all have attached: it cannot outlive its workers."""
    with Pool(3) as pool:
        pool.call([1, 2], "all_reduce", [(torch.ones(1), "sum", [1, 2])] * 2)
        pool.call([0, 1, 2], "all_reduce", [(torch.ones(1), "sum", [0, 1, 2])] * 3)
        assert not list(region.SHARED_MEMORY.glob(f"{region.FILE_PREFIX}{pool.name}*"))


def test_ranks_outside_all_groups_are_told():
    """A wrong group is an error, not a hang."""
    communicator = Communicator(Identity(3, 4, 3, 4), 2**20, 1)
    with pytest.raises(ValueError, match="rank 3 is in none of the groups"):
        communicator.group_of([[0, 1], [2]])
    with pytest.raises(ValueError, match="not a set of ranks"):
        communicator.group_of([[3, 7]])
