"""The backend's ASGI application: checks who calls, finds the service, and passes the request to it.

    Host allow-list ─▶ /health, or SigV4 ─▶ scope's service ─▶ sagemaker, logs (X-Amz-Target)
                                                             ├▶ SageMaker Runtime (method, path)
                                                             ├▶ sts, iam (Action)
                                                             ├▶ cloudwatch (CBOR by path, and both of these)
                                                             └▶ s3 (method, path, query)

Below /ui is the page of `windtunnel ui`, which requires a cookie instead of a signature. No CORS headers are sent, so
browsers keep other web pages from reading any answer.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windtunnel_local.api import callers, s3_answer, s3_body, s3_routes, sigv2
from windtunnel_local.api.body import BodyPipe
from windtunnel_local.api.errors import ApiError, Protocol
from windtunnel_local.api.invocations import MAX_PAYLOAD_BYTES, PREFIX, Runtime
from windtunnel_local.api.respond import CBOR_PROTOCOL, error_response
from windtunnel_local.api.rpc import Operations, answer_cbor, answer_json, answer_query
from windtunnel_local.api.s3 import S3
from windtunnel_local.api.sagemaker import LOOKUPS
from windtunnel_local.api.sigv4 import Claim, Signable, Verifier, parse, query_pairs
from windtunnel_local.service.ground.errors import ServiceError

MAX_BODY_BYTES = 4 << 20
_MOST_TO_ENDPOINTS = MAX_PAYLOAD_BYTES + (1 << 20)
"""A little more than an endpoint accepts, so that the error can say how much was sent."""
_DRAIN_BYTES = 4 << 20
_DRAIN_S = 5.0
MAX_HEAD_BYTES = 32 << 10  # S3 allows 8 KiB; a session token and a presigned query are added here
MAX_HEADERS = 200
_JSON_SERVICES = ("sagemaker", "logs")
_QUERY_SERVICES = ("sts", "iam", "monitoring")
STREAMS = 32  # most object bodies received at once, so that threads are left for short calls


@dataclass(frozen=True)
class Services:
    """The services behind the API; ``rpc``: the operations of each, by its signing name."""

    rpc: Mapping[str, Operations]
    s3: S3
    runtime: Runtime

    @property
    def names(self) -> list[str]:
        return sorted([*self.rpc, "s3"])


class Api:
    """The application. ``hosts``: the Host headers to accept; ``health``: the answer of /health.

    ``page`` returns the application for paths below /ui. It is called in a thread, for each such request.
    """

    def __init__(
        self,
        services: Services,
        verifier: Verifier,
        hosts: frozenset[str],
        health: Mapping[str, object],
        page: Callable[[], ASGIApp],
    ) -> None:
        self.services = services
        self._verifier = verifier
        self._hosts = hosts
        # AWS's CRT leaves out the port when it asks for a copy's source. A browser always sends this port.
        self._signed_hosts = hosts | {host.rpartition(":")[0] for host in hosts}
        self._health = dict(health)
        self._page = page
        self._streams: anyio.CapacityLimiter | None = None
        self._under_way = 0
        self._last_request = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is under way."""
        return 0.0 if self._under_way else time.monotonic() - self._last_request

    def is_crowded(self) -> bool:
        """Whether an object's body waits because `STREAMS` others are being received. Call it in the event loop."""
        return self._streams is not None and self._streams.statistics().tasks_waiting > 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self._under_way += 1
        try:
            body = _Body(receive)
            request = Request(scope, body)
            response = await self._answer(request)
            unread = _has_body(request) or _waits_to_send(request)
            if isinstance(response, Response) and not body.ended and unread:
                # The unread body would be parsed as the connection's next request. And an answer that comes instead of
                # "100 Continue" is taken by botocore before 1.44 for the answer to its next request, too.
                response.headers["connection"] = "close"
            await response(scope, body, send)
        except ClientDisconnect:
            pass  # nobody is left to be answered
        finally:
            self._under_way -= 1
            self._last_request = time.monotonic()

    async def _answer(self, request: Request) -> ASGIApp:
        request_id = str(uuid.uuid4())
        signable = Signable(
            request.method, request.scope["raw_path"], request.scope["query_string"], request.headers.raw
        )
        protocol = _protocol(signable, None)
        malformed = _malformed(signable, protocol, request.scope["http_version"])
        if malformed:
            response = error_response(malformed, protocol, request_id, head=request.method == "HEAD")
            response.headers["connection"] = "close"  # because it is not certain where its body ends
            return response
        claim: Claim | None = None
        try:
            if _at_a_port(request):
                self._check_host(signable)
            if signable.path == b"/health" and self._is_health(signable, request):
                return JSONResponse(self._health)
            if signable.path.startswith(b"/ui") and self._is_page(signable, request):
                return await anyio.to_thread.run_sync(self._page)
            claim = sigv2.parse(signable) if sigv2.is_of(signable) else parse(signable)
            protocol = _protocol(signable, claim)
            callers.CURRENT.set(self._verifier.admit(claim))
            response = await self._route(claim, signable, request, request_id)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  every error becomes an answer here
            response = error_response(error, protocol, request_id, head=request.method == "HEAD")
            if (
                claim is not None
                and claim.service == "monitoring"
                and isinstance(error, (ApiError, ServiceError))
            ):
                # Older clients know CloudWatch's errors by the names that they had in the query protocol.
                response.headers["x-amzn-query-error"] = f"{error.code};Sender"
            await _drain(request)
        name = b"x-amz-request-id" if protocol == "s3" else b"x-amzn-requestid"
        response.raw_headers.append((name, request_id.encode()))
        return response

    async def _route(self, claim: Claim, signable: Signable, request: Request, request_id: str) -> Response:
        services = self.services
        if claim.service == "s3":
            return await self._s3(claim, signable, request)
        # Requests to SageMaker Runtime are signed for the service sagemaker.
        is_runtime = claim.service == "sagemaker" and signable.path.startswith(PREFIX)
        body = await _whole_body(request, _MOST_TO_ENDPOINTS if is_runtime else MAX_BODY_BYTES)
        self._verifier.check(claim, signable, hashlib.sha256(body).hexdigest())
        if is_runtime:
            path = signable.path.decode("latin-1")
            return await services.runtime.answer(request.method, path, signable.first_values, body)
        operations = services.rpc.get(claim.service)
        if operations is None:
            raise ApiError(
                "UnknownOperationException",
                f"Windtunnel does not serve {claim.service[:50]!r}. It serves {', '.join(services.names)}; "
                "for everything else use a session with AWS itself.",
                404,
            )
        protocol = _protocol(signable, claim)
        if protocol == "cbor":
            path = signable.path.decode("latin-1")
            call = partial(answer_cbor, claim.service, operations, path, body)
        elif protocol == "json":
            target = signable.header("x-amz-target")
            call = partial(answer_json, claim.service, operations, target, body)
            if claim.service == "sagemaker" and (target or "").rpartition(".")[2] in LOOKUPS:
                return call()
        else:
            form = _form(body, signable.query)
            call = partial(answer_query, claim.service, operations, form, request_id)
        return await anyio.to_thread.run_sync(call)

    async def _s3(self, claim: Claim, signable: Signable, request: Request) -> Response:
        if claim.expires_at is not None:
            signable = sigv2.checked(signable, claim, self._verifier.secret_of(claim))
        headers = dict(signable.first_values)
        query = {name: value.decode("latin-1") for name, value in query_pairs(signable.query)}
        mode = s3_body.payload_mode(headers, claim, query.get(b"X-Amz-Content-Sha256"))
        if claim.expires_at is None:
            self._verifier.check(claim, signable, mode)
        has_body = _has_body(request)
        pipe = BodyPipe(request.stream())

        def run() -> Response:
            call = s3_routes.understood(signable, claim.region)
            body = s3_body.verified(
                pipe,
                headers,
                mode,
                claim,
                self._verifier,
                has_body=has_body,
                checksums=call.operation != "CompleteMultipartUpload",  # there, of the object
            )
            return s3_answer.response(call.model, self.services.s3.handle(call, body))

        self._streams = self._streams or anyio.CapacityLimiter(STREAMS)
        # Calls without a body are short: they need not wait behind uploads.
        return await anyio.to_thread.run_sync(run, limiter=self._streams if has_body else None)

    def _is_health(self, signable: Signable, request: Request) -> bool:
        """Whether a request for /health is for the server's state, not for a bucket or object of that name."""
        in_url = b"X-Amz-Signature" in signable.query or sigv2.is_of(signable)
        is_signed = signable.header("authorization") is not None or in_url
        is_ours = not _at_a_port(request) or (signable.header("host") or "").lower() in self._hosts
        return request.method in ("GET", "HEAD") and is_ours and not is_signed

    def _is_page(self, signable: Signable, request: Request) -> bool:
        """Whether a request is for the page: it came to the TCP port, and its Host does not name a bucket.

        A bucket called "ui" cannot exist: the name is too short.
        """
        path, host = signable.path, signable.header("host") or ""
        return (path == b"/ui" or path[3:4] == b"/") and _at_a_port(request) and host.lower() in self._hosts

    def _check_host(self, signable: Signable) -> None:
        hosts = [value.decode("latin-1").lower() for name, value in signable.headers if name == b"host"]
        # S3's virtual-host style: the bucket's name stands before the host.
        bucket = s3_routes.virtual_bucket(hosts[0]) if len(hosts) == 1 else ""
        if len(hosts) != 1 or hosts[0].removeprefix(f"{bucket}." if bucket else "") not in self._signed_hosts:
            raise ApiError(
                "AccessDenied",
                f"Host {', '.join(hosts)[:100]!r} is not us. Valid: {', '.join(sorted(self._hosts))}.",
                403,
            )


