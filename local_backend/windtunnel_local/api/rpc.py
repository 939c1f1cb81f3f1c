"""Operations called by name: AWS JSON 1.1 (sagemaker, logs) and query (sts, iam).

A service is a mapping of operation names to blocking functions from validated input to output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from windtunnel_local.api import codec, xmlcodec
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.respond import JSON_TYPE
from windtunnel_local.api.validate import accepted

Input = Mapping[str, Any]
Output = Mapping[str, Any]
# What a service calls an input that its model refuses, where it is not ValidationException.
_INVALID = {"logs": "InvalidParameterException"}
Operations = Mapping[str, Callable[[Input], Output]]


def answer_json(service: str, operations: Operations, target: str | None, body: bytes) -> Response:
    """Answer an AWS JSON 1.1 request; ``target``: its X-Amz-Target."""
    prefix, _, name = (target or "").partition(".")
    model = codec.service_model(service)
    if prefix != model.metadata["targetPrefix"]:
        raise ApiError(
            "UnknownOperationException", f"X-Amz-Target {target!r} is no operation of {service}.", 404
        )
    handler, shapes = _handler(service, operations, name)
    output = handler(codec.decoded(shapes.input_shape, body, _INVALID.get(service, "ValidationException")))
    return Response(codec.encoded(shapes.output_shape, output), 200, media_type=JSON_TYPE)


def answer_query(service: str, operations: Operations, body: bytes, request_id: str) -> Response:
    """Answer a request of the query protocol, whose form names the Action."""
    try:
        form = dict(
            parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=1000)
        )
    except ValueError as error:
        raise ApiError("MalformedQueryString", f"The form cannot be read: {error}") from error
    name = form.pop("Action", "")
    form.pop("Version", None)
    handler, shapes = _handler(service, operations, name)
    output = handler(accepted(shapes.input_shape, form, "ValidationError"))
    result = shapes.output_shape
    wrapper = result.serialization.get("resultWrapper", f"{name}Result")
    namespace = codec.service_model(service).metadata["xmlNamespace"]
    document = (
        f'{xmlcodec.DECLARATION}<{name}Response xmlns="{namespace}">'
        f"<{wrapper}>{xmlcodec.members(result, output)}</{wrapper}>"
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{name}Response>"
    )
    return Response(document, 200, media_type="text/xml")


def _handler(service: str, operations: Operations, name: str) -> tuple[Callable[[Input], Output], Any]:
    model = codec.operation(service, name)
    if model is None:
        raise ApiError("UnknownOperationException", f"{service} has no operation {name[:100]!r}.", 404)
    if name not in operations:
        raise not_served(service, name, operations)
    return operations[name], model


def not_served(service: str, name: str, served: Operations | Mapping[str, Any]) -> ApiError:
    """The answer to an operation that AWS has and Windtunnel has not."""
    return ApiError(
        "NotImplemented" if service == "s3" else "UnsupportedOperation",
        f"Windtunnel does not serve {service}:{name}. Of {service} it serves {', '.join(sorted(served))}. "
        "For everything else use a session with AWS itself.",
        501 if service == "s3" else 400,
    )
