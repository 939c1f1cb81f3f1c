"""The result of an S3 operation, and its HTTP form: headers and XML by botocore's output shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from typing import Any, BinaryIO

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from windtunnel_local.api import xmlcodec
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.s3_routes import Call

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
SEND_BYTES = 256 << 10
# Root elements, by operation: botocore's model does not have these names, S3's documentation does.
_ROOTS = {
    "ListBuckets": "ListAllMyBucketsResult",
    "ListObjects": "ListBucketResult",
    "ListObjectsV2": "ListBucketResult",
    "ListObjectVersions": "ListVersionsResult",
    "GetObjectAttributes": "GetObjectAttributesResponse",
    "GetObjectTagging": "Tagging",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetBucketLogging": "BucketLoggingStatus",
    "GetBucketNotificationConfiguration": "NotificationConfiguration",
    "GetBucketAccelerateConfiguration": "AccelerateConfiguration",
    "GetBucketRequestPayment": "RequestPaymentConfiguration",
    "CreateMultipartUpload": "InitiateMultipartUploadResult",
    "DeleteObjects": "DeleteResult",
}


@dataclass(frozen=True)
class Slice:
    """``length`` bytes of an open file, from its current position. The sender closes the file."""

    file: BinaryIO
    length: int


@dataclass(frozen=True)
class Answer:
    """An operation's result. ``output``: members of the model's output shape; ``headers``: further headers."""

    output: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    """None: the status that the model has."""
    content: Slice | bytes | None = None
    """A body that is not XML."""


Handler = Callable[[Call, VerifiedReader], Answer]


def response(model: Any, answer: Answer) -> Response:
    shape = model.output_shape
    headers = {**_headers(shape, answer.output), **answer.headers}
    status = answer.status or model.http.get("responseCode", 200)
    if isinstance(answer.content, Slice):
        return FileResponse(answer.content, status, headers)
    if answer.content is not None:
        return Response(answer.content, status, headers, "application/xml")
    body = _body(model.name, shape, answer.output)
    if model.http["method"] == "HEAD":
        return _HeadResponse(b"", status, headers)
    return Response(body, status, headers, "application/xml" if body else None)


def _headers(shape: Any, output: Mapping[str, Any]) -> dict[str, str]:
    headers = {}
    for name, value in output.items():
        if value is not None and shape.members[name].serialization.get("location") == "header":
            headers[shape.members[name].serialization["name"].lower()] = _header(value)
    return headers


def _header(value: Any) -> str:
    if isinstance(value, datetime):
        return format_datetime(value, usegmt=True)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _body(name: str, shape: Any, output: Mapping[str, Any]) -> bytes:
    if shape is None:
        return b""
    payload = shape.serialization.get("payload")
    if payload:
        member = shape.members[payload]
        if member.type_name != "structure" or payload not in output:
            return b""
        return xmlcodec.document(payload, member, output[payload], NAMESPACE)
    if all("location" in member.serialization for member in shape.members.values()):
        return b""
    return xmlcodec.document(_ROOTS.get(name, f"{name}Result"), shape, output, NAMESPACE)


class _HeadResponse(Response):
    """An answer to HEAD: keeps the object's Content-Length, though no body follows."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        self.raw_headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in (headers or {}).items()]


class FileResponse(Response):
    """Sends a slice of a file in small pieces, and closes the file in any case."""

    def __init__(self, content: Slice, status: int, headers: Mapping[str, str]) -> None:
        self.content = content
        super().__init__(None, status, {**headers, "content-length": str(content.length)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the slice. Stops when the client disconnects."""
        request = Request(scope, receive)
        left = self.content.length
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            while left > 0 and not await request.is_disconnected():
                chunk = await anyio.to_thread.run_sync(self.content.file.read, min(left, SEND_BYTES))
                left -= len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if not chunk:
                    raise OSError("an object's file is shorter than its record says")
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.content.file.close()
