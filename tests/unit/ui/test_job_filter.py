"""The list's form as a search: each field, and what it refuses."""

from __future__ import annotations

import re
import time
from datetime import datetime

import pytest

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.search_query import Condition, Group
from windtunnel_local.ui.pages.job_filter import ROWS, JobFilter


def conditions(**fields: str) -> list[tuple[str, str, tuple[object, ...]]]:
    """Name, operator and values of each condition."""
    found: list[tuple[str, str, tuple[object, ...]]] = []
    for part in JobFilter.of(fields).search().where.parts:
        for condition in part.parts if isinstance(part, Group) else (part,):
            assert isinstance(condition, Condition)
            found.append((condition.property.name, condition.operator, condition.values))
    return found


def test_no_field_asks_for_all_newest_first() -> None:
    """A page of them."""
    query = JobFilter.of({}).search()
    assert query.where.parts == ()
    assert (query.sort_by.name, query.sort_order, query.limit, query.token) == (
        "CreationTime",
        "Descending",
        ROWS,
        None,
    )


def test_each_field_is_a_condition() -> None:
    """All of them together; what is empty or unknown is passed over."""
    assert conditions(q=" bert ", status="Failed", tag="team=nlp", instance="", other="x") == [
        ("TrainingJobName", "Contains", ("bert",)),
        ("TrainingJobStatus", "Equals", ("Failed",)),
        ("Tags.team", "Equals", ("nlp",)),
    ]
    assert conditions(tag="team") == [("Tags.team", "Exists", ())]
    assert conditions(tag="team=") == [("Tags.team", "Equals", ("",))]
    assert [name for name, _, _ in conditions(instance="ml.trn1.2xlarge")] == [
        "ResourceConfig.InstanceType",
        "ResourceConfig.InstanceGroups.InstanceType",
    ]


def test_days_are_whole_days_of_this_machine() -> None:
    """From its first moment to its last."""
    (_, begins, (first,)), (_, ends, (last,)) = conditions(since="2026-07-31", until="2026-07-31")
    midnight = datetime(2026, 7, 31).astimezone()
    assert (begins, first) == ("GreaterThanOrEqualTo", int(midnight.timestamp()) * 1_000_000)
    assert ends == "LessThan"
    assert isinstance(last, int)
    assert isinstance(first, int)
    assert last - first == 24 * 3600 * 1_000_000


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process is Unix's")
@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_day_on_which_clocks_change_is_whole(monkeypatch: pytest.MonkeyPatch, day: str, hours: int) -> None:
    """From midnight to midnight, by the clock on the wall."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        (_, _, (first,)), (_, _, (last,)) = conditions(since=day, until=day)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert isinstance(last, int)
    assert isinstance(first, int)
    assert last - first == hours * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "failed"),
        ("sort", "size"),
        ("order", "sideways"),
        ("since", "2026-02-30"),
        ("until", "9999-12-31"),
        ("since", "yesterday"),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: str) -> None:
    """With what was given."""
    with pytest.raises(ValidationFailed, match=rf"{field} is .*{re.escape(value)}"):
        JobFilter.of({field: value}).search()


def test_an_address_keeps_what_was_asked_for() -> None:
    """Another order begins at the first page; what is as usual is left out."""
    given = JobFilter.of({"q": "a b", "status": "Failed", "token": "t", "sort": "name"})
    assert given.query() == "q=a+b&status=Failed&sort=name"
    assert given.query(token="t") == "q=a+b&status=Failed&sort=name&token=t"
    assert given.query(sort="created") == "q=a+b&status=Failed"
    assert given.narrows
    assert not JobFilter.of({"sort": "name"}).narrows
