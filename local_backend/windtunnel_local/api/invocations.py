"""SageMaker Runtime, a REST API: passes requests for endpoints to a container, and its answers back.

Limits are AWS's: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
"""

from __future__ import annotations

import asyncio
import binascii
import json
import re
import struct
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

import anyio.to_thread
from starlette.responses import Response, StreamingResponse

from windtunnel_local.api import async_invocations
from windtunnel_local.api.async_invocations import invalid
from windtunnel_local.api.container_calls import Answer, ContainerCalls, NeverSentError
from windtunnel_local.api.errors import ApiError
from windtunnel_local.service.ground.errors import ResourceNotFound, ServiceError
from windtunnel_local.service.ground.hosting import LOG_GROUPS
from windtunnel_local.service.hosting.hosting import HostingService
from windtunnel_local.service.hosting.router import Target

PREFIX = b"/endpoints/"
"""What SageMaker Runtime's paths begin with. An S3 path may begin so too, but is signed for s3."""
MAX_PAYLOAD_BYTES = 6 << 20
"""The most bytes of a request, and of an answer."""
_TIMEOUT_S = 60.0
"""The most seconds for a whole answer; for a streamed answer it is `_STREAM_S`."""
_STREAM_S = 8 * 60.0
_READY_S = 30.0
"""How long a request waits if no instance is ready now, as after a restart; less than clients wait."""
_LOOK_S = 0.05
_PATH = re.compile(r"/endpoints/(?P<endpoint>[^/]+)/(?P<operation>[a-z-]+)")
_PLAIN, _STREAM, _ASYNC = "invocations", "invocations-response-stream", "async-invocations"
_OPERATIONS = (_PLAIN, _STREAM, _ASYNC)
_SHOWN_CHARACTERS = 2048
_CONTAINER_GONE = (
    "The connection to the container of variant {variant} broke off before it had answered: {error}. Its log may say"
    " why (windtunnel endpoint-logs {endpoint})."
)
_TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container {variant}. It may have waited behind"
    " others: a worker answers one request at a time, and there is one unless SAGEMAKER_MODEL_SERVER_WORKERS in the"
    " model's Environment says otherwise."
)
_TOO_LARGE = (
    f"the answer is larger than {MAX_PAYLOAD_BYTES} bytes, the most that InvokeEndpoint returns; make it smaller, or"
    " have it read by InvokeEndpointWithResponseStream"
)
_MAX_ATTRIBUTES = 1024
"""The most characters of CustomAttributes."""
_OURS = "x-amzn-sagemaker-"
_REFUSED: Mapping[str, str] = {
    f"{_OURS}target-model": "TargetModel: endpoints of several models are not served",
    f"{_OURS}target-container-hostname": "TargetContainerHostname: an endpoint here has one container",
    f"{_OURS}inference-component": "InferenceComponentName: inference components are not served",
    f"{_OURS}enable-explanations": "EnableExplanations: explanations are not served",
    f"{_OURS}session-id": "SessionId: requests of a session are not kept together",
    f"{_OURS}prefix-aware-id": "PrefixAwareId: requests are not looked into",
}
"""Headers that are refused: the request's member that each holds, and why."""
_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"


@dataclass(frozen=True)
class _Question:
    """A request for a container's answer. ``headers``: by lower-case name; ``begun``: in monotonic seconds."""

    endpoint: str
    headers: Mapping[str, str]
    body: bytes
    is_streamed: bool
    begun: float


