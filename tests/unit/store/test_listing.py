"""ListTrainingJobs' part of the record: filters, orders, pages, and how they are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.clock import START
from tests.unit.store.samples import Steps, named, plan
from windtunnel_local.service.ground import lifecycle as events
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import JobQuery, WarmPool
from windtunnel_local.service.ground.lifecycle import advance
from windtunnel_local.store import SqliteStore
from windtunnel_local.store.listing import statement

SORTS = ("Name", "CreationTime", "Status")
ORDERS = ("Ascending", "Descending")
WAYS = list(product(SORTS, ORDERS))
FILTERS: dict[str, Any] = {
    "name_contains": "job",
    "status": "InProgress",
    "created_after": START - timedelta(days=1),
    "created_before": START + timedelta(days=1),
    "modified_after": START - timedelta(days=1),
    "modified_before": START + timedelta(days=1),
    "warm_pool_status": "InUse",
}


def pages(store: SqliteStore, query: JobQuery) -> Iterator[list[str]]:
    """The names on each page."""
    token = None
    while True:
        jobs, token = store.list_jobs(replace(query, token=token))
        yield [job.name for job in jobs]
        if token is None:
            return


@pytest.mark.parametrize(("sort_by", "sort_order"), WAYS)
def test_pages_cover_the_list_once(store: SqliteStore, tmp_path: Path, sort_by: Any, sort_order: Any) -> None:
    """In any order, with equal sort values, and while jobs come and go."""
    for i in range(7):
        store.insert_job(named(tmp_path, f"job-{i}", seconds=i // 3))
    query = JobQuery(sort_by=sort_by, sort_order=sort_order, limit=2)
    whole = [j.name for j in store.list_jobs(replace(query, limit=100))[0]]
    seen: list[str] = []
    for page in pages(store, query):
        seen += page
        if len(seen) == 2:
            store.delete_job(seen[-1])  # the token's own row may vanish
            at_the_front = "aaa" if sort_order == "Ascending" else "zzz"
            seconds = -9 if sort_order == "Ascending" else 99
            store.insert_job(named(tmp_path, at_the_front, seconds))
    assert seen == whole
    assert sorted(seen) == [f"job-{i}" for i in range(7)]


@settings(max_examples=25)
@given(
    created=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    chosen=st.sets(st.sampled_from(sorted(FILTERS))),
    sort_by=st.sampled_from(SORTS),
    sort_order=st.sampled_from(ORDERS),
    limit=st.integers(1, 4),
)
def test_any_filters_in_any_order(
    tmp_path: Path, created: list[int], chosen: set[str], sort_by: Any, sort_order: Any, limit: int
) -> None:
    """The pages together are what matches, sorted."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
    store = SqliteStore(path)
    jobs = []
    for i, seconds in enumerate(created):
        job = named(tmp_path, f"job-{i}", seconds)
        if i % 2:
            job = replace(job, warm_pool=WarmPool("InUse"))
        store.insert_job(job)
        if i % 3 == 2:
            job = replace(
                job, lifecycle=advance(job.lifecycle, events.Failed("x"), START + timedelta(seconds=9))
            )
            store.update_job(job)
        jobs.append(job)
    values = {
        **FILTERS,
        "name_contains": "-1",
        "created_after": START,
        "modified_before": START + timedelta(seconds=9),
    }
    given_filters = {name: values[name] for name in chosen}
    keys = {
        "Name": lambda job: job.name,
        "CreationTime": lambda job: (job.lifecycle.created, job.name),
        "Status": lambda job: (job.lifecycle.status, job.name),
    }

    def matches(job: Any) -> bool:
        facts = {
            "name_contains": "-1" in job.name,
            "status": job.lifecycle.status == "InProgress",
            "created_after": job.lifecycle.created > START,
            "created_before": True,
            "modified_after": True,
            "modified_before": job.lifecycle.modified < START + timedelta(seconds=9),
            "warm_pool_status": job.warm_pool is not None,
        }
        return all(facts[name] for name in chosen)

    wanted = sorted(filter(matches, jobs), key=keys[sort_by], reverse=sort_order == "Descending")
    query = JobQuery(sort_by=sort_by, sort_order=sort_order, limit=limit, **given_filters)
    found = list(pages(store, query))
    store.close()
    assert [name for page in found for name in page] == [job.name for job in wanted]
    assert all(len(page) == limit for page in found[:-1])


