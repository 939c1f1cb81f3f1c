"""The XML of S3, STS and IAM, read and written by botocore's shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from windtunnel_local.api.errors import ApiError

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ufffe\uffff]")


def text(value: str) -> str:
    """Text for an element. Control characters become references, as in AWS's answers."""
    return _CONTROL.sub(lambda match: f"&#x{ord(match[0]):x};", escape(value))


def document(root: str, shape: Any, value: Mapping[str, Any], namespace: str) -> bytes:
    return f'{DECLARATION}<{root} xmlns="{namespace}">{members(shape, value)}</{root}>'.encode()


def members(shape: Any, value: Mapping[str, Any]) -> str:
    """The XML elements of a structure's members that belong into the body. Raises ``TypeError`` for unknown ones."""
    unknown = value.keys() - shape.members.keys()
    if unknown:
        raise TypeError(f"{shape.name} has no member {', '.join(sorted(unknown))}")
    parts = []
    for name, item in value.items():
        member = shape.members[name]
        if item is not None and "location" not in member.serialization:
            parts.append(_element(member, member.serialization.get("name", name), item))
    return "".join(parts)


def _element(shape: Any, name: str, value: Any) -> str:
    kind = shape.type_name
    if kind == "list":
        if shape.serialization.get("flattened"):
            inner_name = shape.member.serialization.get("name", name)
            return "".join(_element(shape.member, inner_name, item) for item in value)
        inner_name = shape.member.serialization.get("name", "member")
        inner = "".join(_element(shape.member, inner_name, item) for item in value)
    elif kind == "structure":
        inner = members(shape, value)
    elif kind == "boolean":
        inner = "true" if value else "false"
    elif kind == "timestamp":
        inner = iso(value)
    else:
        inner = text(str(value))
    return f"<{name}>{inner}</{name}>"


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC, whole seconds and zeros as milliseconds, as S3 writes it: HTTP headers have seconds only."""
    return f"{moment.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S}.000Z"


def parsed(shape: Any, body: bytes) -> dict[str, Any]:
    """A structure from an XML document; namespaces are ignored, unknown elements too.

    Raises:
        ApiError: MalformedXML.
    """
    if b"<!" in body:
        raise ApiError("MalformedXML", "The XML you provided has a document type or a comment.")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  no document type: no entities to expand
        return _read_structure(shape, root)
    except (ElementTree.ParseError, ValueError) as error:
        raise ApiError("MalformedXML", f"The XML you provided was not well-formed: {error}") from error


def _read_structure(shape: Any, node: ElementTree.Element) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, member in shape.members.items():
        tag = member.serialization.get("name", name)
        if member.type_name == "list":
            items = list(_list_items(member, tag, node))
            if items:
                result[name] = [_read(member.member, item) for item in items]
        else:
            found = next(_children(node, tag), None)
            if found is not None:
                result[name] = _read(member, found)
    return result


def _list_items(shape: Any, tag: str, node: ElementTree.Element) -> Iterator[ElementTree.Element]:
    if shape.serialization.get("flattened"):
        yield from _children(node, shape.member.serialization.get("name", tag))
    else:
        for wrapper in _children(node, tag):
            yield from _children(wrapper, shape.member.serialization.get("name", "member"))


def _children(node: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    return (child for child in node if child.tag.rpartition("}")[2] == tag)


def _read(shape: Any, node: ElementTree.Element) -> Any:
    kind = shape.type_name
    if kind == "structure":
        return _read_structure(shape, node)
    content = node.text or ""
    if kind in ("integer", "long"):
        return int(content)
    if kind == "boolean":
        return content.strip().lower() == "true"
    return content
