"""Protocols that call operations by name: AWS JSON (sagemaker, logs), query (sts, iam), RPC v2 CBOR
(CloudWatch, which takes all three).

A service is a mapping of operation names to blocking functions from validated input to output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from windtunnel_local.api import cbor, codec, form, xmlcodec
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.respond import CBOR_PROTOCOL
from windtunnel_local.api.validate import accepted

Input = Mapping[str, Any]
Output = Mapping[str, Any] | None
"""None: the answer has no members."""
# The service's error code for input that its model refuses, if it is not ValidationException.
_INVALID = {"logs": "InvalidParameterException", "monitoring": "InvalidParameterValue"}
_CBOR_PATH = re.compile(r"/service/(?P<target>\w{1,100})/operation/(?P<name>\w{1,100})")
Operations = Mapping[str, Callable[[Input], Output]]


def answer_json(service: str, operations: Operations, target: str | None, body: bytes) -> Response:
    """Answer an AWS JSON request; ``target``: its X-Amz-Target."""
    prefix, _, name = (target or "").partition(".")
    metadata = codec.service_model(service).metadata
    if target is None:
        # sagemaker-metrics and -featurestore-runtime, too, are REST APIs that are signed for sagemaker.
        raise ApiError(
            "UnknownOperationException",
            f"A call of {service} names its operation in X-Amz-Target, and this one names none: Windtunnel does "
            f"not serve what else there is below {service} on AWS (such as feature stores). "
            f"It serves {', '.join(sorted(operations))}. For everything else use a session with AWS itself.",
            404,
        )
    if prefix != metadata.get("targetPrefix"):
        raise ApiError(
            "UnknownOperationException", f"X-Amz-Target {target!r} is no operation of {service}.", 404
        )
    handler, shapes = _handler(service, operations, name)
    output = handler(codec.decoded(shapes.input_shape, body, _invalid(service)))
    media_type = f"application/x-amz-json-{metadata['jsonVersion']}"
    return Response(codec.encoded(shapes.output_shape, output or {}), 200, media_type=media_type)


def answer_cbor(service: str, operations: Operations, path: str, body: bytes) -> Response:
    """Answer a request of Smithy's RPC v2 CBOR, whose path names the operation."""
    match = _CBOR_PATH.fullmatch(path)
    if match is None or match["target"] != codec.service_model(service).metadata.get("targetPrefix"):
        raise ApiError("UnknownOperationException", f"{path[:200]!r} is no operation of {service}.", 404)
    handler, shapes = _handler(service, operations, match["name"])
    output = handler(cbor.decoded(shapes.input_shape, body, _invalid(service)))
    headers = {"smithy-protocol": CBOR_PROTOCOL}
    return Response(cbor.encoded(shapes.output_shape, output or {}), 200, headers, cbor.CBOR_TYPE)


def answer_query(service: str, operations: Operations, body: bytes, request_id: str) -> Response:
    """Answer a request of the query protocol, whose form names the Action."""
    fields = form.fields(body)
    name = fields.pop("Action", "")
    fields.pop("Version", None)
    handler, shapes = _handler(service, operations, name, unknown=("InvalidAction", 400))
    document = form.document(shapes.input_shape, fields)
    output = handler(accepted(shapes.input_shape, document, _INVALID.get(service, "ValidationError")))
    result = shapes.output_shape
    wrapper = result.serialization.get("resultWrapper", f"{name}Result")
    namespace = codec.service_model(service).metadata["xmlNamespace"]
    answer = (
        f'{xmlcodec.DECLARATION}<{name}Response xmlns="{namespace}">'
        f"<{wrapper}>{xmlcodec.members(result, output or {})}</{wrapper}>"
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{name}Response>"
    )
    return Response(answer, 200, media_type="text/xml")


def _invalid(service: str) -> str:
    return _INVALID.get(service, "ValidationException")


def _handler(
    service: str,
    operations: Operations,
    name: str,
    unknown: tuple[str, int] = ("UnknownOperationException", 404),
) -> tuple[Callable[[Input], Output], Any]:
    model = codec.operation(service, name)
    if model is None:
        code, status = unknown
        raise ApiError(code, f"{service} has no operation {name[:100]!r}.", status)
    if name not in operations:
        raise not_served(service, name, operations)
    return operations[name], model


def not_served(service: str, name: str, served: Operations | Mapping[str, Any]) -> ApiError:
    """The error for an operation that AWS has, but Windtunnel does not serve."""
    return ApiError(
        "NotImplemented" if service == "s3" else "UnsupportedOperation",
        f"Windtunnel does not serve {service}:{name}. Of {service} it serves {', '.join(sorted(served))}. "
        "For everything else use a session with AWS itself.",
        501 if service == "s3" else 400,
    )
