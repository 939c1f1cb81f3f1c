"""A Search request as data: conditions on a job's properties, and an order."""

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
"""The type of a property's values. moment: Unix microseconds; loose: text that may also be compared as a number."""

Scalar: TypeAlias = str | int | float


@dataclass(frozen=True)
class Property:
    """A member of AWS's TrainingJob structure: ``ResourceConfig.InstanceType``, ``HyperParameters.epochs``.

    ``path`` leads to the value. If there is a list on the way, ``list_path`` leads to the list, and ``path``
    begins at its element. Metrics and Tags are lists too, but are addressed by name, like maps.
    """

    name: str
    path: tuple[str, ...]
    kind: Kind
    list_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """One comparison. For a list it is true if any of the list's values satisfies it."""

    property: Property
    operator: Operator
    values: tuple[Scalar, ...] = ()
    """One value; any number for In, none for Exists and NotExists."""


@dataclass(frozen=True)
class Nested:
    """True if one element of the list satisfies all conditions; their paths begin at the element."""

    list_path: tuple[str, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Group:
    """All (And) or any (Or) of its parts must be true; a group without parts finds everything."""

    operator: Literal["And", "Or"]
    parts: tuple[Condition | Nested | Group, ...]


@dataclass(frozen=True)
class SearchQuery:
    """The parameters of Search: which jobs, in which order, which page."""

    where: Group
    sort_by: Property
    sort_order: Literal["Ascending", "Descending"] = "Descending"
    limit: int = 10
    token: str | None = None


def contains_count(part: Condition | Nested | Group) -> int:
    """The number of Contains operators in an expression."""
    if isinstance(part, Condition):
        return int(part.operator == "Contains")
    parts: Sequence[Condition | Nested | Group] = part.conditions if isinstance(part, Nested) else part.parts
    return sum(contains_count(inner) for inner in parts)
