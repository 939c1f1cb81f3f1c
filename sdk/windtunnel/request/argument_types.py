"""Checks that arguments have the types of their annotations."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from windtunnel.errors import ConfigurationError

_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    bool: "True or False",
    os.PathLike: "a path",
    dict: "a dict",
    Mapping: "a dict",
    list: "a list",
}


def check_kinds(arguments: object, of: type, skip: Collection[str]) -> None:
    """Check that the attributes of ``arguments`` have the types with which class ``of`` annotates them.

    The content of a dict is not checked. ``skip``: arguments whose own check has a better message.

    Raises:
        ConfigurationError: names the first argument of a wrong type.
    """
    for name, kind in _hints(of).items():
        if name not in skip:
            check_kind(name, getattr(arguments, name), kind)


def check_kind(name: str, value: object, kind: Any) -> None:
    """Raise `ConfigurationError` unless the value has the type ``kind``: a class, a list of a class, or a union."""
    if not _fits(value, kind):
        raise ConfigurationError(f"{name}={value!r}: {_described(kind)} is needed.")


@lru_cache
def _hints(of: type) -> Mapping[str, Any]:
    return get_type_hints(of)


def _fits(value: object, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind is None or kind is type(None):
        return value is None
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(kind))
    if origin is int and isinstance(value, bool):
        return False
    if not isinstance(value, origin):
        return False
    return not isinstance(value, list) or all(_fits(item, get_args(kind)[0]) for item in value)


def _described(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        choices = [_described(choice) for choice in get_args(kind) if choice is not type(None)]
        return " or ".join(dict.fromkeys(choices))
    if origin is list:
        return f"a list (each item {_described(get_args(kind)[0])})"
    return _NAMES.get(origin, "another kind of value")