class Runtime:
    """Answers InvokeEndpoint, InvokeEndpointWithResponseStream and InvokeEndpointAsync. For one event loop."""

    def __init__(self, hosting: HostingService, account_id: str, region: str) -> None:
        self._hosting = hosting
        self._account_id = account_id
        self._region = region
        self._containers = ContainerCalls()

    async def close(self) -> None:
        """Close the connections to containers. Idempotent."""
        self._containers.close()

    async def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Answer a request whose signature was checked; ``headers``: by lower-case name. Raises ``ApiError``."""
        match = _PATH.fullmatch(path)
        if match is None or method != "POST" or match["operation"] not in _OPERATIONS:
            raise ApiError(
                "UnknownOperationException",
                f"Windtunnel does not serve {method} {path[:200]!r} of sagemaker-runtime. It serves"
                " InvokeEndpoint, InvokeEndpointWithResponseStream and InvokeEndpointAsync.",
                404,
            )
        if len(body) > MAX_PAYLOAD_BYTES:
            raise invalid(
                f"The body has {len(body)} bytes; an endpoint takes {MAX_PAYLOAD_BYTES} at most, here as on AWS."
            )
        _check_members(headers)
        endpoint, begun = unquote(match["endpoint"]), time.monotonic()
        if match["operation"] == _ASYNC:
            call = partial(async_invocations.accepted, self._hosting, endpoint, headers, body)
            return await anyio.to_thread.run_sync(call)
        question = _Question(endpoint, headers, body, match["operation"] == _STREAM, begun)
        while True:
            with ExitStack() as stack:
                target = await self._target(question, stack)
                answer = await self._metered(question, target, stack)
                if answer is not None:
                    return answer
            await asyncio.sleep(_LOOK_S)  # its container has just ended: another instance takes the request

    async def _metered(self, question: _Question, target: Target, stack: ExitStack) -> Response | None:
        """Ask an instance, and count the call for CloudWatch. None: the request was not sent, and may be sent again."""
        asked, status, is_sent = time.monotonic(), 0, True
        gone = partial(_CONTAINER_GONE.format, variant=target.variant, endpoint=question.endpoint)
        try:
            answer = await self._asked(question, target, stack)
            status = answer.status_code
            return answer
        except ApiError as error:
            status = int(error.details["OriginalStatusCode"])
            raise
        except asyncio.TimeoutError:
            message = _TIMED_OUT.format(variant=target.variant)
            raise self._model_error(question, target, 0, message) from None
        except NeverSentError as error:
            is_sent = False
            if time.monotonic() > question.begun + _READY_S:
                raise ApiError("ServiceUnavailable", gone(error=error), 503) from error
            return None
        except OSError as error:
            raise ApiError("ServiceUnavailable", gone(error=error), 503) from error
        finally:
            if is_sent:
                took = time.monotonic() - asked
                overhead = asked - question.begun
                self._hosting.meter.add(question.endpoint, target.variant, status, took, overhead)

    async def _target(self, question: _Question, stack: ExitStack) -> Target:
        """Wait for an instance that is ready; it counts as busy until the stack is closed. Raises ``ApiError``."""
        endpoint = question.endpoint
        while True:
            try:
                router = self._hosting.router(endpoint)
                if router.at_once is not None:
                    raise invalid(f"Endpoint {endpoint} is asynchronous: ask it with InvokeEndpointAsync.")
                target = stack.enter_context(router.taken(question.headers.get(f"{_OURS}target-variant")))
                if target is not None:
                    return target
                status = self._hosting.status(endpoint)
            except ResourceNotFound:
                raise invalid(f"Endpoint {endpoint} of account {self._account_id} not found.") from None
            except ServiceError as error:
                raise invalid(str(error)) from None
            if status not in ("InService", "Updating"):
                raise invalid(
                    f"Endpoint {endpoint} of account {self._account_id} is {status}. It can be invoked when it is"
                    " InService."
                )
            if time.monotonic() > question.begun + _READY_S:
                raise ApiError(
                    "ServiceUnavailable",
                    f"No instance of endpoint {endpoint} is ready to answer now: one that has ended is being"
                    " replaced. Try again in some seconds.",
                    503,
                )
            await asyncio.sleep(_LOOK_S)

    async def _asked(self, question: _Question, target: Target, stack: ExitStack) -> Response:
        is_streamed = question.is_streamed
        answer = await self._containers.post(
            target.address,
            "/invocations",
            _passed_on(question.headers, is_streamed),
            question.body,
            _STREAM_S if is_streamed else _TIMEOUT_S,
        )
        stack.callback(answer.close)
        try:
            answered = _answered(answer.headers, target, is_streamed)
        except ValueError as error:
            raise self._model_error(question, target, answer.status, str(error)) from None
        if is_streamed and answer.ok:
            kept = stack.pop_all()
            return StreamingResponse(
                _events(answer, kept), 200, answered, "application/vnd.amazon.eventstream"
            )
        data = await _read(answer)
        if data is None:
            raise self._model_error(question, target, answer.status, _TOO_LARGE)
        if not answer.ok:
            raise self._model_error(question, target, answer.status, data.decode(errors="replace"))
        return Response(data, 200, answered)

    def _model_error(self, question: _Question, target: Target, status: int, message: str) -> ApiError:
        """AWS's ModelError, for a container that answers with an error, in an invalid form or not at all."""
        group = LOG_GROUPS + question.endpoint
        arn = f"arn:aws:logs:{self._region}:{self._account_id}:log-group:{group}"
        kind = "client" if 400 <= status < 500 else "model" if status == HTTPStatus.OK else "server"
        return ApiError(
            "ModelError",
            f"Received {kind} error ({status}) from {target.variant} with message"
            f' "{message[:_SHOWN_CHARACTERS]}". See {group} in CloudWatch (windtunnel endpoint-logs'
            f" {question.endpoint}) in account {self._account_id} for more information.",
            424,
            {
                "OriginalStatusCode": status,
                "OriginalMessage": message[:_SHOWN_CHARACTERS],
                "LogStreamArn": arn,
            },
        )