class _Body:
    """ASGI's receive, which also remembers whether the body has ended."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.ended = self.ended or not message.get("more_body", False)
        return message


def _at_a_port(request: Request) -> bool:
    """Whether the request came to the TCP port, which web pages can reach by any host name; not to the jobs' socket.

    A job that calls through the socket names the port of the server that started it; a later server may have another.
    """
    server = request.scope.get("server")
    return server is not None and server[1] is not None


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _waits_to_send(request: Request) -> bool:
    """Whether the client waits for "100 Continue" before it sends its body, even an empty one."""
    return "100-continue" in request.headers.get("expect", "").lower()


def local_hosts(port: int) -> frozenset[str]:
    """The Host headers of a server on loopback."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


def _protocol(signable: Signable, claim: Claim | None) -> Protocol:
    """The protocol that the answer must have: that of the service, or the one that the headers name."""
    service = claim.service if claim else None
    if service == "s3":
        return "s3"
    if signable.header("smithy-protocol") == CBOR_PROTOCOL:
        return "cbor"
    if signable.header("x-amz-target") is not None or service in _JSON_SERVICES:
        return "json"
    form = (signable.header("content-type") or "").startswith("application/x-www-form-urlencoded")
    return "query" if service in _QUERY_SERVICES or form else "json" if service else "s3"


