"""What Search asks for, as data: conditions on a job's properties, and an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator = Literal[
    "Equals",
    "NotEquals",
    "GreaterThan",
    "GreaterThanOrEqualTo",
    "LessThan",
    "LessThanOrEqualTo",
    "Contains",
    "Exists",
    "NotExists",
    "In",
]
Kind = Literal["text", "number", "flag", "moment", "loose"]
"""Of a property's values. A moment is Unix microseconds; loose: text, or the number that it spells."""

Scalar: TypeAlias = str | int | float


@dataclass(frozen=True)
class Property:
    """A member of AWS's TrainingJob structure: ``ResourceConfig.InstanceType``, ``HyperParameters.epochs``.

    ``path`` leads to a value; where it crosses a list, ``list_path`` leads there, and ``path`` goes on from
    an element. Metrics and Tags are lists too, but are named as if they were maps.
    """

    name: str
    path: tuple[str, ...]
    kind: Kind
    list_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """One comparison. Of the values of a list, one that satisfies it is enough."""

    property: Property
    operator: Operator
    values: tuple[Scalar, ...] = ()
    """One, or for In any number; none for Exists and NotExists."""


@dataclass(frozen=True)
class Nested:
    """One element of the list satisfies all conditions, whose paths begin at the element."""

    list_path: tuple[str, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Group:
    """All or any of its parts; none: everything."""

    operator: Literal["And", "Or"]
    parts: tuple[Condition | Nested | Group, ...]


@dataclass(frozen=True)
class SearchQuery:
    """Search: which jobs, in which order, which page."""

    where: Group
    sort_by: Property
    sort_order: Literal["Ascending", "Descending"] = "Descending"
    limit: int = 10
    token: str | None = None


def contains_count(part: Condition | Nested | Group) -> int:
    """How many Contains an expression has."""
    if isinstance(part, Condition):
        return int(part.operator == "Contains")
    parts: Sequence[Condition | Nested | Group] = part.conditions if isinstance(part, Nested) else part.parts
    return sum(contains_count(inner) for inner in parts)
