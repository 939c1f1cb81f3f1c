"""Orders to a cluster's background process: what a job may not ask, nobody hears."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.cluster.fleet.listening import answers, ask, listen
from windtunnel_local.cluster.fleet.orders import COMMANDS, POWER, BadOrder, Order, read_order

NODES = {"q-st-r-1", "q-dy-r-1"}


def line(**order: object) -> bytes:
    return json.dumps(order).encode()


@pytest.mark.parametrize("do", POWER)
def test_slurm_may_order_nodes_of_the_configuration(do: str) -> None:
    """By name; several at once."""
    named = ["q-dy-r-1", "q-st-r-1"]
    assert read_order(line(do=do, nodes=named), POWER, NODES) == Order(do, tuple(named))


@pytest.mark.parametrize("do", sorted(set(COMMANDS) - set(POWER)))
def test_nothing_in_a_cluster_can_change_it(do: str) -> None:
    """Not delete, not update, not stop; the user's own commands can."""
    with pytest.raises(BadOrder, match="one of: resume, suspend"):
        read_order(line(do=do), POWER, NODES)
    assert read_order(line(do=do), COMMANDS, NODES) == Order(do)


@pytest.mark.parametrize(
    "nodes",
    [
        None,
        [],
        "q-dy-r-1",
        ["q-dy-r-2"],
        ["q-dy-r-1", "head"],
        ["q-dy-r-1; rm -rf /"],
        [["q-dy-r-1"]],
        [1],
        {},
    ],
)
def test_other_nodes_are_refused(nodes: object) -> None:
    """As a whole: not even those of the configuration are touched then."""
    with pytest.raises(BadOrder, match="node"):
        read_order(line(do="resume", nodes=nodes), POWER, NODES)


@given(st.one_of(st.binary(), st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps)))
def test_whatever_else_is_sent_is_refused(sent: bytes | str) -> None:
    """With a message, and no other error."""
    with pytest.raises(BadOrder):
        read_order(sent if isinstance(sent, bytes) else sent.encode(), COMMANDS, NODES)


def test_orders_arrive_through_a_long_path(tmp_path: Path) -> None:
    """Deeper than the name of a socket may be; one of a killed process is in nobody's way."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    path = folder / "socket"
    path.touch()
    assert not answers(path)
    with listen(path, lambda said: {"heard": said.decode().strip()}):
        assert answers(path)
        assert ask(path, {"do": "instances"}) == {"heard": '{"do": "instances"}'}
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_error_is_the_answer(tmp_path: Path) -> None:
    """The listener goes on."""

    def refuse(said: bytes) -> dict[str, object]:
        raise {b"i": BadOrder("no"), b"u": OSError(28, "No space left")}.get(said[8:9], KeyError("broken"))

    with listen(tmp_path / "socket", refuse):
        assert ask(tmp_path / "socket", {"do": "instances"}) == {"error": "no", "kind": "BadOrder"}
        assert "No space left" in ask(tmp_path / "socket", {"do": "update"})["error"]
        assert "fleet.log" in ask(tmp_path / "socket", {"do": "delete"})["error"]
