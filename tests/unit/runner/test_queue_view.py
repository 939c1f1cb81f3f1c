"""What Slurm says of all jobs, while its controller does not answer."""

from __future__ import annotations

from typing import cast

import pytest

from windtunnel_local.runner.slurm import queue_view
from windtunnel_local.runner.slurm.commands import Slurm, SlurmJob
from windtunnel_local.service.ground.errors import RunnerUnavailable


class Away:
    """A controller of which a command finds out only after half a minute that it is away; and the clock."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 100.0

    def jobs(self) -> list[SlurmJob]:
        self.asked += 1
        self.now += 30
        raise RunnerUnavailable("away")

    def monotonic(self) -> float:
        return self.now


def test_who_waited_for_the_answer_does_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would wait as long, one after the other: the last of a few threads for minutes, and its job would fail."""
    away = Away()
    monkeypatch.setattr(queue_view, "time", away)
    view = queue_view.QueueView(cast(Slurm, away))
    for _ in range(5):
        with pytest.raises(RunnerUnavailable, match="away"):
            view.look(1)
    assert away.asked == 1
    away.now += 2
    with pytest.raises(RunnerUnavailable, match="away"):
        view.look(1)
    assert away.asked == 2
