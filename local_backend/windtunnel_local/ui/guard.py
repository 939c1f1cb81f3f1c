"""Checks every request below /ui, and sets the same headers on every answer.

Pages get only requests with a session, and only forms with a CSRF token: a new page cannot forget these checks.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qsl, quote

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windtunnel_local.ui.access import SESSION, Access, Session
from windtunnel_local.ui.peer import is_a_stranger

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers would send forms without a usable Origin, too.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_ENTER = "/ui/enter"
_MOST_FORM_BYTES = 64 << 10
_MOST_FIELDS = 100
_HEAD = (
    '<!doctype html><html lang="en"><title>Windtunnel</title><meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Guard:
    """Passes valid requests to ``app``, with ``request.state.session`` and, for a POST, ``request.state.form``.

    ``port``: the server's. It is in the cookie's name, because all ports of a host share the host's cookies.
    """

    app: ASGIApp
    access: Access
    port: int
    clock: Callable[[], float]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        request = Request(scope, receive)
        try:
            answer = await self._admitted(request)
        except _Refused as refused:
            answer = self._refusal(request, refused)
        with self._until_its_session_ends(request):
            await answer(scope, receive, with_headers)

    async def _admitted(self, request: Request) -> ASGIApp:
        if is_a_stranger(request.scope):
            raise _Refused(403, "This page belongs to another user of this machine.")
        if request.method not in ("GET", "POST"):  # HEAD of an event stream would not end
            raise _Refused(405, "A page is asked for with GET, a form is sent with POST.")
        if request.url.path == _ENTER and request.method == "GET":
            return self._enter(request)
        self._check_origin(request)
        session = self.access.session(request.cookies.get(self._cookie, ""), self.clock())
        if session is None:
            raise _Refused(403, "Run `windtunnel ui` in a terminal: it opens this page for you.")
        request.state.session = session
        if request.method == "POST":
            request.state.form = await self._form(request, session)
        return self.app

    def _until_its_session_ends(self, request: Request) -> anyio.CancelScope:
        """End a live page's stream when its browser session expires, so that it shows no more than a reload would."""
        session: Session | None = getattr(request.state, "session", None)
        return anyio.move_on_after(
            None if session is None else max(0.0, session.expires.timestamp() - self.clock())
        )

    @property
    def _cookie(self) -> str:
        return f"windtunnel-ui-{self.port}"

    def _enter(self, request: Request) -> Response:
        now = self.clock()
        if not self.access.spend(request.query_params.get("token", ""), now):
            raise _Refused(
                403,
                "This address works once, and for a minute. Run `windtunnel ui` in a terminal for a new one.",
            )
        # A page that forwards by itself, not a redirect: if a link of another site led here, a browser would not send a
        # SameSite=Strict cookie with the redirect.
        url = escape(quote(_within(request.query_params.get("to", "")), safe="/?=&%"))
        response = HTMLResponse(
            f"{_HEAD}"
            '<link rel="icon" href="/ui/static/icon.svg" type="image/svg+xml">'
            f'<meta http-equiv="refresh" content="0;url={url}">'
            f'<p><a href="{url}">Go on to the page</a></p></html>'
        )
        response.set_cookie(
            self._cookie,
            self.access.cookie(now),
            max_age=int(SESSION.total_seconds()),
            path="/ui",
            httponly=True,
            samesite="strict",
        )
        return response

    def _check_origin(self, request: Request) -> None:
        """Refuse requests from another site's script, form or link. The Host header was checked before."""
        headers = request.headers
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        own = f"http://{headers.get('host', '')}"
        if site not in (None, "same-origin", "none") or origin not in (None, own):
            raise _Refused(
                403, "Another page has led here. Open this one with `windtunnel ui`, or by its address."
            )
        if request.method == "POST" and origin is None and site != "same-origin":
            raise _Refused(403, "Where this form comes from is not said.")

    async def _form(self, request: Request, session: Session) -> dict[str, str]:
        if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            raise _Refused(415, "A form is sent as application/x-www-form-urlencoded.")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_FORM_BYTES:
                raise _Refused(413, f"This form is larger than {_MOST_FORM_BYTES} bytes.")
        try:
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
            )
        except ValueError:
            raise _Refused(400, "This form cannot be read.") from None
        form = dict(pairs)
        if not hmac.compare_digest(form.pop("csrf", "").encode(), session.csrf.encode()):
            raise _Refused(403, "This form has expired: load its page again, and send it once more.")
        return form

    @staticmethod
    def _refusal(request: Request, refused: _Refused) -> Response:
        response = HTMLResponse(
            f"{_HEAD}<p>{escape(str(refused))}</p></html>",
            refused.status,
        )
        if request.method != "GET":
            # The unread rest of the body would be parsed as the connection's next request.
            response.headers["connection"] = "close"
        return response


def _within(path: str) -> str:
    """The path to forward to, if it is a page of ours; else the list of jobs."""
    inside = path == "/ui" or path.startswith("/ui/")
    return path if inside and ".." not in path and "\\" not in path and path.isprintable() else "/ui/jobs"
