"""The page under odd requests: who has no cookie gets nothing, who has one gets a page, and never a failure."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from urllib.parse import quote, urlencode

import pytest
from starlette.routing import Route

from tests.fakes.runner import FakeRunner
from tests.fuzz import tampering
from tests.fuzz.campaign import Target
from tests.fuzz.test_without_key import kept
from tests.fuzz.wire import Answer, Connection, Message
from tests.waiting import wait_for
from windtunnel.session.page_token import page_token
from windtunnel_local import app
from windtunnel_local.credentials import Credentials
from windtunnel_local.settings import Settings
from windtunnel_local.ui.access import Access

ROUNDS = 1000
SLOWEST_S = 30.0
MARK = "<fuzz'\"&\u202e\x1b>"
ODD = (
    "",
    "0",
    "-1",
    "-",
    "..",
    "%2e%2e",
    "a" * 3000,
    MARK,
    "job",
    "created",
    "2026-02-30",
    "9999-12-31",
    "0001-01-01",
    "1e308",
    "NaN",
    "é\u0000",
    "\ud800",
    "{}",
    "key=value",
    "=",
    "AAAA",
    "null",
    "ml.trn1.2xlarge",
    "Failed",
)
FIELDS = (
    *("q", "status", "instance", "tag", "since", "until", "sort", "order", "token", "back", "name", "csrf"),
    *(
        "to",
        "after",
        "before",
        "host",
        "stream",
        "metric",
        "jobs",
        "limit",
        "format",
        "batch",
        "on",
        "search",
    ),
    *("nodes", "size", "samples", "epochs", "offering", "discount", "trn", "gpu", "scaling", "job", "from"),
)


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[Route]:
    """Every route of the page, as the application has them."""
    home = tmp_path_factory.mktemp("routes")
    clock = app.SystemClock()
    made = app.build(
        Settings(home=home, image="none"),
        Credentials("AKIA", "secret"),
        1,
        runner=FakeRunner(clock, lambda _: 0),
        clock=clock,
    )
    try:
        return [route for route in made.page().routes if isinstance(route, Route)]
    finally:
        made.close()


@pytest.fixture
def connection(server: Target) -> Iterator[Connection]:
    with Connection(server.port) as connection:
        yield connection


def text_of(random: Random) -> str:
    """A value of a field or of a path's part."""
    if random.random() < 0.6:
        return random.choice(ODD)
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x3000)))) for _ in range(9))


def encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def target(random: Random, route: Route) -> str:
    """An address of a route, with any values."""
    path = re.sub(r"\{[^}]*\}", lambda _: encoded(text_of(random)) or "x", route.path)
    fields = [(random.choice(FIELDS), text_of(random)) for _ in range(random.randrange(4))]
    query = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in fields])
    return f"{path}?{query}" if query else path


def message(server: Target, method: str, address: str, body: bytes = b"", **more: str) -> Message:
    headers = [("Host", f"127.0.0.1:{server.port}"), *((k.replace("_", "-"), v) for k, v in more.items())]
    if method == "POST" or body:
        headers.append(("Content-Length", str(len(body))))
    return Message(method, address, headers, body)


def test_without_a_cookie_no_route_answers(
    server: Target, connection: Connection, routes: list[Route]
) -> None:
    """Any method, any cookie, any value: refused, with the headers, and nothing changes."""
    random = Random(16)  # noqa: S311  a seeded test
    before = kept(server.home)
    for route in routes:
        for method in ("GET", "HEAD", "POST", *random.sample(tampering.METHODS, 3)):
            cookie = random.choice(("", f"windtunnel-ui-{server.port}={encoded(text_of(random))}", "a=b; c"))
            answer = connection.exchange(message(server, method, target(random, route), cookie=cookie))
            assert answer.status in (400, 403, 405), (method, route.path, answer)
            if answer.status != 400:
                assert "default-src 'none'" in answer.headers["content-security-policy"]
    for _ in range(200):
        odd = f"/ui/enter?token={encoded(text_of(random))}&to={encoded(text_of(random))}"
        assert connection.exchange(message(server, "GET", odd)).status == 403
    assert kept(server.home) == before


