"""What a page has in hand: the service, templates, and parts that follow what happens."""

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
"""Pages that follow at once."""
_AGAIN_MS = 10_000
"""When one page too many tries again."""
_LOOKING_AT_ONCE = 2
_ANSWERED_AT_ONCE = 4
"""Threads of those that follow, and of all other pages: they must not keep the API's calls from theirs."""
LOOKED_AT_S = 1.0
"""How often a page that follows looks whether there is anything new."""
_IDLE_SHARE = 10
"""How many times longer a follower sleeps than its last look took: a slow search must not fill a processor."""
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
    """Calls in at most so many threads at once; further ones wait. Used in the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[[], Found]) -> Found:
        self._limiter = self._limiter or anyio.CapacityLimiter(self._most)
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)


class Site:
    """Made once; safe from several threads. ``version``: of Windtunnel. ``home``: where clusters are."""

    def __init__(self, backend: Service, version: str, home: Path) -> None:
        """Read the stylesheet and the scripts."""
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
        # A page of another build must not be drawn with this one's stylesheet.
        build = hashlib.sha256(b"".join(body for body, _ in sorted(self.static.values()))).hexdigest()[:12]
        self._templates = environment()
        self._templates.globals.update(version=version, build=build, nav=NAVIGATION)

    def page(self, request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A whole page. Its template extends ``base.html``."""
        return HTMLResponse(self.part(request, template, **context), status)

    def message(self, request: Request, status: int, heading: str, message: str) -> HTMLResponse:
        """A page that says why there is no other."""
        return self.page(request, "message.html", status, heading=heading, message=message)

    def part(self, request: Request, template: str, **context: Any) -> Markup:
        """A part of a page, to be put into one or sent after it."""
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
        """Server-sent events for an element with ``data-live``: whenever ``state`` is another, new parts.

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
        """Messages as server-sent events, each as JSON, until they end or the server leaves.

        ``messages`` yields None at least once a second while there is nothing to say: that is when an end is seen. The
        connection is open meanwhile, so the server does not take itself for idle. Where too many follow, the event
        ``full`` says so: of a refusal's status and words a browser would tell the page nothing.
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
            else:  # a comment now and then: a connection that nobody reads any more is found out
                yield b":\n\n"
            quiet_since = anyio.current_time()

    async def look(self, call: Callable[[], Found]) -> Found:
        """Call it in one of the threads of those who follow."""
        return await self._looking.run(call)

    def answered(self, endpoint: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that is called in one of the threads of pages."""

        async def answer(request: Request) -> Response:
            return await self._answering.run(partial(endpoint, request))

        return answer

    def end(self) -> None:
        """End all events within a second, and every TensorBoard: the server leaves. Idempotent."""
        self._ended.set()
        self.boards.end()


def followed(
    path: str, page: Callable[[Request], Response], live: Callable[[Request], Response]
) -> tuple[Route, Route]:
    """A page, and what is sent after it to whoever stays: what `Site.live` makes."""
    return Route(path, page), Route(f"{path}/-/live", live)


def environment() -> Environment:
    """What templates are rendered in: they escape all text by themselves, and fail where a name is missing."""
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
    """What it returns, and the seconds of processor that it took."""
    begun = time.thread_time()
    return call(), time.thread_time() - begun


def _shown(value: Any) -> Any:
    """What a template writes: text of others is made visible whole; escaping comes after."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
