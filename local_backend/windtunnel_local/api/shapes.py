"""Converts outputs to plain values by the shapes of AWS's models: a writer function for each shape, made once.

To look up type and members in botocore's shape for every value of every answer would take longer
than everything else that an answer needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

Writer: TypeAlias = Callable[[Any], Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "boolean": (bool,),
}


class Writers:
    """The writers of one format. Thread-safe: if two threads make the same writer, either will do."""

    def __init__(self, timestamp: Callable[[datetime], Any]) -> None:
        """``timestamp``: converts a time to the format's own value."""
        self._timestamp = timestamp
        self._made: dict[Any, Writer] = {}

    def of(self, shape: Any) -> Writer:
        """The writer of a shape: it converts an output value to plain values.

        Raises (the writer):
            TypeError: the value has a member that the shape does not know, or of another type.
        """
        writer = self._made.get(shape)
        if writer is None:
            writer = self._made[shape] = self._make(shape)
        return writer

    def _make(self, shape: Any) -> Writer:
        kind = shape.type_name
        if kind == "structure":
            return self._structure(shape)
        if kind == "list":
            return self._list(shape)
        if kind == "map":
            return self._map(shape)
        if kind == "timestamp":
            timestamp = self._timestamp
            return lambda value: timestamp(value) if isinstance(value, datetime) else value
        return _scalar(shape)

    def _structure(self, shape: Any) -> Writer:
        members: dict[str, Writer] = {}

        def write(value: Mapping[str, Any]) -> dict[str, Any]:
            result = {}
            for name, item in value.items():
                writer = members.get(name)
                if writer is None:
                    if name not in shape.members:
                        raise TypeError(f"{shape.name} has no member {name}")
                    writer = members[name] = self.of(shape.members[name])
                if item is not None:
                    result[name] = writer(item)
            return result

        return write

    def _list(self, shape: Any) -> Writer:
        member = shape.member
        return lambda value: list(map(self.of(member), value))

    def _map(self, shape: Any) -> Writer:
        member = shape.value

        def write(value: Mapping[Any, Any]) -> dict[str, Any]:
            writer = self.of(member)
            return {str(key): writer(item) for key, item in value.items()}

        return write


def _scalar(shape: Any) -> Writer:
    kind = shape.type_name
    types = _TYPES[kind]
    exact = types[0]

    def write(value: Any) -> Any:
        if type(value) is exact:
            return value
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
            raise TypeError(f"{shape.name} is of type {kind}; the service gave {type(value).__name__}")
        return value

    return write