def _check_members(headers: Mapping[str, str]) -> None:
    """Raise ``ApiError`` for a member of the request that would have no effect."""
    for name in _REFUSED.keys() & headers.keys():
        raise invalid(f"Not supported here: {_REFUSED[name]}; leave it out.")
    if len(headers.get(f"{_OURS}custom-attributes", "")) > _MAX_ATTRIBUTES:
        raise invalid(f"CustomAttributes may have {_MAX_ATTRIBUTES} characters.")


def _passed_on(headers: Mapping[str, str], is_streamed: bool) -> dict[str, str]:
    """The request's headers that the container gets."""
    accept = "x-amzn-sagemaker-accept" if is_streamed else "accept"
    found = {"Content-Type": headers.get("content-type", "application/octet-stream")}
    if headers.get(accept, "*/*") != "*/*":
        found["Accept"] = headers[accept]
    found |= {name: value for name, value in headers.items() if name.startswith(_OURS)}
    return found


def _answered(headers: Mapping[str, str], target: Target, is_streamed: bool) -> dict[str, str]:
    """The container's headers that the client gets. Raises ``ValueError`` for a value that HTTP does not allow."""
    kind = "X-Amzn-SageMaker-Content-Type" if is_streamed else "Content-Type"
    found = {"x-Amzn-Invoked-Production-Variant": target.variant}
    for theirs, name in (("content-type", kind), (f"{_OURS}custom-attributes", _ATTRIBUTES)):
        if theirs in headers:
            value = headers[theirs]
            if not (value.isascii() and value.isprintable()):
                raise ValueError(f"its header {theirs} is {value!a}: HTTP takes printable ASCII")
            found[name] = value
    return found


async def _read(answer: Answer) -> bytes | None:
    """The whole body; None if it has more than `MAX_PAYLOAD_BYTES`."""
    parts: list[bytes] = []
    size = 0
    while part := await answer.next_part():
        parts.append(part)
        size += len(part)
        if size > MAX_PAYLOAD_BYTES:
            return None
    return b"".join(parts)


async def _events(answer: Answer, kept: ExitStack) -> AsyncIterator[bytes]:
    """The container's bytes as PayloadPart events, as they arrive."""
    with kept:
        try:
            while part := await answer.next_part():
                yield _event({":message-type": "event", ":event-type": "PayloadPart"}, part)
        except asyncio.TimeoutError:  # before OSError, which includes it in newer Pythons
            yield _stream_error(
                "ModelInvocationTimeExceeded", f"The answer was not whole within {_STREAM_S:g} s."
            )
        except OSError as error:
            yield _stream_error("StreamBroken", str(error))


def _stream_error(code: str, message: str) -> bytes:
    document = json.dumps({"Message": message, "ErrorCode": code}).encode()
    return _event({":message-type": "exception", ":exception-type": "ModelStreamError"}, document)


def _event(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message of `application/vnd.amazon.eventstream`: lengths, their CRC, headers, payload, CRC of all."""
    packed = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + packed + payload
    return message + struct.pack(">I", binascii.crc32(message))
