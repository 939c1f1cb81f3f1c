"""What a short rehearsal reads from Lightning's loops: they are classes, and say in no `range` how long they are."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from neuron_sim.rehearsal import loops, turns


class _FitLoop:
    """As Lightning's over the epochs: by name, attributes and methods."""

    def __init__(self, max_epochs: int | None, max_steps: int) -> None:
        self.max_epochs = max_epochs
        self.epoch_progress = SimpleNamespace(current=SimpleNamespace(processed=0))
        self.epoch_loop = OwnEpochLoop(max_steps)

    def run(self) -> None:
        self.advance()

    def advance(self) -> None:
        self.epoch_loop.run()


class _TrainingEpochLoop:
    """As Lightning's over the batches of an epoch."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.global_step = 3
        self.turns: turns.Turns | None = None
        self.counts: dict[tuple[str, bool], loops.Count] = {}

    def run(self) -> None:
        self.advance()

    def advance(self) -> None:
        frame = sys._getframe()
        self.turns, self.counts = turns.around(frame), loops.counts(frame)


class OwnEpochLoop(_TrainingEpochLoop):
    """Libraries, as NxD Training, make loops of their own of it."""


@pytest.mark.parametrize(
    ("max_epochs", "max_steps", "epochs", "steps"),
    [(-1, 1000, None, 1000), (7, -1, 7, None), (None, 20, None, 20)],
)
def test_max_steps_and_max_epochs_are_known(
    max_epochs: int | None, max_steps: int, epochs: int | None, steps: int | None
) -> None:
    """Where they were asked for: Lightning has -1 for "no bound"."""
    fit = _FitLoop(max_epochs, max_steps)
    fit.run()
    seen = fit.epoch_loop
    assert (seen.turns and seen.turns.number) == epochs
    told = seen.counts.get(("max_steps", True))
    assert told == (steps and loops.Count(3, steps, decides=True))


def test_another_loop_of_that_kind_is_none_of_lightnings() -> None:
    """A method `run` is nothing special."""

    class Runner:
        max_steps = 5
        global_step = 0

        def run(self) -> dict[tuple[str, bool], loops.Count]:
            return loops.counts(sys._getframe())

    assert ("max_steps", True) not in Runner().run()
