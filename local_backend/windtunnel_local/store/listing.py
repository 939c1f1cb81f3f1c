"""ListTrainingJobs as SQL. Each sort order reads one index, from the end of the last page: nothing is sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windtunnel_local.service.ground.job import JobQuery, JobSummary
from windtunnel_local.service.ground.unix_time import microseconds, moment
from windtunnel_local.store.database import Row
from windtunnel_local.store.paging import PageToken, decode_token

_SUMMARIES = (
    "SELECT name, arn, status, secondary, created_us, modified_us, ended_us, warm_pool_status"
    " FROM jobs INDEXED BY"
)
_COLUMNS = {"Name": "name", "CreationTime": "created_us", "Status": "status"}
_INDEXES = {"Name": "jobs_by_name", "CreationTime": "jobs_by_creation", "Status": "jobs_by_status"}


def statement(query: JobQuery) -> tuple[str, list[Any]]:
    """The SQL, built from constants only, and the values to bind. It reads one row more than the page holds.

    Raises:
        ValidationFailed: the page token was not given out for this order.
    """
    column = _COLUMNS[query.sort_by]
    conditions, values = _filters(query)
    descending = query.sort_order == "Descending"
    if query.token is not None:
        token = decode_token(query.token, _order(query), (int,) if column == "created_us" else (str,))
        conditions.append(f"({column}, name) {'<' if descending else '>'} (?, ?)")
        values += [token.value, token.name]
    direction = "DESC" if descending else "ASC"
    order = f"name {direction}" if column == "name" else f"{column} {direction}, name {direction}"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # INDEXED BY, because the planner might prefer to fetch all matches and sort them.
    return (
        f"{_SUMMARIES} {_index(query)}{where} ORDER BY {order} LIMIT ?",
        [*values, query.limit + 1],
    )


def page(rows: Sequence[Row], query: JobQuery) -> tuple[list[JobSummary], str | None]:
    """The jobs of the page, and the token of the next page; None if there is none."""
    found = [_summary(row) for row in rows[: query.limit]]
    if len(rows) <= query.limit or not found:
        return found, None
    last = rows[len(found) - 1]
    value = {"Name": last[0], "CreationTime": last[4], "Status": last[2]}[query.sort_by]
    return found, PageToken(_order(query), value, last[0]).encode()


def _order(query: JobQuery) -> str:
    return f"{query.sort_by}/{query.sort_order}"


def _index(query: JobQuery) -> str:
    if query.sort_by == "CreationTime" and query.warm_pool_status is not None:
        return "jobs_by_warm_pool"
    if query.status is not None and query.sort_by != "Status":
        return "jobs_by_status" if query.sort_by == "Name" else "jobs_by_status_creation"
    return _INDEXES[query.sort_by]


def _filters(query: JobQuery) -> tuple[list[str], list[Any]]:
    """The conditions (constants), and the values to bind to them."""
    wanted: list[tuple[str, Any]] = [
        ("instr(name, ?) > 0", query.name_contains),
        ("status = ?", query.status),
        ("warm_pool_status = ?", query.warm_pool_status),
        ("created_us > ?", query.created_after and microseconds(query.created_after)),
        ("created_us < ?", query.created_before and microseconds(query.created_before)),
        ("modified_us > ?", query.modified_after and microseconds(query.modified_after)),
        ("modified_us < ?", query.modified_before and microseconds(query.modified_before)),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    return [condition for condition, _ in given], [value for _, value in given]


def _summary(row: Row) -> JobSummary:
    name, arn, status, secondary, created_us, modified_us, ended_us, warm_pool_status = row
    return JobSummary(
        name,
        arn,
        status,
        secondary,
        moment(created_us),
        moment(modified_us),
        None if ended_us is None else moment(ended_us),
        warm_pool_status,
    )
