"""Who is let into the page, and what its answers forbid a browser."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.conftest import Backend, serving, wait_for
from tests.contract.page import Answer, Visitor, visitor
from tests.fakes.wire import create_request
from windtunnel_local.ui.access import SESSION, Access
from windtunnel_local.ui.peer import is_a_stranger

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def refused(answer: Answer, status: int = 403) -> bool:
    """Whether it was, with the headers that every answer has."""
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert HEADERS.items() <= answer.headers.items()
    assert not any(name.startswith("access-control") for name in answer.headers)
    return answer.status == status


def test_without_a_cookie_one_sentence_says_how_to_get_in(shared_backend: Backend) -> None:
    """No page, no stylesheet, no stream, and no form without it."""
    stranger = Visitor(shared_backend)
    for path in (
        "/ui",
        "/ui/jobs",
        "/ui/jobs/-/live",
        "/ui/static/style.css",
        "/ui/jobs/x/delete",
        "/ui/nothing",
    ):
        answer = stranger.ask(path)
        assert refused(answer), path
        assert "Run `windtunnel ui` in a terminal" in answer.body
        assert '<meta name="color-scheme" content="light dark">' in answer.body
    assert refused(stranger.ask("/ui/jobs/x/stop", "POST", {"csrf": ""}))


def test_a_cookie_is_a_macd_session(shared_backend: Backend) -> None:
    """One that was changed in any place is none."""
    one = visitor(shared_backend)
    assert one.ask("/ui/jobs").status == 200
    name, _, value = one.cookie.partition("=")
    other = "B" if value.startswith("A") else "A"
    for changed in (value[:-1], other + value[1:], value + "AAAA", "", "é", "!", "A" * 4000):
        assert refused(Visitor(shared_backend, f"{name}={changed}").ask("/ui/jobs")), changed
    other_port = f"windtunnel-ui-{one.port + 1}={value}"
    assert refused(Visitor(shared_backend, other_port).ask("/ui/jobs"))


def test_the_cookie_is_for_this_page_alone(shared_backend: Backend) -> None:
    """Not for scripts, not for other sites, not for other paths; and the token is not in the address any more."""
    one = Visitor(shared_backend)
    answer = one.enter()
    flags = {flag.strip().lower() for flag in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/ui", "max-age=43200"} <= flags
    assert answer.headers["set-cookie"].startswith(f"windtunnel-ui-{one.port}=")
    assert 'content="0;url=/ui/jobs"' in answer.body
    assert "token" not in answer.body


def test_a_token_works_once(shared_backend: Backend) -> None:
    """The second who comes with it is refused, also when both come at once."""
    one = Visitor(shared_backend)
    token = one.token()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one.ask, [f"/ui/enter?token={token}"] * 8))
    assert sorted(answer.status for answer in answers) == [200, *[403] * 7]
    assert "works once" in one.ask(f"/ui/enter?token={token}").body


@pytest.mark.parametrize("age_s", [61, 3600, -30])
def test_a_token_works_for_a_minute(shared_backend: Backend, age_s: float) -> None:
    """Not later, and none that was made in the future."""
    one = Visitor(shared_backend)
    assert refused(one.ask(f"/ui/enter?token={one.token(age_s=age_s)}"))


def test_a_token_of_another_key_or_none_is_refused(shared_backend: Backend) -> None:
    """Only who can read the home's key can make one."""
    one = Visitor(shared_backend)
    good = one.token()
    for token in (
        "",
        "x",
        ".",
        "..",
        one.token(secret="another"),
        good[:-1],
        "9" + good[1:],
        "é" * 9,
        good * 9,
    ):
        assert refused(
            one.ask(f"/ui/enter?token={token.encode().hex() if not token.isascii() else token}")
        ), token
    assert one.ask(f"/ui/enter?token={good}").status == 200


def test_a_token_older_than_the_server_is_refused(backend: Backend) -> None:
    """It may have been spent with the server before."""
    old = Visitor(backend).token(age_s=45)
    assert refused(Visitor(backend).ask(f"/ui/enter?token={old}"))


def test_a_session_ends_after_twelve_hours(backend: Backend) -> None:
    """By the server's clock, whatever the browser keeps."""
    one = visitor(backend)
    backend.clock.offset = timedelta(hours=11.9)
    assert one.ask("/ui/jobs").status == 200
    backend.clock.offset = timedelta(hours=12.1)
    assert refused(one.ask("/ui/jobs"))


