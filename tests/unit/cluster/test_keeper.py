"""Which compute nodes run: those that are wanted, whatever becomes of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.waiting import wait_for
from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.fleet.keeper import Keeper
from windtunnel_local.cluster.nodes import NodeContainer


class Engine:
    """Containers in memory: the keeper's `Nodes`, and its duties."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states = {"head": "running"}
        self.lost: list[str] = []
        self.failing: set[str] = set()
        self.looks = 0
        self._lock = threading.Lock()

    def found(self) -> dict[str, NodeContainer]:
        with self._lock:
            return {
                name: NodeContainer(name, "id", state, "10.0.0.1", "trn1.32xlarge", "")
                for name, state in self.states.items()
            }

    def remove(self, node: str) -> None:
        with self._lock:
            self.states.pop(node, None)

    def look(self) -> None:
        self.looks += 1

    def say_lost(self, names: Sequence[str]) -> None:
        self.lost += [name for name in names if self.states.get(name) == "exited"]

    def start_node(self, name: str) -> None:
        if name in self.failing:
            raise ClusterError("no room")
        with self._lock:
            self.states[name] = "running"
        node_log.append(self.folder, name, "trn1.32xlarge", "up")

    def running(self) -> set[str]:
        return {name for name, node in self.found().items() if node.state == "running"} - {"head"}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


@pytest.fixture
def keeper(engine: Engine, tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(tmp_path, engine, engine, look_s=0.02)
    keeper.begin()
    yield keeper
    keeper.end()


def test_wanted_nodes_come_and_others_go(engine: Engine, keeper: Keeper, tmp_path: Path) -> None:
    """The bill has each time; the head node is nobody's to remove here."""
    keeper.want(["a", "b"])
    wait_for(lambda: engine.running() == {"a", "b"})
    keeper.want(["a"])
    keeper.unwant(["b", "never"])
    wait_for(lambda: engine.running() == {"a"})
    assert "head" in engine.found()
    assert [(event.node, event.event) for event in node_log.read(tmp_path) if event.node == "b"] == [
        ("b", "up"),
        ("b", "down"),
    ]


def test_a_node_that_dies_is_replaced(engine: Engine, keeper: Keeper) -> None:
    """And Slurm hears of it first, or jobs would wait for it."""
    keeper.want(["a"])
    wait_for(lambda: engine.running() == {"a"})
    engine.states["a"] = "exited"
    wait_for(lambda: engine.running() == {"a"})
    assert engine.lost == ["a"]


def test_a_node_that_does_not_start_is_tried_again(engine: Engine, keeper: Keeper) -> None:
    """Its reason is known meanwhile."""
    engine.failing.add("a")
    keeper.want(["a", "b"])
    wait_for(lambda: keeper.failures == {"a": "no room"} and engine.running() == {"b"})
    engine.failing.clear()
    wait_for(lambda: engine.running() == {"a", "b"} and not keeper.failures)


def test_an_order_wins_over_what_was_found_out_before_it(keeper: Keeper) -> None:
    """Slurm's states are read while its orders come in."""
    since = keeper.changes
    keeper.want(["a"])
    keeper.want_only(["b"], since)
    assert keeper.wanted == {"a"}
    keeper.want_only(["b"], keeper.changes)
    assert keeper.wanted == {"b"}


def test_it_goes_on_after_an_error(engine: Engine, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is away comes back."""

    def away() -> None:
        raise ClusterError("away")

    monkeypatch.setattr(engine, "look", away)
    keeper.want(["a"])
    time.sleep(0.1)
    assert engine.running() == set()
    monkeypatch.undo()
    wait_for(lambda: engine.running() == {"a"})
