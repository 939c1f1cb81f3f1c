"""What counts as an exchange between cores that train one model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from neuron_sim.diagnostics.exchanges import Exchanges

WEIGHTS = 400


def tensor(elements: int) -> Any:
    return [SimpleNamespace(numel=lambda: elements)]


def optimizer(weights: int = WEIGHTS) -> SimpleNamespace:
    return SimpleNamespace(param_groups=[{"params": [SimpleNamespace(numel=lambda: weights)]}])


@pytest.mark.parametrize(
    ("brought", "are_exchanged"),
    [
        ([WEIGHTS], True),
        ([10, 10], True),  # each weight's gradient by itself
        ([20], True),  # compressed
        ([1, 3], False),  # a loss, and figures of an evaluation
        ([], False),
    ],
)
def test_gradients_are_more_than_a_few_figures(brought: list[int], are_exchanged: bool) -> None:
    """In each step, and figures of many steps do not add up to an exchange."""
    exchanges = Exchanges()
    for _ in range(50):
        exchanges.train()
        for elements in brought:
            exchanges.bring(tensor(elements))
        exchanges.updated(optimizer())
    assert exchanges.have_been is are_exchanged


def test_weights_that_are_sent_before_training_are_no_exchange() -> None:
    """As by xm.broadcast_master_param. Weights that are averaged after a step are one."""
    exchanges = Exchanges()
    exchanges.bring(tensor(WEIGHTS))
    exchanges.train()
    exchanges.updated(optimizer())
    assert not exchanges.have_been and exchanges.at_first == 0
    exchanges.bring(tensor(WEIGHTS))
    assert exchanges.have_been
    exchanges.updated(optimizer())
    assert exchanges.have_been


def test_what_one_core_sends_another_and_what_goes_with_weights_that_no_optimizer_has() -> None:
    """Of these there is no number to compare with."""
    exchanges = Exchanges()
    exchanges.step(["all_reduce"])
    assert not exchanges.have_been
    exchanges.step(["send"])
    exchanges.step([])
    assert exchanges.have_been
    exchanges = Exchanges()
    exchanges.train()
    exchanges.updated(object())
    assert not exchanges.have_been
    exchanges.bring(tensor(1))
    exchanges.updated(object())
    assert exchanges.have_been