def test_a_stream_ends_with_its_session(backend: Backend) -> None:
    """Who follows a page sees no more of it than who loads it again."""
    one = visitor(backend)
    twelve_hours_ago = time.time() - SESSION.total_seconds()
    cookie = Access(backend.credentials.secret_access_key, 0).cookie(twelve_hours_ago + 3)
    one.cookie = f"{one.cookie.partition('=')[0]}={cookie}"
    answer = b""
    with closing(http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)) as connection:
        connection.request("GET", "/ui/jobs/-/live", headers={"Cookie": one.cookie})
        response = connection.getresponse()
        assert response.status == 200
        with suppress(http.client.IncompleteRead):
            while part := response.read1():
                answer += part
    assert answer.startswith(b"data: ")
    assert refused(one.ask("/ui/jobs/-/live"))


def test_a_head_of_what_is_followed_ends(shared_backend: Backend) -> None:
    """It would wait for the end of a body that it does not get: no page is asked for so."""
    assert refused(visitor(shared_backend).ask("/ui/jobs/-/live", "HEAD"), 405)


def test_a_session_ends_with_the_key(shared_backend: Backend, tmp_path: Path) -> None:
    """A home with another key knows no cookie of this one."""
    one = visitor(shared_backend)
    with serving(tmp_path / "other") as other:
        stranger = Visitor(other, f"windtunnel-ui-{Visitor(other).port}={one.cookie.partition('=')[2]}")
        assert refused(stranger.ask("/ui/jobs"))


def test_only_our_own_host_is_answered(shared_backend: Backend) -> None:
    """A name that an attacker's DNS leads here is refused before anything is looked at."""
    one = visitor(shared_backend)
    for host in ("evil.example", f"evil.example:{one.port}", "127.0.0.1:1"):
        answer = one.ask("/ui/jobs", headers={"Host": host})
        assert answer.status == 403
        assert "<form" not in answer.body
    # What a bucket's name before the host means is an object of that bucket, and asks for a signature.
    assert one.ask("/ui/jobs", headers={"Host": f"bucket.localhost:{one.port}"}).status == 403
    assert one.ask("/ui/jobs", headers={"Host": f"localhost:{one.port}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
    ],
)
def test_what_another_page_asks_for_is_refused(shared_backend: Backend, headers: dict[str, str]) -> None:
    """Reading and changing alike, though the browser sends the cookie along."""
    one = visitor(shared_backend)
    assert refused(one.ask("/ui/jobs", headers=headers))
    assert refused(one.post("/ui/jobs/x/stop", headers))
    assert one.ask("/ui/jobs", headers={"Sec-Fetch-Site": "none"}).status == 200
    assert one.ask("/ui/jobs", headers={"Sec-Fetch-Site": "same-origin"}).status == 200


