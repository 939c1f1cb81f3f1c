"""Validates a JSON document by a shape of AWS's model, with AWS's words for each violation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from windtunnel.priceperf.instances import NEURON_TYPES
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.patterns import compiled

_SHOWN = 256  # most characters of a refused value in a message
_LISTED = 20  # most violations that a message lists
_INTEGER_LIMITS = {"integer": 1 << 31, "long": 1 << 63}
_MAX_TIMESTAMP = 253402300799  # 9999-12-31T23:59:59Z
# Our extensions of AWS's model: a channel may name a directory of this machine, and a job any
# instance that can be rehearsed.
_FILE_URI_SHAPES = frozenset({"S3Uri"})
_ALSO_VALID = {"TrainingInstanceType": NEURON_TYPES}


def accepted(shape: Any, document: Any, code: str = "ValidationException") -> dict[str, Any]:
    """Validate the document; returns it with timestamps as ``datetime``.

    Args:
        shape: a botocore structure shape, or None: the operation takes nothing.
        document: what `json.loads` returned.
        code: the service's error code for input that its model refuses.

    Raises:
        ApiError: ``code``, with every violation listed.
    """
    if not isinstance(document, dict):
        raise ApiError("SerializationException", "Start of structure or map expected: a JSON object.")
    if shape is None:
        return {}
    walker = _Walker()
    values: dict[str, Any] = walker.structure(shape, document, "")
    if walker.violations:
        count = walker.count
        plural = "" if count == 1 else "s"
        listed = "; ".join(walker.violations)
        raise ApiError(code, f"{count} validation error{plural} detected: {listed}")
    return values


class _Walker:
    """Walks one document, gathering violations instead of stopping at the first."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.count = 0

    def refuse(self, value: Any, path: str, constraint: str) -> None:
        """Record a violation in AWS's wording; after the first `_LISTED` they are only counted."""
        self.count += 1
        if len(self.violations) < _LISTED:
            self.violations.append(
                f"Value {_shown(value)} at '{path}' failed to satisfy constraint: Member must {constraint}"
            )

    def value(self, shape: Any, value: Any, path: str) -> Any:
        """Check a value of any shape; returns it converted. With violations, do not use what it returns."""
        kind = shape.type_name
        if kind == "structure":
            return self.structure(shape, value, path)
        if kind == "list":
            return self.list(shape, value, path)
        if kind == "map":
            return self.map(shape, value, path)
        if kind == "string":
            return self.string(shape, value, path)
        if kind in _INTEGER_LIMITS or kind in ("float", "double"):
            return self.number(shape, value, path)
        if kind == "boolean":
            if not isinstance(value, bool):
                self.refuse(value, path, "be a boolean: true or false")
            return value
        return self.timestamp(value, path)  # no operation that is served takes a blob

    def structure(self, shape: Any, value: Any, path: str) -> dict[str, Any]:
        """Check that all members are known and all required ones present; null means absent."""
        if not isinstance(value, dict):
            self.refuse(value, path, "be a structure (a JSON object)")
            return {}
        members = shape.members
        result = {}
        for name, item in value.items():
            here = _join(path, _lower_first(name))
            if name not in members:
                self.refuse(item, here, f"be known; valid members: [{', '.join(sorted(members))}]")
            elif item is not None:
                result[name] = self.value(members[name], item, here)
        for name in shape.required_members:
            if value.get(name) is None:
                self.refuse(None, _join(path, _lower_first(name)), "not be null")
        return result

    def list(self, shape: Any, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            self.refuse(value, path, "be a list (a JSON array)")
            return []
        self.length(shape, value, path)
        if self.too_long(shape, value):
            return []
        return [self.value(shape.member, item, f"{path}.{i}.member") for i, item in enumerate(value, 1)]

    def map(self, shape: Any, value: Any, path: str) -> Any:
        """Check the size, each key and each value; a violation names the key."""
        if not isinstance(value, dict):
            self.refuse(value, path, "be a map (a JSON object)")
            return {}
        self.length(shape, value, path)
        if self.too_long(shape, value):
            return {}
        result = {}
        for name, item in value.items():
            here = f"{path}.{name[:_SHOWN]}"
            self.string(shape.key, name, f"{here}.key")
            result[name] = self.value(shape.value, item, f"{here}.value")
        return result

    def string(self, shape: Any, value: Any, path: str) -> Any:
        """Check a text: its length, enum and pattern."""
        if not isinstance(value, str):
            self.refuse(value, path, "be a string")
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            self.refuse(value.encode(errors="replace").decode(), path, "be valid Unicode text")
            return value
        # AWS's patterns allow NUL in most members, but no variable or argument of a program can hold it.
        if "\0" in value:
            self.refuse(value, path, "be text without NUL characters (\\x00)")
            return value
        self.length(shape, value, path)
        if shape.enum and value not in shape.enum and value not in _ALSO_VALID.get(shape.name, ()):
            self.refuse(value, path, f"satisfy enum value set: [{', '.join(shape.enum)}]")
        pattern = shape.metadata.get("pattern")
        if pattern and not self.too_long(shape, value) and not _matches(shape.name, pattern, value):
            self.refuse(value, path, f"satisfy regular expression pattern: {pattern}")
        return value

    def number(self, shape: Any, value: Any, path: str) -> Any:
        """Check a number's type and range."""
        kind = shape.type_name
        limit = _INTEGER_LIMITS.get(kind)
        if type(value) is not int and (limit or type(value) is not float):
            self.refuse(value, path, f"be of type {kind}")
            return value
        if not limit and not _is_finite(value):
            self.refuse(value, path, f"be of type {kind}: a finite number")
            return value
        if limit and not -limit <= value < limit:
            self.refuse(value, path, f"be of type {kind}: from {-limit} to {limit - 1}")
        low, high = shape.metadata.get("min"), shape.metadata.get("max")
        if low is not None and value < low:
            self.refuse(value, path, f"have value greater than or equal to {low}")
        if high is not None and value > high:
            self.refuse(value, path, f"have value less than or equal to {high}")
        return value

    def timestamp(self, value: Any, path: str) -> Any:
        """Read a time: Unix seconds, as in JSON 1.1, or ISO 8601."""
        try:
            if type(value) in (int, float) and 0 <= value <= _MAX_TIMESTAMP:
                return datetime.fromtimestamp(value, timezone.utc)
            if isinstance(value, str):
                parsed = datetime.fromisoformat(value.replace("Z", "+00:00"))
                return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)
        except (ValueError, OverflowError):
            pass
        self.refuse(value, path, "be a timestamp: Unix seconds, or ISO 8601")
        return value

    def length(self, shape: Any, value: Any, path: str) -> None:
        """Check the number of characters or members against minimum and maximum."""
        low, high = shape.metadata.get("min"), shape.metadata.get("max")
        if self.too_long(shape, value):
            self.refuse(value, path, f"have length less than or equal to {high}")
        if low is not None and len(value) < low:
            self.refuse(value, path, f"have length greater than or equal to {low}")

    def too_long(self, shape: Any, value: Any) -> bool:
        """Whether the value is too long. Its content is not checked then, as it may be huge."""
        high: int | None = shape.metadata.get("max")
        return high is not None and len(value) > high


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _matches(shape_name: str, pattern: str, value: str) -> bool:
    if shape_name in _FILE_URI_SHAPES and value.startswith("file:///"):
        return True
    regex = compiled(pattern)
    return regex is None or regex.fullmatch(value) is not None


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping) and len(value) > _LISTED:
        text = f"{{{len(value)} members}}"
    else:
        text = _json(value)[: 2 * _SHOWN].encode(errors="replace").decode()
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}... ({len(text)} characters)"
    return f"'{text}'"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name[:_SHOWN]


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]
