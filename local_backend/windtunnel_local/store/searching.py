"""The operation Search as SQL: every condition becomes an expression over a job's columns and JSON documents.

The SQL is built from constants only; names and values of the request are bound as parameters.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from windtunnel_local.service import answers
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.search_query import (
    Condition,
    Group,
    Nested,
    Operator,
    Property,
    SearchQuery,
)
from windtunnel_local.service.ground.unix_time import microseconds
from windtunnel_local.store.codec import decode_job
from windtunnel_local.store.database import Row
from windtunnel_local.store.paging import PageToken, decode_token

_JOBS = "SELECT jobs.name, arn, request, record, {sort} FROM jobs{index} JOIN job_documents USING (name)"
_COLUMNS: Mapping[tuple[str, ...], str] = {
    ("TrainingJobName",): "jobs.name",
    ("TrainingJobArn",): "arn",
    ("TrainingJobStatus",): "status",
    ("SecondaryStatus",): "secondary",
    ("CreationTime",): "created_us",
    ("LastModifiedTime",): "modified_us",
    ("TrainingEndTime",): "ended_us",
    ("WarmPoolStatus", "Status"): "warm_pool_status",
}
_INDEXES = {
    "jobs.name": "jobs_by_name",
    "status": "jobs_by_status",
    "created_us": "jobs_by_creation",
    "modified_us": "jobs_by_modification",
}
# Members of the answer that come unchanged from the request: SQL finds them without decoding the job.
_REQUESTED = frozenset(
    {
        "HyperParameters",
        "AlgorithmSpecification",
        "RoleArn",
        "InputDataConfig",
        "OutputDataConfig",
        "ResourceConfig",
        "VpcConfig",
        "CheckpointConfig",
        "ExperimentConfig",
        "TensorBoardOutputConfig",
        "Environment",
        "RetryStrategy",
    }
)
_UPDATED = ("ResourceConfig", "KeepAlivePeriodInSeconds")
"""The path below `_REQUESTED` that UpdateTrainingJob may change."""
_METRIC = (
    "(SELECT json_extract(value, '$.Value') FROM json_each(record, '$.final_metrics')"
    " WHERE json_extract(value, '$.MetricName') = ?)"
)
_TAG = "(SELECT value FROM tags WHERE tags.arn = jobs.arn AND key = ?)"
_TAGS = (
    "json_each((SELECT json_group_array(json_object('Key', key, 'Value', value)) FROM tags"
    " WHERE tags.arn = jobs.arn))"
)
_ANY = "EXISTS (SELECT 1 FROM"
_SIGNS = {"GreaterThan": ">", "GreaterThanOrEqualTo": ">=", "LessThan": "<", "LessThanOrEqualTo": "<="}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "flag": (int,),
    "moment": (int,),
    "loose": (int, float, str),
}
_LOWEST: Mapping[str, str] = {"text": "''", "number": "-1e308", "flag": "-1", "moment": "-1"}


class Sql:
    """A piece of SQL, with the values to bind to it."""

    def __init__(self, text: str, *values: Any) -> None:
        self.text = text
        self.values = list(values)


def statement(query: SearchQuery) -> Sql:
    """The query for a page and one row more: name, arn, request, record, and the value to sort by.

    Raises:
        ValidationFailed: the page token was not given out for this order.
    """
    sort, kind = _value(query.sort_by), query.sort_by.kind
    column = sort.text if sort.text in _INDEXES else None
    if kind == "loose":
        sort = Sql(f"coalesce(number({sort.text}), {sort.text}, '')", *sort.values, *sort.values)
    elif column is None:
        sort = Sql(f"ifnull({sort.text}, {_LOWEST[kind]})", *sort.values)
    where = _group(query.where)
    index = f" INDEXED BY {_INDEXES[column]}" if column else ""
    descending = query.sort_order == "Descending"
    conditions, values = [where.text], [*sort.values, *where.values]
    if query.token is not None:
        token = decode_token(query.token, order(query), _KINDS[kind])
        conditions.append(f"({sort.text}, jobs.name) {'<' if descending else '>'} (?, ?)")
        values += [*sort.values, token.value, token.name]
    direction = "DESC" if descending else "ASC"
    by = f"{column or '5'} {direction}, " if column != "jobs.name" else ""  # 5: the result's fifth column
    text = (
        f"{_JOBS.format(sort=sort.text, index=index)} WHERE {' AND '.join(conditions)}"
        f" ORDER BY {by}jobs.name {direction} LIMIT ?"
    )
    return Sql(text, *values, query.limit + 1)


def page(rows: list[Row], query: SearchQuery) -> tuple[list[Job], str | None]:
    """The jobs of the page, and the token of the next page; None if there is none."""
    found = [decode_job(*row[:4]) for row in rows[: query.limit]]
    if len(rows) <= query.limit or not found:
        return found, None
    last = rows[len(found) - 1]
    return found, PageToken(order(query), last[4], last[0]).encode()


def order(query: SearchQuery) -> str:
    """The name of the sort order, as page tokens have it."""
    return f"{query.sort_by.name}/{query.sort_order}"


def add_functions(db: sqlite3.Connection) -> None:
    """Define the SQL functions that the statements call, on the connection that searches."""
    db.create_function("number", 1, number, deterministic=True)
    db.create_function("described", 5, _described, deterministic=True)


def number(value: Any) -> float | None:
    """The number that a text spells, or None. Hyperparameters are texts."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


