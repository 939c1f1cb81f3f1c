"""In how many steps a line has read, as its finding says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from neuron_sim.diagnostics import advice
from neuron_sim.diagnostics.read_steps import ReadSteps

TRAIN, EVALUATE = [True] * 16, [False] * 5


def _seen(script: Iterable[bool], reads: Iterable[bool]) -> tuple[int, bool]:
    steps, seen = ReadSteps(), Counter[bool]()
    for trains, has_read in zip(script, reads, strict=True):
        seen[trains] += 1
        if has_read:
            steps.read(seen, trains=trains)
    return steps.number, steps.only_evaluates


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ([False] * 16 + [True] * 5, (15, True)),
        ([True] * 16 + [False] * 5, (48, False)),
        ([True] * 21, (63, False)),
        ([False] + [True] * 16 + [False] * 4, (47, False)),  # behind the end of each training step
    ],
)
def test_steps_are_those_of_the_loop_that_reads(reads: list[bool], said: tuple[int, bool]) -> None:
    """Three epochs of training and evaluation."""
    assert _seen((TRAIN + EVALUATE) * 3, reads * 3) == said


@pytest.mark.parametrize(
    ("evaluates", "where"), [(False, "in the loop"), (True, "in a loop that only evaluates")]
)
def test_a_read_of_an_evaluation_is_said_to_be_one(evaluates: bool, where: str) -> None:
    found = advice.host_read("train.py:9", [".item()"], 15, 1.0, 15, 0, 0, evaluates=evaluates)
    assert found.message.startswith(f".item() on a device tensor {where}: 15 times in 15 steps, ")
