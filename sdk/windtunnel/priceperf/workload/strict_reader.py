r"""Read JSON into dataclasses by their annotations. An error names the wrong member.

The reader is lenient in two cases, both declared at the member:

- a member with a default may be missing or null;
- a member marked `Shown` is left out if its value is of another type; so are entries of a list that are no objects.

A script may have written anything, so characters of texts that cannot be printed are escaped, as ``\x1b``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InvalidCounters, quoted

MOST_COUNTED = 1e30
"""Upper limit of every number, so that sums stay finite: the largest training runs have some 1e26 FLOPs."""


class Limits(NamedTuple):
    """The smallest and largest allowed value of a number."""

    least: float = 0.0
    most: float = MOST_COUNTED


AtLeastOne = Annotated[int, Limits(1)]
Plain = str | int | float | bool
"""A JSON value that is no list, object or null."""
Size = Annotated[float, Limits(1e-9)]
_ONLY_SHOWN = "shown"
_T = TypeVar("_T")
Shown = Annotated[_T, _ONLY_SHOWN]
"""Marks a member that no modelled figure depends on: it is left out if the file has a value of another type."""


def read(cls: type[_T], given: Mapping[str, Any]) -> _T:
    """Create a ``cls`` from a JSON object; members that ``cls`` does not have are ignored.

    Raises:
        InvalidCounters: a missing or impossible member, which is named.
    """
    found: _T = _object(cls, given, "")
    return found


class _OfAnotherKind(InvalidCounters):
    """The value of a member itself is wrong. An error deeper inside it is a plain `InvalidCounters`."""


def _object(cls: Any, given: Mapping[str, Any], where: str) -> Any:
    values: dict[str, Any] = {}
    for member in _members(cls):
        value = given.get(member.name)
        if value is None and member.optional:
            continue
        inner = f"{where}.{member.name}" if where else member.name
        try:
            values[member.name] = _value(member.kind, value, inner if where else f"counters.{inner}", inner)
        except _OfAnotherKind as error:
            if not member.shown:
                raise InvalidCounters(str(error)) from None
    return cls(**values)


class _Member(NamedTuple):
    name: str
    kind: Any
    optional: bool
    shown: bool


@cache
def _members(cls: Any) -> tuple[_Member, ...]:
    kinds = get_type_hints(cls, include_extras=True)
    return tuple(
        _Member(
            part.name,
            kinds[part.name],
            part.default is not MISSING or part.default_factory is not MISSING,
            _ONLY_SHOWN in getattr(kinds[part.name], "__metadata__", ()),
        )
        for part in fields(cls)
    )


def _value(kind: Any, value: Any, path: str, inner: str) -> Any:
    """Convert a value to its annotation. ``path``: its name in errors; ``inner``: the path of its members."""
    if kind == Plain:
        if not isinstance(value, Plain):
            _refuse(path, "a text, a number or a flag", value)
        return _printable(value) if isinstance(value, str) else value
    limits = Limits()
    while get_origin(kind) in (
        Annotated,
        Union,
        UnionType,
    ):  # a union is always with None, which the caller has handled
        limits = next(
            (item for item in getattr(kind, "__metadata__", ()) if isinstance(item, Limits)), limits
        )
        kind = get_args(kind)[0]
    origin, of = get_origin(kind) or kind, get_args(kind)
    if kind in (int, float):
        return kind(_number(value, path, limits))
    if kind in (str, bool):
        if not isinstance(value, kind):
            _refuse(path, "a text" if kind is str else "a flag", value)
        return _printable(value) if isinstance(value, str) else value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            _refuse(path, "a list", value)
        entries = [item for item in value if isinstance(item, Mapping)] if is_dataclass(of[0]) else value
        return tuple(_value(of[0], item, path, inner) for item in entries)
    if issubclass(origin, tuple):
        return _named_tuple(kind, value, inner)
    if not isinstance(value, Mapping):
        _refuse(path, "an object", value)
    if is_dataclass(kind):
        return _object(kind, value, inner)
    return {
        _printable(str(key)): _value(of[1], item, f"{inner}.{key}", f"{inner}.{key}")
        for key, item in value.items()
    }


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        for sign in text
    )


def _number(value: Any, path: str, limits: Limits) -> int | float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Comparing also works for ints beyond a float, and is false for NaN.
    if number and limits.least <= value <= limits.most:
        return value  # type: ignore[no-any-return]
    too_large = number and value > limits.most
    limit = f"{limits.least:g} to {limits.most:g}" if too_large else f"{limits.least:g} or more"
    raise _OfAnotherKind(f"{path} must be a number of {limit}, not {quoted(value)}")


def _named_tuple(kind: Any, value: Any, inner: str) -> Any:
    names, kinds = kind._fields, get_type_hints(kind, include_extras=True)
    if not isinstance(value, list | tuple) or len(value) != len(names):
        _refuse(inner, f"lists of {', '.join(names)}", value)
    return kind(
        *(_value(kinds[name], item, f"{inner}.{name}", "") for name, item in zip(names, value, strict=True))
    )


def _refuse(path: str, expected: str, value: object) -> NoReturn:
    raise _OfAnotherKind(f"{path} must be {expected}, not {quoted(value)}")
