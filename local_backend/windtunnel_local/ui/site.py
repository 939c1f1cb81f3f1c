"""What all pages use: the service, templates, and server-sent events for live updates."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from windtunnel_local.service.service import Service
from windtunnel_local.ui.costs import CostBook
from windtunnel_local.ui.formats import FILTERS
from windtunnel_local.ui.tensorboard.boards import Boards
from windtunnel_local.ui.text import visible

Found = TypeVar("Found")
_FOLDER = Path(__file__).parent
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEARTBEAT_S = 15.0
MOST_FOLLOWERS = 24
"""The most pages with live updates at the same time."""
_AGAIN_MS = 10_000
"""After how long a page above that limit tries again."""
_LOOKING_AT_ONCE = 2
_ANSWERED_AT_ONCE = 4
"""Threads for live updates, and for all other requests of pages: so few that the API's calls find threads free."""
LOOKED_AT_S = 1.0
"""How often a live update looks for news."""
_IDLE_SHARE = 10
"""A live update sleeps this many times longer than its last look took, so that slow ones leave the processor free."""
NAVIGATION = (
    ("Jobs", "/ui/jobs"),
    ("Queue", "/ui/queue"),
    ("Warm pools", "/ui/warm-pools"),
    ("Endpoints", "/ui/endpoints"),
    ("Transform jobs", "/ui/transform-jobs"),
    ("Clusters", "/ui/clusters"),
)
"""The pages that every page links to."""


class _Threads:
    """Runs calls in at most ``most`` threads at once; others wait. Only for use in the event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[[], Found]) -> Found:
        self._limiter = self._limiter or anyio.CapacityLimiter(self._most)
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)


class Site:
    """What all pages share. Thread-safe. ``version``: of Windtunnel. ``home``: the folder that holds clusters."""

    def __init__(self, backend: Service, version: str, home: Path) -> None:
        """Read the static files: stylesheets, scripts and the icon."""
        self.backend = backend
        self.home = home
        self.costs = CostBook(backend.objects)
        self.boards = Boards(backend)
        self.static = {
            path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in (_FOLDER / "static").iterdir()
        }
        self._ended = threading.Event()
        self._followers = 0
        self._looking = _Threads(_LOOKING_AT_ONCE)
        self._answering = _Threads(_ANSWERED_AT_ONCE)
        # In the URLs of static files, so that a page never gets files of another build from the browser's cache.
        build = hashlib.sha256(b"".join(body for body, _ in sorted(self.static.values()))).hexdigest()[:12]
        self._templates = environment()
        self._templates.globals.update(version=version, build=build, nav=NAVIGATION)

    def page(self, request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A whole page. Its template extends ``base.html``."""
        return HTMLResponse(self.part(request, template, **context), status)

    def message(self, request: Request, status: int, heading: str, message: str) -> HTMLResponse:
        """A page with a heading and a message, such as an error."""
        return self.page(request, "message.html", status, heading=heading, message=message)

    def part(self, request: Request, template: str, **context: Any) -> Markup:
        """A template as HTML: a part of a page, to include in it or to send later."""
        found = self._templates.get_template(template)
        return Markup(  # noqa: S704  what the template has escaped
            found.render(
                csrf=request.state.session.csrf,
                path=request.url.path,
                now=self.backend.clock.now(),
                **context,
            )
        )

    def live(
        self,
        state: Callable[[], Hashable],
        parts: Callable[[], Mapping[str, str]],
        every_s: float = LOOKED_AT_S,
    ) -> Response:
        """Server-sent events for an element with ``data-live``: new parts whenever ``state`` changes.

        Both are called in a thread: ``state`` every ``every_s`` seconds, so it should take a millisecond; ``parts``
        (HTML by the id of the element whose content it is) when the state has changed.
        """

        async def changes() -> AsyncIterator[Mapping[str, str] | None]:
            last: Hashable = None
            sent: Mapping[str, str] = {}
            while True:
                now, taken_s = await self.look(partial(_timed, state))
                fresh: Mapping[str, str] = {}
                if now != last:
                    found, more_s = await self.look(partial(_timed, parts))
                    fresh = {key: html for key, html in found.items() if sent.get(key) != html}
                    last, sent, taken_s = now, found, taken_s + more_s
                yield fresh or None
                until = anyio.current_time() + max(every_s, _IDLE_SHARE * taken_s)
                while (rest_s := until - anyio.current_time()) > 0:
                    await anyio.sleep(min(rest_s, LOOKED_AT_S))
                    yield None

        return self.events(changes())

    def events(self, messages: AsyncIterator[Any]) -> Response:
        """Messages as server-sent events, each as JSON, until they end or the server exits.

        ``messages`` must yield None at least once a second if there is no news, so that the server's end is noticed.
        While the stream is open, the server does not count as idle. If too many pages follow, the event ``full`` says
        so, because a browser does not tell a page the status and text of a refused stream.
        """
        if self._followers >= MOST_FOLLOWERS:
            full = (
                f"This page does not follow: {MOST_FOLLOWERS} pages follow what happens already, and no more can. "
                "Close one; this one then goes on by itself."
            )
            event = f"retry: {_AGAIN_MS}\nevent: full\ndata: {json.dumps(full)}\n\n"
            return PlainTextResponse(event, media_type="text/event-stream")

        async def stream() -> AsyncIterator[bytes]:
            self._followers += 1
            try:
                async for part in self._written(messages):
                    yield part
            finally:
                self._followers -= 1

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _written(self, messages: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        quiet_since = anyio.current_time()
        async for message in messages:
            if self._ended.is_set():
                return
            if message is not None:
                yield f"data: {json.dumps(message)}\n\n".encode()
            elif anyio.current_time() - quiet_since < _HEARTBEAT_S:
                continue
            else:  # a comment now and then, to notice a connection that nobody reads any more
                yield b":\n\n"
            quiet_since = anyio.current_time()

    async def look(self, call: Callable[[], Found]) -> Found:
        """Run a call in one of the threads for live updates."""
        return await self._looking.run(call)

    def answered(self, endpoint: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """Wrap an endpoint, so that it runs in one of the threads for pages."""

        async def answer(request: Request) -> Response:
            return await self._answering.run(partial(endpoint, request))

        return answer

    def end(self) -> None:
        """End all event streams, within a second, and every TensorBoard, as the server exits. Idempotent."""
        self._ended.set()
        self.boards.end()


def followed(
    path: str, page: Callable[[Request], Response], live: Callable[[Request], Response]
) -> tuple[Route, Route]:
    """The routes of a page and of its live updates (see `Site.live`)."""
    return Route(path, page), Route(f"{path}/-/live", live)


def environment() -> Environment:
    """The Jinja environment: templates escape all text by themselves, and fail if a name is missing."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(FILTERS)
    return made


def _timed(call: Callable[[], Found]) -> tuple[Found, float]:
    """The result of a call, and the CPU seconds that it took."""
    begun = time.thread_time()
    return call(), time.thread_time() - begun


def _shown(value: Any) -> Any:
    """A value that a template writes; in a text, invisible characters are written out. Escaping comes after."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
