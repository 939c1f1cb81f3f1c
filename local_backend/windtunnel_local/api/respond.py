"""Turns errors into HTTP answers, in one function: an error document in the form of each protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from starlette.responses import Response

from windtunnel_local.api import cbor, xmlcodec
from windtunnel_local.api.errors import ApiError, AuthFailure, Protocol
from windtunnel_local.objects import errors as objects
from windtunnel_local.service.ground.errors import NoSuchBucket, NoSuchKey, ServiceError, is_full_disk
from windtunnel_local.service.ground.printable import printable

log = logging.getLogger("windtunnel.api")

JSON_TYPE = "application/x-amz-json-1.1"
CBOR_PROTOCOL = "rpc-v2-cbor"
OBJECT_ERRORS: Mapping[type[Exception], tuple[str, int]] = {
    NoSuchBucket: ("NoSuchBucket", 404),
    NoSuchKey: ("NoSuchKey", 404),
    objects.InvalidBucketName: ("InvalidBucketName", 400),
    objects.InvalidKey: ("KeyTooLongError", 400),
    objects.ConditionFailed: ("PreconditionFailed", 412),
    objects.BucketNotEmpty: ("BucketNotEmpty", 409),
    objects.NoSuchUpload: ("NoSuchUpload", 404),
    objects.InvalidPart: ("InvalidPart", 400),
    objects.InvalidPartNumber: ("InvalidArgument", 400),
    objects.InvalidPartOrder: ("InvalidPartOrder", 400),
    objects.PartTooSmall: ("EntityTooSmall", 400),
}
"""S3's code and HTTP status for each error of the object store."""
_DISK_FULL = "No space is left on the disk of this Windtunnel home. Free some, then try again."
_KEPT = "\t\n"
_FAULTS = "http://webservices.amazon.com/AWSFault/2005-15-09"


def error_response(error: Exception, protocol: Protocol, request_id: str, *, head: bool = False) -> Response:
    """The answer to a request that failed with ``error``, in the protocol's form.

    An unexpected error is logged with its traceback, and answered with 500 without details.
    """
    code, status, message = _described(error, protocol)
    message = printable(message, _KEPT)  # it may quote the request, even characters that XML cannot hold
    details = error.details if isinstance(error, (ApiError, objects.ConditionFailed)) else {}
    if protocol == "json":
        # AWS's models have either spelling, and typed clients read the one of their model.
        members = {"__type": code, "message": message, "Message": message, **details}
        document = json.dumps(members, ensure_ascii=False)
        body, media, headers = document.encode(errors="replace"), JSON_TYPE, {"x-amzn-errortype": code}
    elif protocol == "cbor":
        body, media = cbor.dumped({"__type": code, "message": message}), cbor.CBOR_TYPE
        headers = {"smithy-protocol": CBOR_PROTOCOL}
    else:
        body, media, headers = (
            _xml(protocol, code, status, message, request_id, details),
            "application/xml",
            {},
        )
    return Response(b"" if head else body, status, headers, media)


def _described(error: Exception, protocol: Protocol) -> tuple[str, int, str]:
    if isinstance(error, AuthFailure):
        return error.code_for(protocol), error.status, str(error)
    if isinstance(error, (ApiError, ServiceError)):
        return error.code, error.status, str(error)
    if type(error) in OBJECT_ERRORS:
        return *OBJECT_ERRORS[type(error)], str(error)
    if is_full_disk(error):
        return "ServiceUnavailable", 503, _DISK_FULL
    log.error("request failed", exc_info=error)
    code = "InternalError" if protocol == "s3" else "InternalFailure"
    return code, 500, "Windtunnel failed to answer; backend.log in its home directory has the traceback."


def _xml(
    protocol: Protocol,
    code: str,
    status: int,
    message: str,
    request_id: str,
    details: Mapping[str, str | int],
) -> bytes:
    fields = {"Code": code, "Message": message, **details}
    inner = "".join(
        f"<{name}>{xmlcodec.text(printable(str(value), _KEPT))}</{name}>" for name, value in fields.items()
    )
    if protocol == "s3":
        document = f"<Error>{inner}<RequestId>{request_id}</RequestId></Error>"
    else:
        kind = "Sender" if status < 500 else "Receiver"
        document = (
            f'<ErrorResponse xmlns="{_FAULTS}"><Error><Type>{kind}</Type>{inner}</Error>'
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return (xmlcodec.DECLARATION + document).encode(errors="replace")