def _malformed(signable: Signable, protocol: Protocol, version: str) -> ApiError | None:
    """The error of a request that is too large, or that two HTTP programs might read differently; else None."""
    names = {name for name, _ in signable.headers}
    head = sum(len(name) + len(value) + 4 for name, value in signable.headers)
    reason = None
    if version not in ("1.0", "1.1"):
        reason = "only HTTP/1.0 and HTTP/1.1 are served"
    elif not signable.path.startswith(b"/"):
        reason = "the request target must be a path"
    elif {b"transfer-encoding", b"content-length"} <= names:
        reason = "Content-Length and Transfer-Encoding exclude each other"
    elif len(signable.path) + len(signable.query) + head > MAX_HEAD_BYTES:
        reason = f"your request header section exceeds the maximum of {MAX_HEAD_BYTES} bytes"
    elif len(signable.headers) > MAX_HEADERS:
        reason = f"it has more than {MAX_HEADERS} headers"
    if reason is None:
        return None
    code = "BadRequest" if protocol == "s3" else "MalformedHttpRequestException"
    return ApiError(code, f"An error occurred when parsing the HTTP request: {reason}.", 400)


def _form(body: bytes, query: bytes) -> bytes:
    """The form of the query protocol: the body, or of a presigned URL the query without the signature."""
    parts = (part for part in query.split(b"&") if not part.lower().startswith(b"x-amz-"))
    return body or b"&".join(parts)


async def _whole_body(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    length = 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > limit:
            raise ApiError("RequestEntityTooLargeException", f"The body is larger than {limit} bytes.", 413)
    return b"".join(parts)


async def _drain(request: Request) -> None:
    """Read a refused body to its end, if it is short: a client that is still sending cannot read the answer.

    Not if the client waits for "100 Continue": to read would tell it to send.
    """
    if _waits_to_send(request):
        return
    length = 0
    # RuntimeError: the body was read already.
    with suppress(RuntimeError, ClientDisconnect), anyio.move_on_after(_DRAIN_S):
        async for part in request.stream():
            length += len(part)
            if length > _DRAIN_BYTES:
                return
