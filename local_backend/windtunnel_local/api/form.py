"""The query protocol's forms: ``Dimensions.member.1.Name=x`` as a document after botocore's shapes."""

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
    """The form as a JSON document, for `validate.accepted`. A field that fits no shape keeps its name."""
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
    """The text as a value of the shape's type. Text that is none stays text, which the validator refuses."""
    if kind in ("integer", "long"):
        return int(text) if _INTEGER.fullmatch(text) else text
    if kind in ("float", "double", "timestamp"):
        try:
            return float(text)
        except ValueError:
            return text
    return {"true": True, "false": False}.get(text, text) if kind == "boolean" else text


def _grouped(form: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Fields by their first part."""
    groups: dict[str, dict[str, str]] = {}
    for name, value in form.items():
        head, _, rest = name.partition(".")
        groups.setdefault(head, {})[rest] = value
    return groups


def _below(form: Mapping[str, str], head: str) -> dict[str, str]:
    return _grouped(form).get(head, {})


def _numbers(items: Mapping[str, Any]) -> list[str]:
    """The list's positions in order. A name that is no number is passed over."""
    wrong = [head for head in items if not (head.isascii() and head.isdigit() and len(head) < 9)]
    if wrong:
        raise ApiError("MalformedQueryString", f"{wrong[0][:50]!r} is no position of a list: 1, 2, ...")
    return sorted(items, key=int)
