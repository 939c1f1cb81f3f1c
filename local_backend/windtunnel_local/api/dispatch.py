"""The one ASGI application: who may ask, what is asked, who answers.

    Host allow-list ─▶ /health, or SigV4 ─▶ scope's service ─▶ sagemaker, logs (X-Amz-Target)
                                                             ├▶ sts, iam (Action)
                                                             └▶ s3 (method, path, query)

There are no CORS headers: a web page has no business here, and its browser is told so by silence.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from windtunnel_local.api import s3_answer, s3_body, s3_routes
from windtunnel_local.api.body import BodyPipe
from windtunnel_local.api.errors import ApiError, Protocol
from windtunnel_local.api.respond import error_response
from windtunnel_local.api.rpc import Operations, answer_json, answer_query
from windtunnel_local.api.s3 import S3
from windtunnel_local.api.sigv4 import Claim, Signable, Verifier, parse, query_pairs

MAX_BODY_BYTES = 4 << 20
_DRAIN_BYTES = 4 << 20
_DRAIN_S = 5.0
_STREAMS = 32  # object bodies under way at once: they must not keep the threads from the short calls


@dataclass(frozen=True)
class Services:
    """Who answers: by service, the operations served."""

    json: Mapping[str, Operations]
    query: Mapping[str, Operations]
    s3: S3

    @property
    def names(self) -> list[str]:
        """Signing names of all services."""
        return sorted([*self.json, *self.query, "s3"])


class Api:
    """The application. ``hosts``: the Host headers that are ours; ``health``: what /health returns."""

    def __init__(
        self, services: Services, verifier: Verifier, hosts: frozenset[str], health: Mapping[str, object]
    ) -> None:
        self._services = services
        self._verifier = verifier
        self._hosts = hosts
        self._health = dict(health)
        self._streams: anyio.CapacityLimiter | None = None
        self._under_way = 0
        self._last_request = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is under way."""
        return 0.0 if self._under_way else time.monotonic() - self._last_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self._under_way += 1
        try:
            body = _Body(receive)
            request = Request(scope, body)
            response = await self._answer(request)
            if not body.ended and _has_body(request):
                # What was not read would be taken for the connection's next request.
                response.headers["connection"] = "close"
            await response(scope, body, send)
        except ClientDisconnect:
            pass  # nobody is left to be answered
        finally:
            self._under_way -= 1
            self._last_request = time.monotonic()

    async def _answer(self, request: Request) -> Response:
        request_id = str(uuid.uuid4())
        signable = Signable(
            request.method, request.scope["raw_path"], request.scope["query_string"], request.headers.raw
        )
        protocol = _protocol(signable, None)
        try:
            self._check_host(signable)
            if signable.path == b"/health" and request.method in ("GET", "HEAD"):
                return JSONResponse(self._health)
            claim = parse(signable)
            protocol = _protocol(signable, claim)
            self._verifier.admit(claim)
            response = await self._route(claim, signable, request, request_id)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  whatever is thrown gets an answer, in one place
            response = error_response(error, protocol, request_id, head=request.method == "HEAD")
            await _drain(request)
        response.headers["x-amz-request-id" if protocol == "s3" else "x-amzn-requestid"] = request_id
        return response

    async def _route(self, claim: Claim, signable: Signable, request: Request, request_id: str) -> Response:
        services = self._services
        if claim.service == "s3":
            return await self._s3(claim, signable, request)
        body = await _whole_body(request)
        self._verifier.check(claim, signable, hashlib.sha256(body).hexdigest())
        if claim.service in services.json:
            target = signable.header("x-amz-target")
            call = partial(answer_json, claim.service, services.json[claim.service], target, body)
        elif claim.service in services.query:
            call = partial(answer_query, claim.service, services.query[claim.service], body, request_id)
        else:
            raise ApiError(
                "UnknownOperationException",
                f"Windtunnel does not serve {claim.service[:50]!r}. It serves {', '.join(services.names)}; "
                "for everything else use a session with AWS itself.",
                404,
            )
        return await anyio.to_thread.run_sync(call)

    async def _s3(self, claim: Claim, signable: Signable, request: Request) -> Response:
        headers = dict(request.headers)
        query = {name: value.decode("latin-1") for name, value in query_pairs(signable.query)}
        mode = s3_body.payload_mode(headers, claim, query.get(b"X-Amz-Content-Sha256"))
        self._verifier.check(claim, signable, mode)
        has_body = _has_body(request)
        pipe = BodyPipe(request.stream())

        def run() -> Response:
            body = s3_body.verified(pipe, headers, mode, claim, self._verifier, has_body=has_body)
            call = s3_routes.understood(signable)
            return s3_answer.response(call.model, self._services.s3.handle(call, body))

        self._streams = self._streams or anyio.CapacityLimiter(_STREAMS)
        return await anyio.to_thread.run_sync(run, limiter=self._streams)

    def _check_host(self, signable: Signable) -> None:
        hosts = [value.decode("latin-1").lower() for name, value in signable.headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            raise ApiError(
                "AccessDenied",
                f"Host {', '.join(hosts)[:100]!r} is not us. Valid: {', '.join(sorted(self._hosts))}.",
                403,
            )


class _Body:
    """ASGI's receive, which remembers whether the body has come to its end."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.ended = self.ended or not message.get("more_body", False)
        return message


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def local_hosts(port: int) -> frozenset[str]:
    """The Host headers of a server on loopback."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


def _protocol(signable: Signable, claim: Claim | None) -> Protocol:
    """In which shape the client expects an error."""
    if signable.header("x-amz-target") is not None:
        return "json"
    form = (signable.header("content-type") or "").startswith("application/x-www-form-urlencoded")
    service = claim.service if claim else None
    return "query" if service in ("sts", "iam") or (form and service != "s3") else "s3"


async def _whole_body(request: Request) -> bytes:
    parts: list[bytes] = []
    length = 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > MAX_BODY_BYTES:
            raise ApiError(
                "RequestEntityTooLargeException", f"The body is larger than {MAX_BODY_BYTES} bytes.", 413
            )
    return b"".join(parts)


async def _drain(request: Request) -> None:
    """Read a refused body to its end, if it is short: a client that is still sending cannot read the answer.

    One that waits for "100 Continue" must not be told to.
    """
    if "100-continue" in request.headers.get("expect", "").lower():
        return
    length = 0
    # RuntimeError: read already.
    with suppress(RuntimeError, ClientDisconnect), anyio.move_on_after(_DRAIN_S):
        async for part in request.stream():
            length += len(part)
            if length > _DRAIN_BYTES:
                return
