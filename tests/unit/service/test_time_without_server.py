"""What a step takes that a server has left undone, and another takes again: the time between is nobody's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.service.conftest import World
from tests.unit.service.samples import request
from windtunnel_local.service.data import inputs, outputs
from windtunnel_local.service.ground.billed_time import training_seconds


def held(work: Callable[..., Any], gate: threading.Event) -> Callable[..., Any]:
    """The same, once the gate is open."""

    def waiting(*arguments: Any, **named: Any) -> Any:
        gate.wait(20)
        return work(*arguments, **named)

    return waiting


@pytest.mark.parametrize(
    ("module", "name", "secondary"),
    [(outputs, "store_artifacts", "Uploading"), (inputs, "provide_source", "Downloading")],
)
def test_a_night_is_not_billed(
    world: World, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, secondary: str
) -> None:
    """The server is killed in a download or an upload; the next one begins hours later."""
    gate = threading.Event()
    monkeypatch.setattr(module, name, held(getattr(module, name), gate))
    world.service.create(request())
    world.reach(secondary)
    world.fuse.blow()
    gate.set()
    world.clock.advance(8 * 3600)
    world.serve().resume()
    life = world.finish().lifecycle
    assert (life.status, training_seconds(life)) == ("Completed", 1)
    starts = [transition.start for transition in life.transitions]
    assert starts == sorted(starts)
