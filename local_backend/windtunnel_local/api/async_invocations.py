"""InvokeEndpointAsync: a request is recorded now and answered later. Its limits are those of botocore's model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress

from starlette.responses import Response

from windtunnel_local.api.errors import ApiError
from windtunnel_local.service.ground.errors import ServiceError
from windtunnel_local.service.ground.hosting import Invocation
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.hosting.hosting import HostingService

_OURS = "x-amzn-sagemaker-"
_TTL_S = (60, 21_600, 21_600)
_TIMEOUT_S = (1, 3_600, 900)
"""Minimum, maximum and default."""
_ID = "X-Amzn-SageMaker-Inference-Id"
_PASSED_ON: Mapping[str, str] = {
    f"{_OURS}content-type": "Content-Type",
    f"{_OURS}accept": "Accept",
    f"{_OURS}custom-attributes": "X-Amzn-SageMaker-Custom-Attributes",
    f"{_OURS}inference-id": _ID,
}
_REFUSED: Mapping[str, str] = {
    "s3outputpathextension": "S3OutputPathExtension: the answer is stored below S3OutputPath",
    "filename": "Filename: the answer's name is made here, UUID.out",
}


def accepted(hosting: HostingService, endpoint: str, headers: Mapping[str, str], body: bytes) -> Response:
    """Check and record the request; the response says where its answer will be. Blocks. Raises ``ApiError``."""
    for name, why in _REFUSED.items():
        if _OURS + name in headers:
            raise invalid(f"Not supported here: {why}; leave it out.")
    if body:
        raise invalid(
            "Not supported here: Body; put the question into S3, and name the object in InputLocation."
        )
    location = _as_sent(headers.get(f"{_OURS}inputlocation", ""))
    if not _names_an_object(location):
        raise invalid(f"InputLocation {location[:200]!r} must name an object: s3://bucket/key.")
    given = {name: headers[header] for header, name in _PASSED_ON.items() if header in headers}
    given.setdefault(_ID, str(uuid.uuid4()))
    ttl_s = _seconds(headers, "RequestTTLSeconds", *_TTL_S)
    timeout_s = _seconds(headers, "InvocationTimeoutSeconds", *_TIMEOUT_S)
    try:
        question = hosting.accept(endpoint, location, given, ttl_s, timeout_s)
    except ServiceError as error:
        raise invalid(str(error)) from None
    return _response(question)


def _names_an_object(location: str) -> bool:
    try:
        _, key = parse_s3(location)
    except ValueError:
        return False
    return bool(key)


def _as_sent(value: str) -> str:
    """The value as the client wrote it: clients send UTF-8, but headers are decoded as Latin-1."""
    with suppress(UnicodeDecodeError):
        return value.encode("latin-1").decode()
    return value


def _response(question: Invocation) -> Response:
    where = {"X-Amzn-SageMaker-OutputLocation": question.output}
    if question.failure is not None:
        where["X-Amzn-SageMaker-FailureLocation"] = question.failure
    return Response(json.dumps({"InferenceId": question.headers[_ID]}), 202, where, "application/json")


def _seconds(headers: Mapping[str, str], member: str, least: int, most: int, default: int) -> int:
    text = headers.get(_OURS + member.lower())
    if text is None:
        return default
    if not text.isdecimal() or not least <= int(text[:9]) <= most:
        raise invalid(f"{member} is {text[:50]!r}; valid: {least} to {most}.")
    return int(text)


def invalid(message: str) -> ApiError:
    """SageMaker Runtime's error for a request that is not valid."""
    return ApiError("ValidationError", message)