@pytest.mark.parametrize(("sort_by", "sort_order"), WAYS)
def test_nothing_is_sorted_or_scanned(
    store: SqliteStore, tmp_path: Path, sort_by: Any, sort_order: Any
) -> None:
    """SQLite walks the order's own index, from the place where the last page ended."""
    for i in range(3):
        store.insert_job(replace(named(tmp_path, f"job-{i}", i), warm_pool=WarmPool("InUse")))
    for filters in ({}, *({name: value} for name, value in FILTERS.items()), FILTERS):
        query = JobQuery(sort_by=sort_by, sort_order=sort_order, limit=1, **filters)
        token = store.list_jobs(query)[1]
        assert token is not None
        first, second = (plan(store, *statement(one)) for one in (query, replace(query, token=token)))
        for explained in (first, second):
            assert "TEMP B-TREE" not in explained, filters
            assert "USING INDEX jobs_by" in explained or "USING COVERING INDEX" in explained, filters
        assert second.startswith("SEARCH jobs"), (filters, second)


def test_a_page_costs_the_same_wherever_it_is(store: SqliteStore) -> None:
    """The last page of many reads as many rows as the first."""
    with store.database.transaction() as db:
        rows = [(f"job-{i:05}", f"arn-{i}", i) for i in range(3000)]
        db.executemany(
            "INSERT INTO jobs (name, arn, status, secondary, created_us, modified_us)"
            " VALUES (?, ?, 'Completed', 'Completed', ?3, ?3)",
            rows,
        )
    steps = Steps(store)
    query = JobQuery(limit=100)
    first = steps.of(lambda: store.list_jobs(query))
    token = None
    for _ in range(29):
        token = store.list_jobs(replace(query, token=token))[1]
    last = steps.of(lambda: store.list_jobs(replace(query, token=token)))
    assert 0 < last <= first * 1.5, "a comparison with the token's place is all that is added"
    rare = steps.of(lambda: store.list_jobs(JobQuery(status="Failed")))
    assert rare <= first, "a status that no job has is not looked for in all of them"


def test_filters(store: SqliteStore, tmp_path: Path) -> None:
    """Each narrows the list; a warm pool's status is shown."""
    for i in range(4):
        store.insert_job(named(tmp_path, f"job-{i}", seconds=10 * i))
    ended = named(tmp_path, "job-3", 30)
    later = START + timedelta(seconds=99)
    failed = advance(ended.lifecycle, events.Failed("x"), later)
    store.update_job(replace(ended, lifecycle=failed, warm_pool=WarmPool("Terminated", 5)))

    def names(**filters: Any) -> list[str]:
        query = JobQuery(sort_by="Name", sort_order="Ascending", **filters)
        return [found.name for found in store.list_jobs(query)[0]]

    assert names(name_contains="b-1") == ["job-1"]
    assert names(status="Failed") == ["job-3"]
    assert names(created_after=START + timedelta(seconds=10)) == ["job-2", "job-3"]
    assert names(created_before=START + timedelta(seconds=10)) == ["job-0"]
    assert names(modified_after=START + timedelta(seconds=50)) == ["job-3"]
    assert names(modified_before=START + timedelta(seconds=10), status="InProgress") == ["job-0"]
    assert names(warm_pool_status="Terminated") == ["job-3"]
    (shown,), _ = store.list_jobs(JobQuery(status="Failed"))
    assert (shown.secondary, shown.modified, shown.warm_pool_status) == ("Failed", later, "Terminated")
    assert [j.name for j in store.unfinished_jobs()] == ["job-0", "job-1", "job-2"]


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "e30=",
        "WyJOYW1lL0FzY2VuZGluZyIsICJhIiwgImEiXQ==",
        "W1tdLDEsMV0=",
        "é",
        "WyJDcmVhdGlvblRpbWUvRGVzY2VuZGluZyIsMWUzMCwiYSJd",
    ],
)
def test_a_foreign_token_is_refused(store: SqliteStore, token: str) -> None:
    """Nonsense, and a token of another order."""
    with pytest.raises(ValidationFailed, match="NextToken"):
        store.list_jobs(JobQuery(token=token))