# --- conditions --------------------------------------------------------------------


def _group(group: Group) -> Sql:
    parts = [
        _group(part)
        if isinstance(part, Group)
        else _nested(part)
        if isinstance(part, Nested)
        else _condition(part)
        for part in group.parts
    ]
    if not parts:
        return Sql("1")
    joined = f" {group.operator.upper()} ".join(part.text for part in parts)
    return Sql(f"({joined})", *(value for part in parts for value in part.values))


def _condition(condition: Condition) -> Sql:
    if not condition.property.list_path:
        return _comparison(condition, _value(condition.property))
    if condition.operator in ("NotEquals", "NotExists"):  # no element fulfils the opposite
        opposite: Operator = "Equals" if condition.operator == "NotEquals" else "Exists"
        inner = _condition(Condition(condition.property, opposite, condition.values))
        return Sql(f"NOT {inner.text}", *inner.values)
    return _nested(Nested(condition.property.list_path, (condition,)))


def _nested(nested: Nested) -> Sql:
    source = _elements(nested.list_path)
    parts = [
        _comparison(condition, Sql("json_extract(element.value, ?)", _json_path(condition.property.path)))
        for condition in nested.conditions
    ]
    where = " AND ".join(part.text for part in parts)
    values = [*source.values, *(value for part in parts for value in part.values)]
    return Sql(f"{_ANY} {source.text} AS element WHERE {where})", *values)


def _comparison(condition: Condition, value: Sql) -> Sql:
    """Compare a scalar with the condition's values. A missing scalar fulfils only NotEquals and NotExists."""
    operator, kind = condition.operator, condition.property.kind
    if operator in ("Exists", "NotExists"):
        return Sql(f"({value.text} IS {'NOT ' if operator == 'Exists' else ''}NULL)", *value.values)
    if operator == "Contains":
        return Sql(f"ifnull(instr({value.text}, ?) > 0, 0)", *value.values, *condition.values)
    if operator == "In":
        marks = ", ".join("?" for _ in condition.values)
        return Sql(f"ifnull({value.text} IN ({marks}), 0)", *value.values, *condition.values)
    given = condition.values[0]
    if kind == "loose" and not isinstance(given, str):
        # As AWS does: compared with a whole number, only the whole part of a decimal number counts.
        text = f"number({value.text})"
        value = Sql(f"CAST({text} AS INTEGER)" if isinstance(given, int) else text, *value.values)
    if operator in ("Equals", "NotEquals"):
        equal = f"ifnull({value.text} = ?, 0)"
        return Sql(equal if operator == "Equals" else f"NOT {equal}", *value.values, given)
    return Sql(f"ifnull({value.text} {_SIGNS[operator]} ?, 0)", *value.values, given)


# --- where a property is -------------------------------------------------------------


def _value(found: Property) -> Sql:
    """SQL for a scalar property of a job."""
    if found.path in _COLUMNS:
        return Sql(_COLUMNS[found.path])
    head = found.path[0]
    if head == "Metrics":
        return Sql(_METRIC, found.path[1])
    if head == "Tags":
        return Sql(_TAG, found.path[1])
    if head in _REQUESTED and found.path != _UPDATED:
        return Sql("json_extract(request, ?)", _json_path(found.path))
    return Sql("json_extract(described(jobs.name, arn, request, record, ?), '$[0]')", json.dumps(found.path))


def _elements(list_path: tuple[str, ...]) -> Sql:
    """SQL for the elements of one of a job's lists, as rows with a column ``value``."""
    if list_path[0] == "Tags":
        return Sql(_TAGS)
    if list_path[0] in _REQUESTED:
        return Sql("json_each(request, ?)", _json_path(list_path))
    return Sql("json_each(described(jobs.name, arn, request, record, ?), '$[0]')", json.dumps(list_path))


def _json_path(path: tuple[str, ...]) -> str:
    # In SQLite's JSON paths a label ends at the next quote; a quote within cannot be escaped.
    return "$" + "".join(f'."{name}"' for name in path)


def _described(name: str, arn: str, request: str, record: str, path: str) -> str:
    """A member of the answer that is computed from the job's record, as a JSON list with one element. Slow."""
    value: Any = answers.found(decode_job(name, arn, request, record), {})
    for step in json.loads(path):
        value = value.get(step) if isinstance(value, dict) else None
    return json.dumps([value], default=_plain)


def _plain(value: Any) -> Any:
    return microseconds(value) if isinstance(value, datetime) else str(value)
