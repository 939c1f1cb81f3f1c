"""The two paths of SageMaker's container interface: /ping and /invocations."""

from __future__ import annotations

import asyncio

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from neuron_sim.serving.frames import Head
from neuron_sim.serving.pool import Pool

_GRACE_S = 5
"""How many seconds requests in progress may take after SIGTERM."""
_KEEP_ALIVE_S = 75
"""Seconds; longer than clients keep an idle connection, so that none is closed during a request."""


def server_of(pool: Pool) -> uvicorn.Server:
    """The server, which does not run yet."""

    async def ping(_: Request) -> Response:
        return Response(status_code=200 if pool.ready else 503)

    async def invocations(request: Request) -> Response:
        try:
            sent = await request.body()
        except ClientDisconnect:
            return Response(status_code=400)  # not read: the client is gone
        try:
            head, body = await pool.ask(Head(dict(request.headers)), sent)
        except asyncio.CancelledError:
            return Response(status_code=500)  # the container ends: no traceback in its log
        return Response(bytes(body), head.status, head.headers)

    application = Starlette(
        routes=[Route("/ping", ping), Route("/invocations", invocations, methods=["POST"])]
    )
    config = uvicorn.Config(
        application,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    return uvicorn.Server(config)
