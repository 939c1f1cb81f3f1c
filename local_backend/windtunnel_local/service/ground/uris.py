"""s3:// and file:// addresses."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from windtunnel_local.service.ground.errors import ValidationFailed

MAX_KEY_BYTES = 1024
"""The longest object key in bytes, as on S3."""


def parse_s3(uri: str) -> tuple[str, str]:
    """Bucket and key (or prefix) of an ``s3://`` URI.

    Raises:
        ValueError: it is not an s3:// URI; the message says what was given.
    """
    scheme, found, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not found or not bucket:
        raise ValueError(f"{uri!r} is not an S3 URI; it must look like s3://bucket/prefix.")
    return bucket, key


def member_s3(member: str, uri: str) -> tuple[str, str]:
    """Bucket and key of an ``s3://`` URI in a request.

    Raises:
        ValidationFailed: it is not an s3:// URI; names the member.
    """
    try:
        return parse_s3(uri)
    except ValueError as error:
        raise ValidationFailed(f"{member}: {error}") from None


def join_s3(base: str, *parts: str) -> str:
    """``base`` and the parts, joined by single slashes."""
    return "/".join([base.rstrip("/"), *parts])


def is_file(uri: str) -> bool:
    """Whether it is a ``file://`` URI: this backend's extension of S3Uri."""
    return uri.startswith("file://")


def parse_file(uri: str) -> Path:
    """The path of a ``file:///absolute/path`` URI.

    Clients write such URIs with and without percent-encoding: the path as written is taken if it exists, else decoded.

    Raises:
        ValueError: the path is not absolute.
    """
    text = uri.removeprefix("file://")
    if not text.startswith("/"):
        raise ValueError(f"{uri!r} is not absolute; it must look like file:///home/me/data.")
    literal = Path(text)
    return literal if literal.exists() else Path(unquote(text))
