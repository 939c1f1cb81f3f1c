"""The page as a browser's plain requests see it, without a browser."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlencode

from tests.contract.conftest import Backend
from windtunnel.session.page_token import page_token
from windtunnel_local.ui.access import Access


@dataclass(frozen=True)
class Answer:
    """A response, read whole."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass
class Visitor:
    """Someone at the server's port. ``cookie``: what was given, as it is sent back."""

    backend: Backend
    cookie: str = ""

    @property
    def port(self) -> int:
        """The server's."""
        return int(self.backend.endpoint.rpartition(":")[2])

    def ask(
        self,
        path: str,
        method: str = "GET",
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; ``headers`` replace the usual ones, an empty one is not sent."""
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        body = None
        if form is not None:
            body = urlencode(form)
            given |= {
                "Origin": f"http://127.0.0.1:{self.port}",
                "Content-Type": "application/x-www-form-urlencoded",
            }
        sent = {name: value for name, value in {**given, **(headers or {})}.items() if value}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read().decode("utf-8", "replace"))

    def post(self, path: str, headers: Mapping[str, str] | None = None, **fields: str) -> Answer:
        """A form with its CSRF token, unless ``fields`` have another."""
        return self.ask(path, "POST", {"csrf": self.csrf(), **fields}, headers)

    def token(self, secret: str | None = None, age_s: float = 0.0) -> str:
        """A token as `windtunnel ui` makes it."""
        return page_token(secret or self.backend.credentials.secret_access_key, time.time() - age_s)

    def enter(self) -> Answer:
        """Go in, as the opened browser does, and keep the cookie."""
        answer = self.ask(f"/ui/enter?token={self.token()}&to=/ui/jobs")
        assert answer.status == 200, answer.body
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def csrf(self) -> str:
        """The token that a form of any page carries."""
        access = Access(self.backend.credentials.secret_access_key, 0)
        session = access.session(self.cookie.partition("=")[2], time.time())
        assert session
        return session.csrf


def visitor(backend: Backend) -> Visitor:
    """One who was let in."""
    one = Visitor(backend)
    one.enter()
    return one
