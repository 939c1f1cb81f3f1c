"""Reads forms of the query protocol (``Dimensions.member.1.Name=x``) by botocore's shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from windtunnel_local.api.errors import ApiError

_MAX_FIELDS = 10_000
_INTEGER = re.compile("-?[0-9]{1,24}")


def fields(body: bytes) -> dict[str, str]:
    """The form's names and values.

    Raises:
        ApiError: MalformedQueryString.
    """
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError as error:
        raise ApiError("MalformedQueryString", f"The form cannot be read: {error}") from error
    return dict(pairs)


def document(shape: Any, form: Mapping[str, str]) -> dict[str, Any]:
    """The form as a JSON document, for `validate.accepted`. A field that the shape lacks keeps its name."""
    return {} if shape is None else _structure(shape, form)


def _structure(shape: Any, form: Mapping[str, str]) -> dict[str, Any]:
    wire = {member.serialization.get("name", name): name for name, member in shape.members.items()}
    result: dict[str, Any] = {}
    for head, below in _grouped(form).items():
        if head in wire:
            result[wire[head]] = _read(shape.members[wire[head]], below)
        else:
            result[head] = below.get("", below)
    return result


def _read(shape: Any, below: Mapping[str, str]) -> Any:
    """A value of any shape from the fields below its name ("" is the name itself)."""
    kind = shape.type_name
    if kind == "structure":
        return _structure(shape, below)
    if kind == "list":
        if "" in below:  # an empty list is sent as an empty value
            return [] if below[""] == "" else below[""]
        inner = below if shape.serialization.get("flattened") else _below(below, "member")
        items = _grouped(inner)
        return [_read(shape.member, items[number]) for number in _numbers(items)]
    if kind == "map":
        entries = below if shape.serialization.get("flattened") else _below(below, "entry")
        items = _grouped(entries)
        pairs = (items[number] for number in _numbers(items))
        return {pair.get("key", ""): _read(shape.value, _below(pair, "value")) for pair in pairs}
    return _scalar(kind, below[""]) if "" in below else dict(below)


def _scalar(kind: str, text: str) -> Any:
    """The text converted to the shape's type. A text that does not fit stays, and the validator refuses it."""
    if kind in ("integer", "long"):
        return int(text) if _INTEGER.fullmatch(text) else text
    if kind in ("float", "double", "timestamp"):
        try:
            return float(text)
        except ValueError:
            return text
    return {"true": True, "false": False}.get(text, text) if kind == "boolean" else text


def _grouped(form: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The fields grouped by the part of their name before the first dot."""
    groups: dict[str, dict[str, str]] = {}
    for name, value in form.items():
        head, _, rest = name.partition(".")
        groups.setdefault(head, {})[rest] = value
    return groups


def _below(form: Mapping[str, str], head: str) -> dict[str, str]:
    return _grouped(form).get(head, {})


def _numbers(items: Mapping[str, Any]) -> list[str]:
    """The positions of a list's items, in order. Raises ``ApiError`` if one is not a number."""
    wrong = [head for head in items if not (head.isascii() and head.isdigit() and len(head) < 9)]
    if wrong:
        raise ApiError("MalformedQueryString", f"{wrong[0][:50]!r} is no position of a list: 1, 2, ...")
    return sorted(items, key=int)
