"""Finds a request's S3 operation and its parameters, by botocore's model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from windtunnel_local.api import codec
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.sigv4 import Signable, query_pairs
from windtunnel_local.objects.buckets import is_name

_CONTROL = b"/v20180820/"  # S3 Control: signed for s3, with the account's id in a header and before the host
_NO_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f]")
_HEEDED_IN_URL = (b"x-amz-meta-", b"x-amz-acl")
_LEVELS = {"/": 0, "/{Bucket}": 1, "/{Bucket}/{Key+}": 2}


@dataclass(frozen=True)
class Call:
    """A parsed S3 request: the operation's model, its parameters, and all headers.

    ``region``: the region that it was signed for; empty if it names none.
    """

    model: Any
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    region: str = ""

    @property
    def operation(self) -> str:
        return str(self.model.name)


@dataclass(frozen=True)
class _Route:
    name: str
    fixed: Sequence[tuple[str, str]]
    query: frozenset[str]
    headers: frozenset[str]

    def matches(self, query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        fixed = all(name in query and value in ("", query[name]) for name, value in self.fixed)
        return fixed and self.query <= query.keys() and self.headers <= headers.keys()

    @property
    def weight(self) -> int:
        return len(self.fixed) + len(self.query) + len(self.headers)


def virtual_bucket(host: str) -> str:
    """The bucket that a Host header names, as in ``bucket.localhost:1234``; empty if it names none.

    Names below ``localhost`` always lead to this machine, so no other web page can have such a name.
    """
    name, _, _port = host.rpartition(".localhost:")
    return name if is_name(name) else ""


def understood(request: Signable, region: str = "") -> Call:
    """Parse a request that was signed for ``region``.

    Raises:
        ApiError: there is no such operation, the path is not UTF-8, or a number is not valid.
    """
    if request.path.startswith(_CONTROL) and request.header("x-amz-account-id") is not None:
        raise ApiError(
            "NotImplemented",
            "Windtunnel does not serve s3control (access points, batch jobs, public access of an account). Of S3 it"
            " serves buckets and objects.",
            501,
        )
    bucket, key = _target(request)
    query = {_lenient(name): _lenient(value) for name, value in query_pairs(request.query)}
    headers = _headers(request)
    level = 2 if key else 1 if bucket else 0
    candidates = [r for r in _routes().get((request.method, level), ()) if r.matches(query, headers)]
    if not candidates:
        raise ApiError("MethodNotAllowed", "The specified method is not allowed against this resource.", 405)
    model = codec.operation("s3", max(candidates, key=lambda r: r.weight).name)
    assert model is not None  # noqa: S101  routes come from the same model
    return Call(model, _params(model, bucket, key, query, headers), headers, region)


def _headers(request: Signable) -> dict[str, str]:
    """The headers by lower-case name. Values of a repeated header are joined by commas: some SDKs repeat a header.

    Raises:
        ApiError: a value, as from the URL, has control characters.
    """
    found: dict[str, list[str]] = {}
    for name, value in (*request.headers, *_from_url(request)):
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    headers = {name: ",".join(values) for name, values in found.items()}
    for called, text in headers.items():
        if _NO_HEADER.search(text):
            raise ApiError("InvalidArgument", f"{called[:50]} cannot be a header: it has control characters.")
    return headers


def _from_url(request: Signable) -> list[tuple[bytes, bytes]]:
    """Headers in the query of a URL that was presigned with version 4: some SDKs move headers there.

    The signature covers them. As S3 does, only metadata and the ACL are read there, no tags or checksums.
    """
    pairs = [(name.lower(), value) for name, value in query_pairs(request.query)]
    if not any(name == b"x-amz-signature" for name, _ in pairs):
        return []
    sent = {name for name, _ in request.headers}
    return [(n, v) for n, v in pairs if n.startswith(_HEEDED_IN_URL) and n not in sent]


def _target(request: Signable) -> tuple[str, str]:
    bucket = virtual_bucket((request.header("host") or "").lower())
    return split_path(b"/" + bucket.encode() + request.path) if bucket else split_path(request.path)


def split_path(path: bytes) -> tuple[str, str]:
    """Bucket and key of a path-style path; either may be empty. Raises ``ApiError``."""
    bucket, _, key = path.removeprefix(b"/").partition(b"/")
    try:
        return unquote_to_bytes(bucket).decode(), unquote_to_bytes(key).decode()
    except UnicodeDecodeError as error:
        raise ApiError("InvalidURI", "Couldn't parse the specified URI: it is not UTF-8.") from error


def _lenient(raw: bytes) -> str:
    return raw.decode(errors="replace")


def copy_source(call: Call) -> tuple[str, str]:
    """Bucket and key that a copy reads from. Raises ``ApiError``.

    The whole header may be percent-encoded, including its slashes.
    """
    path, _, version = call.params["CopySource"].encode("latin-1").partition(b"?")
    if version not in (b"", b"versionId=null"):
        raise ApiError("NotImplemented", "Windtunnel's S3 keeps no versions: leave versionId out.", 501)
    try:
        bucket, _, key = unquote_to_bytes(path).decode().removeprefix("/").partition("/")
    except UnicodeDecodeError as error:
        raise ApiError("InvalidArgument", "x-amz-copy-source is not UTF-8.") from error
    if not (bucket and key):
        raise ApiError("InvalidArgument", "x-amz-copy-source must have the form <bucket>/<key>.")
    return bucket, key


@lru_cache(maxsize=1)
def _routes() -> Mapping[tuple[str, int], Sequence[_Route]]:
    table: dict[tuple[str, int], list[_Route]] = {}
    model = codec.service_model("s3")
    for name in model.operation_names:  # sorted: of equal matches the first is the older, common one
        operation = model.operation_model(name)
        path, _, fixed = operation.http["requestUri"].partition("?")
        if path in _LEVELS and not operation.deprecated:  # S3 answers as the successor does
            route = _Route(
                name,
                parse_qsl(fixed, keep_blank_values=True),
                _required(operation, "querystring"),
                _required(operation, "header"),
            )
            table.setdefault((operation.http["method"], _LEVELS[path]), []).append(route)
    return table


def _required(operation: Any, location: str) -> frozenset[str]:
    shape = operation.input_shape
    if shape is None:
        return frozenset()
    members = (shape.members[name].serialization for name in shape.required_members)
    names = (s["name"] for s in members if s.get("location") == location)
    return frozenset(name.lower() if location == "header" else name for name in names)


def _params(
    model: Any, bucket: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]
) -> Mapping[str, Any]:
    params: dict[str, Any] = {}
    places: Mapping[str, Mapping[str, str]] = {
        "uri": {"Bucket": bucket, "Key": key},
        "querystring": query,
        "header": headers,
    }
    for name, member in model.input_shape.members.items() if model.input_shape else ():
        location = member.serialization.get("location")
        if location in places:
            wire = member.serialization["name"]
            value = places[location].get(wire.lower() if location == "header" else wire)
            if value is not None:
                params[name] = _typed(member, wire, value)
    return params


def _typed(member: Any, name: str, value: str) -> Any:
    if member.type_name in ("integer", "long"):
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            raise ApiError(
                "InvalidArgument", f"Provided {name} not an integer or within integer range: {value[:50]!r}"
            )
        return int(value)
    if member.type_name == "boolean":
        return value.lower() == "true"
    return value
