"""The ASGI application of all pages: a table of pages, behind the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from windtunnel_local.credentials import Credentials
from windtunnel_local.service.ground.errors import JobNotFound, ResourceNotFound, ServiceError
from windtunnel_local.service.service import Service
from windtunnel_local.ui.access import Access
from windtunnel_local.ui.guard import Guard
from windtunnel_local.ui.pages import (
    actions,
    answer,
    clusters,
    compare,
    job,
    job_log,
    jobs,
    resources,
    tensorboard,
    today,
    trace,
)
from windtunnel_local.ui.site import Site

PAGES: Sequence[Callable[[Site], Sequence[Route]]] = (
    jobs.routes,
    today.routes,
    answer.routes,
    compare.routes,
    trace.routes,
    actions.routes,
    resources.routes,
    clusters.routes,
    job.routes,
    job_log.routes,
    tensorboard.routes,
)
"""Each page is a file of `pages` with an entry here. Pages are called in threads."""

_NOT_FOUND = 404


class Ui:
    """The ASGI application below /ui. ``since``: the server's start, in Unix seconds."""

    def __init__(
        self, backend: Service, credentials: Credentials, port: int, version: str, since: float, home: Path
    ) -> None:
        self._site = site = Site(backend, version, home)
        self.routes = [
            Route("/ui", lambda _: RedirectResponse("/ui/jobs")),
            Route("/ui/static/{name}", partial(_static, site)),
            *(
                Route(route.path, site.answered(route.endpoint), methods=list(route.methods or ()))
                for page in PAGES
                for route in page(site)
            ),
        ]
        pages = Starlette(routes=self.routes)
        pages.router.redirect_slashes = False
        pages.add_exception_handler(ServiceError, partial(_refused, site))
        pages.add_exception_handler(HTTPException, partial(_missing, site))
        pages.add_exception_handler(Exception, partial(_failed, site))
        access = Access(credentials.secret_access_key, since)
        self._guard = Guard(pages, access, port, lambda: backend.clock.now().timestamp())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    def busy(self) -> bool:
        """Whether a TensorBoard runs."""
        return self._site.boards.busy()

    def end(self) -> None:
        """End all event streams and TensorBoards, as the server exits. Idempotent."""
        self._site.end()


def _static(site: Site, request: Request) -> Response:
    found = site.static.get(request.path_params["name"])
    if found is None:
        raise HTTPException(_NOT_FOUND)
    body, media_type = found
    # Its URL contains a hash of the files, so that other content has another URL.
    return Response(
        body, headers={"cache-control": "private, max-age=31536000, immutable"}, media_type=media_type
    )


def _refused(site: Site, request: Request, error: Exception) -> Response:
    if isinstance(error, JobNotFound):
        text = "It may have been deleted. The list has all that there are."
        return site.message(request, _NOT_FOUND, "There is no such job", text)
    status = _NOT_FOUND if isinstance(error, ResourceNotFound) else getattr(error, "status", 400)
    return site.message(request, status, "That cannot be done", str(error))


def _missing(site: Site, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = "The address is not one of Windtunnel's pages."
    return site.message(request, status, "There is no such page", text)


def _failed(site: Site, request: Request, error: Exception) -> Response:
    text = f"That is a mistake of Windtunnel's ({type(error).__name__}). The backend's log has it whole."
    return site.message(request, 500, "This page failed", text)
