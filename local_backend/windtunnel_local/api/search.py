"""The request of the operation Search as a query. The properties and their types come from AWS's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.api import codec
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.search_query import (
    Condition,
    Group,
    Kind,
    Nested,
    Property,
    Scalar,
    SearchQuery,
)
from windtunnel_local.service.ground.unix_time import microseconds

_MOST_PARTS = 50
_KINDS: Mapping[str, Kind] = {
    "string": "text",
    "integer": "number",
    "long": "number",
    "float": "number",
    "double": "number",
    "boolean": "flag",
    "timestamp": "moment",
}
_NAMED: Mapping[str, Kind] = {"Metrics": "number", "Tags": "text"}
_TEXT_ONLY = ("Contains", "In")
_ORDERED = ("GreaterThan", "GreaterThanOrEqualTo", "LessThan", "LessThanOrEqualTo")
_SERVED = ("Resource", "SearchExpression", "SortBy", "SortOrder", "MaxResults", "NextToken")


def query_of(request: Mapping[str, Any]) -> SearchQuery:
    """The query of a Search request.

    Raises:
        ValidationFailed: another resource than TrainingJob, an unknown property, or an operator or a value that
            does not fit the property.
    """
    if request["Resource"] != "TrainingJob":
        raise ValidationFailed(
            f"Windtunnel has no resources of type {request['Resource']} to search. It has TrainingJob."
        )
    _refuse_unserved(request)
    expression = request.get("SearchExpression", {})
    if "SearchExpression" in request and not _parts(expression):
        raise ValidationFailed(
            "SearchExpression must have at least one of Filters, NestedFilters and SubExpressions."
        )
    count = _count(expression)
    if count > _MOST_PARTS:
        raise ValidationFailed(
            f"SearchExpression has {count} filters and expressions; at most are {_MOST_PARTS}."
        )
    return SearchQuery(
        where=_group(expression),
        sort_by=_sortable(request.get("SortBy", "LastModifiedTime")),
        sort_order=request.get("SortOrder", "Descending"),
        limit=request.get("MaxResults", 10),
        token=request.get("NextToken"),
    )


def _refuse_unserved(request: Mapping[str, Any]) -> None:
    if request.get("CrossAccountFilterOption") == "CrossAccount":
        raise ValidationFailed(
            "Windtunnel has one account: CrossAccountFilterOption can only be SameAccount."
        )
    unserved = sorted(request.keys() - {*_SERVED, "CrossAccountFilterOption"})
    if unserved:
        raise ValidationFailed(f"Windtunnel's Search does not serve {', '.join(unserved)}.")


def _parts(expression: Mapping[str, Any]) -> list[Any]:
    return [
        part for key in ("Filters", "NestedFilters", "SubExpressions") for part in expression.get(key, ())
    ]


def _count(expression: Mapping[str, Any]) -> int:
    inner = sum(1 + _count(part) for part in expression.get("SubExpressions", ()))
    nested = sum(len(part["Filters"]) for part in expression.get("NestedFilters", ()))
    return inner + nested + len(expression.get("Filters", ()))


def _group(expression: Mapping[str, Any]) -> Group:
    if expression and not _parts(expression):
        raise ValidationFailed(
            "A SearchExpression must not be empty: give Filters, NestedFilters or SubExpressions."
        )
    parts: list[Condition | Nested | Group] = [_condition(part) for part in expression.get("Filters", ())]
    parts += [_nested(part) for part in expression.get("NestedFilters", ())]
    parts += [_group(part) for part in expression.get("SubExpressions", ())]
    return Group(expression.get("Operator", "And"), tuple(parts))


def _nested(part: Mapping[str, Any]) -> Nested:
    name = part["NestedPropertyName"]
    conditions = []
    for given in part["Filters"]:
        inner = given["Name"] if given["Name"].startswith(f"{name}.") else f"{name}.{given['Name']}"
        condition = _condition({**given, "Name": inner})
        if ".".join(condition.property.list_path) != name:
            raise ValidationFailed(
                f"NestedPropertyName {name!r} is no list of TrainingJob's, or {given['Name']!r} is not of its"
                " elements. An example: InputDataConfig with InputDataConfig.ChannelName."
            )
        conditions.append(condition)
    return Nested(conditions[0].property.list_path, tuple(conditions))


def _condition(given: Mapping[str, Any]) -> Condition:
    found = property_of(given["Name"])
    operator, value = given.get("Operator", "Equals"), given.get("Value")
    if operator in ("Exists", "NotExists"):
        if value is not None:
            raise ValidationFailed(f"Filter {found.name}: {operator} takes no Value.")
        return Condition(found, operator)
    if value is None:
        raise ValidationFailed(f"Filter {found.name}: {operator} needs a Value.")
    if operator in _TEXT_ONLY and found.kind not in ("text", "loose"):
        raise ValidationFailed(f"Filter {found.name}: {operator} is only supported for text properties.")
    if operator in _ORDERED and found.kind in ("text", "flag"):
        raise ValidationFailed(f"Filter {found.name}: {operator} is not supported for text properties.")
    if operator == "In":
        return Condition(found, operator, tuple(text.strip() for text in value.split(",")))
    if operator == "Contains":
        return Condition(found, operator, (value,))
    scalar = _scalar(found, value)
    if operator in _ORDERED and isinstance(scalar, str):
        raise ValidationFailed(f"Filter {found.name}: {operator} needs a number; {value!r} is none.")
    return Condition(found, operator, (scalar,))


def _scalar(found: Property, value: str) -> Scalar:
    """The filter's value, converted to the property's type. Raises ``ValidationFailed``."""
    try:
        if found.kind == "text":
            return value
        if found.kind == "flag":
            return {"true": 1, "false": 0}[value.lower()]
        if found.kind == "moment":
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
        return _number(value)
    except (KeyError, ValueError, OverflowError):
        if found.kind == "loose":
            return value
        wanted = {
            "flag": "true or false",
            "moment": "a time as YYYY-mm-ddTHH:MM:SS, in UTC",
            "number": "an integer or a decimal number",
        }[found.kind]
        raise ValidationFailed(
            f"Filter {found.name}: the Value must be {wanted}; given: {value[:100]!r}."
        ) from None


def _number(text: str) -> int | float:
    try:
        whole = int(text)
    except ValueError:
        value = float(text)
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(text) from None
        return value
    if abs(whole) >= 1 << 62:
        raise ValueError(text)
    return whole


# --- properties ----------------------------------------------------------------------


def property_of(name: str) -> Property:
    """A property by its name in a filter.

    Raises:
        ValidationFailed: AWS's TrainingJob has no such property, or it is not a single value.
    """
    head, _, rest = name.partition(".")
    if head in _NAMED and rest and not (head == "Tags" and rest in ("Key", "Value")):
        return Property(name, (head, _spelled(rest, name)), _NAMED[head])
    shape: Any = codec.service_model("sagemaker").shape_for("TrainingJob")
    path: list[str] = []
    list_path: tuple[str, ...] = ()
    steps = name.split(".")
    while steps:
        if shape.type_name == "map":  # the rest is one key, which may have dots
            path.append(_spelled(".".join(steps), name))
            return Property(name, tuple(path), "loose", list_path)
        step = steps.pop(0)
        if shape.type_name != "structure" or step not in shape.members:
            raise _unknown(name, shape, step)
        path.append(step)
        shape = shape.members[step]
        if shape.type_name == "list":
            if list_path:
                raise ValidationFailed(
                    f"{name} is a list within a list: Windtunnel's Search does not look there."
                )
            list_path, path, shape = tuple(path), [], shape.member
    if shape.type_name not in _KINDS or not path:
        raise _unknown(name, shape, "")
    return Property(name, tuple(path), _KINDS[shape.type_name], list_path)


def _sortable(name: str) -> Property:
    found = property_of(name)
    if found.list_path:
        raise ValidationFailed(
            f"SortBy {name} is in a list: a job has any number of it, and so no order by it."
        )
    return found


def _spelled(key: str, name: str) -> str:
    if not key or '"' in key or not key.isprintable():
        raise ValidationFailed(f"{name!r} is not a property's name that can be searched for.")
    return key


def _unknown(name: str, shape: Any, step: str) -> ValidationFailed:
    members: Sequence[str] = sorted(shape.members) if shape.type_name == "structure" else ()
    where = f" {step!r} is not one of {', '.join(members)}." if step and members else ""
    hint = f" Name one of its members: {', '.join(members)}." if members and not step else where
    return ValidationFailed(
        f"Unknown property name: {name[:255]}.{hint} Others begin with HyperParameters., Metrics. or Tags."
    )
