"""Whatever a cluster's file holds, it is read or refused in words."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.cluster import POST
from windtunnel_local.cluster.configuration import changes, read, read_all
from windtunnel_local.cluster.errors import InvalidConfiguration, Problem

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["slurm", "q1", "1"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.text(max_size=8), below, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a document, itself included."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(way for key, below in inside for way in places(below, (*path, key)))]


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at one place."""
    if not path:
        return value
    made = copy.deepcopy(document)
    inside = made
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return made


def problems(text: str) -> tuple[Problem, ...]:
    """What is wrong with a file, if anything."""
    try:
        read(text, "f.yaml")
    except InvalidConfiguration as refused:
        return refused.problems
    return ()


@given(st.text(max_size=200))
@example("Region: 2024-99-99")
@example("a: 0b_\nb: 190:20:30")
def test_any_text_is_read_or_refused(text: str) -> None:
    """A refusal has at least one problem, each with a line of the file."""
    lines = max(1, len(text.splitlines()) + 1)
    assert all(1 <= problem.line <= lines for problem in problems(text))


@given(st.data())
def test_any_value_at_any_place_is_read_or_refused(data: st.DataObject) -> None:
    """A file without mistakes, with one value replaced by another of any kind."""
    document = yaml.safe_load(POST)
    made = with_value(document, data.draw(st.sampled_from(places(document))), data.draw(VALUES))
    text = yaml.safe_dump(made, allow_unicode=True)
    if problems(text):
        return
    found = read_all(text, "f.yaml")
    assert len(list(found.configuration.nodes())) >= 1
    for one in changes(read_all(POST, "f.yaml").document, found.document, fleet_stopped=False):
        assert one.parameter and one.requested != one.current
