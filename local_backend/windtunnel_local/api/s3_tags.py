"""Tags of objects: read from a header or a document, and checked by S3's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from windtunnel_local.api.errors import ApiError

_MOST = 10
_KEY_LENGTH = 128
_VALUE_LENGTH = 256


def from_header(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The tags of ``x-amz-tagging``, written as a query string. Raises ``ApiError``."""
    text = headers.get("x-amz-tagging")
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True)
    except ValueError as error:
        raise ApiError(
            "InvalidArgument",
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters.",
        ) from error
    return checked(pairs)


def from_document(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The tags of a Tagging document. Raises ``ApiError``."""
    items = document.get("TagSet", [])
    if any("Key" not in item or "Value" not in item for item in items):
        raise ApiError("MalformedXML", "Each Tag of a TagSet has a Key and a Value.")
    return checked((item["Key"], item["Value"]) for item in items)


def checked(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The tags as a mapping. Raises ``ApiError`` if they break S3's rules."""
    pairs = list(pairs)
    tags = dict(pairs)
    if len(pairs) > _MOST:
        raise ApiError("BadRequest", f"Object tags cannot be greater than {_MOST}")
    if len(tags) < len(pairs):
        raise ApiError("InvalidTag", "Cannot provide multiple Tags with the same key")
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            raise ApiError("InvalidTag", "System tags cannot be added/updated by requester")
        if not 1 <= len(key) <= _KEY_LENGTH:
            raise ApiError("InvalidTag", "The TagKey you have provided is invalid", details={"TagKey": key})
        if len(value) > _VALUE_LENGTH:
            raise ApiError(
                "InvalidTag", "The TagValue you have provided is invalid", details={"TagValue": value}
            )
    return tags


def as_set(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