def test_a_link_from_elsewhere_lets_in_with_a_token(shared_backend: Backend) -> None:
    """A terminal may be a web page too."""
    one = Visitor(shared_backend)
    answer = one.ask(f"/ui/enter?token={one.token()}", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200


@pytest.mark.parametrize(
    "to", ["//evil.example", "http://evil.example", "/ui/../x", "/uix", "/", "/ui/\\evil", ""]
)
def test_entering_leads_to_pages_of_ours_alone(shared_backend: Backend, to: str) -> None:
    """An address that was given leads nowhere else."""
    one = Visitor(shared_backend)
    assert 'content="0;url=/ui/jobs"' in one.ask(f"/ui/enter?token={one.token()}&to={to}").body


def test_a_change_needs_the_forms_own_token(backend: Backend) -> None:
    """A job goes on until a form with it says so."""
    backend.client("s3").create_bucket(Bucket="out")
    backend.client("sagemaker").create_training_job(**create_request("one", Environment={"WAIT": "1"}))
    one, two = visitor(backend), visitor(backend)
    for wrong in ("", "0" * 64, two.csrf()):
        answer = one.post("/ui/jobs/one/stop", csrf=wrong)
        assert refused(answer)
        assert "form has expired" in answer.body
        assert answer.headers["connection"] == "close"
    assert refused(one.ask("/ui/jobs/one/stop", "POST", {"csrf": one.csrf()}, {"Origin": ""}))
    body = {"Content-Type": "application/json"}
    assert refused(one.post("/ui/jobs/one/stop", body), 415)
    assert backend.application.jobs.describe("one")["TrainingJobStatus"] == "InProgress"
    answer = one.post("/ui/jobs/one/stop")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/jobs/one")
    assert backend.application.jobs.describe("one")["TrainingJobStatus"] in ("Stopping", "Stopped")


def test_a_form_has_a_limit(shared_backend: Backend) -> None:
    """Neither its size nor its number of fields keeps the server busy."""
    one = visitor(shared_backend)
    assert refused(one.post("/ui/jobs/one/stop", x="a" * 70_000), 413)
    many = {"csrf": one.csrf(), **{f"field{number}": "" for number in range(200)}}
    assert refused(one.ask("/ui/jobs/one/stop", "POST", many), 400)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(shared_backend: Backend, method: str) -> None:
    """A page is read, a form is sent: no preflight is ever granted."""
    assert refused(visitor(shared_backend).ask("/ui/jobs", method), 405)


def test_all_answers_carry_the_headers(shared_backend: Backend) -> None:
    """Pages, errors, parts and forms; what never changes may be kept by this browser alone."""
    one = visitor(shared_backend)
    for path, status in (
        ("/ui/jobs", 200),
        ("/ui/jobs/none/delete", 404),
        ("/ui/x", 404),
        ("/ui/jobs?status=x", 400),
    ):
        assert refused(one.ask(path), status), path
    static = one.ask("/ui/static/style.css")
    assert static.headers["cache-control"].startswith("private, ")
    assert "content-security-policy" in static.headers


def test_another_users_process_is_a_stranger(shared_backend: Backend) -> None:
    """Whatever cookie or token it has got hold of: the kernel says whose each connection is."""
    one = visitor(shared_backend)
    script = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
family = socket.AF_INET6 if sys.argv[4] == "6" else socket.AF_INET
to = ("::ffff:127.0.0.1" if sys.argv[4] == "6" else "127.0.0.1", int(sys.argv[2]))
with socket.socket(family) as connection:
    connection.connect(to)
    head = f"GET /ui/jobs HTTP/1.1\\r\\nHost: 127.0.0.1:{to[1]}\\r\\nCookie: {sys.argv[3]}"
    connection.sendall(f"{head}\\r\\n\\r\\n".encode())
    print(connection.recv(100).split()[1].decode())
"""
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")

    def status(uid: int, family: str) -> str:
        command = [sys.executable, "-c", script, str(uid), str(one.port), one.cookie, family]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    for family in ("4", "6") if Path("/proc/net/if_inet6").exists() else ("4",):
        assert status(0, family) == "200"
        assert status(65534, family) == "403"


@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="only Linux says whose a connection is")
def test_who_has_hung_up_is_a_stranger() -> None:
    """The kernel calls a closed end root's: whoever sent a request and left would be let in as root."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with socket.create_connection(listening.getsockname()) as client:
            served, address = listening.accept()
            with served:
                scope = {"client": address, "server": served.getsockname()}
                assert not is_a_stranger(scope)
                client.close()
                assert wait_for(lambda: is_a_stranger(scope))


def test_the_api_asks_for_a_signature_still(shared_backend: Backend) -> None:
    """The cookie opens nothing beside the page, and no key opens the page."""
    one = visitor(shared_backend)
    assert one.ask("/uix").status == 403
    assert one.ask("/bucket/ui/jobs").status == 403
    shared_backend.client("s3").create_bucket(Bucket="one")
    shared_backend.client("s3").put_object(Bucket="one", Key="ui/jobs", Body=b"x")
    assert shared_backend.client("s3").get_object(Bucket="one", Key="ui/jobs")["Body"].read() == b"x"


def test_a_page_that_is_followed_keeps_the_server(backend: Backend) -> None:
    """An open page is no idleness; a server that leaves lets go of it within a second or so."""
    one = visitor(backend)
    with socket.create_connection(("127.0.0.1", one.port)) as connection:
        connection.settimeout(10)
        head = f"GET /ui/jobs/-/live HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nCookie: {one.cookie}\r\n\r\n"
        connection.sendall(head.encode())
        got = b""
        while b"data: " not in got:
            got += connection.recv(65536)
        assert b"text/event-stream" in got
        assert backend.application.api.idle_s == 0
        backend.application.page.end()
        while not got.endswith(b"0\r\n\r\n"):  # the last chunk
            part = connection.recv(65536)
            assert part
            got += part
    wait_for(lambda: backend.application.api.idle_s > 0)