def entered(server: Target, connection: Connection) -> str:
    """The cookie of one who was let in."""
    token = page_token(server.note["secret_access_key"], time.time())
    answer = connection.exchange(message(server, "GET", f"/ui/enter?token={token}"))
    assert answer.status == 200
    return answer.headers["set-cookie"].partition(";")[0]


def objection(answer: Answer) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    if answer.status >= 500 or answer.status == 0:
        return "the server failed"
    if "content-security-policy" not in answer.headers:
        return "no policy"
    text = answer.body.decode()
    if "<fuzz" in text:
        return "markup came through"
    if re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text):
        return "an invisible character came through"
    if len(answer.body) > 200_000:
        return "more than 200 kB"
    return None


def test_with_a_cookie_every_route_answers(
    server: Target, connection: Connection, routes: list[Route]
) -> None:
    """Odd names, queries and forms: an answer soon, no failure, no markup of others."""
    random = Random(17)  # noqa: S311  a seeded test
    cookie = entered(server, connection)
    session = Access(server.note["secret_access_key"], 0).session(cookie.partition("=")[2], time.time())
    assert session
    csrf = session.csrf
    follows = re.compile(r"/(live|events|follow)\b")
    for number in range(ROUNDS):
        route = routes[number % len(routes)]
        if follows.search(route.path):
            continue  # what follows does not end; it is asked for below
        origin = f"http://127.0.0.1:{server.port}"
        begun = time.monotonic()
        if "POST" in (route.methods or ()):
            chosen = [(random.choice(FIELDS), text_of(random).encode("utf-8", "replace")) for _ in range(3)]
            fields = urlencode([*chosen, ("csrf", csrf if random.random() < 0.8 else MARK)])
            form = {"content_type": "application/x-www-form-urlencoded", "origin": origin}
            asked = message(server, "POST", target(random, route), fields.encode(), cookie=cookie, **form)
        else:
            asked = message(server, "GET", target(random, route), cookie=cookie)
        answer = connection.exchange(asked)
        assert objection(answer) is None, (objection(answer), asked, answer)
        assert time.monotonic() - begun < SLOWEST_S, asked


def test_odd_paths_are_no_pages(server: Target, connection: Connection) -> None:
    """Climbing out, doubled slashes, encoded ones: no file, no failure."""
    cookie = entered(server, connection)
    for path in (
        "/ui/static/..%2f..%2fapp.py",
        "/ui/static/%2e%2e/access.py",
        "/ui//jobs",
        "/ui/jobs/",
        "/ui/static/",
        "/ui/%00",
        "/ui/jobs/%ff%fe",
        "/ui/jobs/a%2fb",
        "/ui/" + "a/" * 500,
    ):
        answer = connection.exchange(message(server, "GET", path, cookie=cookie))
        assert answer.status == 404, (path, answer)
        assert objection(answer) is None, (path, answer)


def test_a_stream_that_nobody_reads_ends_with_its_connection(server: Target) -> None:
    """Followers come and go: no thread and no memory stays."""
    with Connection(server.port) as connection:
        cookie = entered(server, connection)
    threads, sockets = server.status("Threads"), open_sockets(server)
    head = (
        f"GET /ui/jobs/-/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    for _ in range(10):
        with ExitStack() as followers:
            for number in range(20):
                follower = followers.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                follower.sendall(head)
                if number % 4 == 0:
                    assert follower.recv(100).startswith(b"HTTP/1.1 200")
        wait_for(lambda: open_sockets(server) <= sockets, "the end of connections", patience_s=120)
    assert server.status("Threads") <= threads + 40  # those of the pool of workers


def open_sockets(server: Target) -> int:
    """Connections that the server still has."""
    links = []
    for path in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            links.append(str(path.readlink()))
    return sum(link.startswith("socket:") for link in links)
