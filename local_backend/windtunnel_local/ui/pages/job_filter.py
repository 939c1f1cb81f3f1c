"""The filter of the list of jobs: the form's fields, converted to a search of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from typing import Literal, get_args
from urllib.parse import urlencode

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import Status
from windtunnel_local.service.ground.search_query import (
    Condition,
    Group,
    Operator,
    Property,
    Scalar,
    SearchQuery,
)

ROWS = 50
STATUSES: tuple[str, ...] = get_args(Status)
NAME = Property("TrainingJobName", ("TrainingJobName",), "text")
STATUS = Property("TrainingJobStatus", ("TrainingJobStatus",), "text")
STATE = Property("SecondaryStatus", ("SecondaryStatus",), "text")
CREATED = Property("CreationTime", ("CreationTime",), "moment")
CHANGED = Property("LastModifiedTime", ("LastModifiedTime",), "moment")
POOL = Property("WarmPoolStatus.Status", ("WarmPoolStatus", "Status"), "text")
_TYPE = Property("ResourceConfig.InstanceType", ("ResourceConfig", "InstanceType"), "text")
_GROUP_TYPE = Property(
    "ResourceConfig.InstanceGroups.InstanceType",
    ("InstanceType",),
    "text",
    ("ResourceConfig", "InstanceGroups"),
)
SORTS: Mapping[str, Property] = {"name": NAME, "status": STATUS, "created": CREATED, "changed": CHANGED}
"""Sort orders that use an index, so that they are fast with 100,000 jobs too."""
BY_COST = "cost"
"""The sort order without an index: see `by_cost`."""


@dataclass(frozen=True)
class JobFilter:
    """The fields of the form, named as in the URL. Days are in this machine's time zone: ``2026-07-31``."""

    q: str = ""
    status: str = ""
    instance: str = ""
    tag: str = ""
    since: str = ""
    until: str = ""
    sort: str = "created"
    order: str = "down"
    token: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> JobFilter:
        """The filter of a URL's query; unknown fields are ignored."""
        return cls(
            **{field.name: given[field.name].strip() for field in fields(cls) if given.get(field.name)}
        )

    @property
    def narrows(self) -> bool:
        """Whether a field is set that may leave jobs out."""
        return any((self.q, self.status, self.instance, self.tag, self.since, self.until))

    def query(self, **changes: str) -> str:
        """The filter as a URL's query, with some fields changed. Without a token it leads to the first page."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {"token": ""} | changes
        plain = JobFilter()
        return urlencode({name: value for name, value in values.items() if value != getattr(plain, name)})

    def search(self) -> SearchQuery:
        """The filter as a search of the service.

        Raises:
            ValidationFailed: a field has a value that is not valid.
        """
        conditions: list[Condition | Group] = []
        if self.q:
            conditions.append(_is(NAME, "Contains", self.q))
        if self.status:
            _among("status", self.status, STATUSES)
            conditions.append(_is(STATUS, "Equals", self.status))
        if self.instance:
            pair = _is(_TYPE, "Equals", self.instance), _is(_GROUP_TYPE, "Equals", self.instance)
            conditions.append(Group("Or", pair))
        if self.tag:
            key, given, value = self.tag.partition("=")
            tag = Property(f"Tags.{key}", ("Tags", key), "text")
            conditions.append(_is(tag, "Equals", value) if given else Condition(tag, "Exists"))
        if self.since:
            conditions.append(_is(CREATED, "GreaterThanOrEqualTo", _day("since", self.since)))
        if self.until:
            conditions.append(_is(CREATED, "LessThan", _day("until", self.until, after=1)))
        _among("sort", self.sort, (*SORTS, BY_COST))
        _among("order", self.order, ("up", "down"))
        order: Literal["Ascending", "Descending"] = "Ascending" if self.order == "up" else "Descending"
        by = SORTS.get(self.sort, CREATED)
        return SearchQuery(Group("And", tuple(conditions)), by, order, ROWS, self.token or None)


def _is(found: Property, operator: Operator, value: Scalar) -> Condition:
    return Condition(found, operator, (value,))


def _among(field: str, value: str, valid: Mapping[str, object] | tuple[str, ...]) -> None:
    if value not in valid:
        raise ValidationFailed(f"{field} is one of {', '.join(valid)}; given: {value[:100]!r}.")


def _day(field: str, text: str, after: int = 0) -> int:
    """The beginning of a day, or of the day that is ``after`` days later: see `beginning_us`."""
    try:
        return beginning_us(datetime.strptime(text, "%Y-%m-%d").date() + timedelta(days=after))
    except (ValueError, OverflowError):
        raise ValidationFailed(f"{field} is a day, as 2026-07-31; given: {text[:100]!r}.") from None


def beginning_us(day: date) -> int:
    """The beginning of a day in this machine's time zone, in Unix microseconds."""
    # With the UTC offset of that time: on a day on which clocks change, the offset is another one later.
    return int(datetime.combine(day, time.min).astimezone().timestamp()) * 1_000_000
