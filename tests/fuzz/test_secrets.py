"""Keys and records are their owner's only, secrets stay where they are kept, and nobody forges a line of the log."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.contract.test_server_process import Process
from tests.fakes.plans import container_plan
from windtunnel.rendering.format import lines as for_terminal
from windtunnel_local.api.sigv4 import Signable, parse
from windtunnel_local.home import Home, HomeError
from windtunnel_local.log_format import OneLine
from windtunnel_local.runner.docker.create_arguments import Names, container_arguments
from windtunnel_local.runner.host_network import host_network
from windtunnel_local.service.ground.printable import printable
from windtunnel_local.settings import from_environment

CANARY = "canary-of-a-secret"


@pytest.fixture
def loose(tmp_path: Path) -> Iterator[Process]:
    """A server in a home that was open to everybody, with files that were."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    for name in ("backend.log", "start.lock"):
        (home / name).write_text("")
        (home / name).chmod(0o666)
    process = Process(home, AWS_SECRET_ACCESS_KEY=CANARY, AWS_SESSION_TOKEN=CANARY)
    yield process
    process.popen.kill()
    if process.popen.stdout and not process.popen.stdout.closed:
        process.popen.communicate()


def test_a_loose_home_is_closed_and_secrets_stay_in_it(loose: Process) -> None:
    """Whatever the modes and the umask were: folders 0700, files 0600, also what comes later; and a warning.

    Neither the log, nor `ps`, nor an error, nor /health has the secret key.
    """
    s3 = loose.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="a/b", Body=b"x")
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket="bucket", Key="nothing")
    s3.close()
    for path in [loose.home, *loose.home.rglob("*")]:
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path
    secret = json.loads((loose.home / "credentials.json").read_text())["secret_access_key"]
    process = Path("/proc", str(loose.popen.pid))
    assert secret.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert secret not in str(refused.value.response)
    loose.popen.terminate()
    _, output = loose.end()
    assert "was open to other users (mode 777)" in output
    assert secret not in output
    assert CANARY not in output


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could read the keys whatever the modes say."""
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(HomeError, match=r"belongs to another user .* Set WINDTUNNEL_HOME"):
        Home(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_servers_secrets_do_not_reach_a_job() -> None:
    """A container gets what its plan says and what pip needs: no variable of the server else."""
    environment = {
        "HOME": "/root",
        "AWS_ACCESS_KEY_ID": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "GITHUB_TOKEN": CANARY,
        "WINDTUNNEL_HOME": "/tmp/home",
    }
    settings = from_environment(environment)
    assert CANARY not in repr(settings)
    plan = container_plan(environment={"A": "b"})
    arguments = container_arguments(plan, Names(settings.home), host_network(environment, ()))
    assert dict(arguments["environment"]) == {"A": "b"}
    assert CANARY not in repr(arguments)


def test_a_claim_does_not_show_its_token() -> None:
    """Should one ever be logged."""
    scope = "AKIA/20260101/us-east-1/s3/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}"
    headers = [
        ("authorization", authorization),
        ("x-amz-date", "20260101T000000Z"),
        ("x-amz-security-token", CANARY),
    ]
    claim = parse(Signable("GET", b"/", b"", [(k.encode(), v.encode()) for k, v in headers]))
    assert claim.token == CANARY
    assert CANARY not in repr(claim)


EVIL = "job\n2026-01-01 00:00:00,000 INFO windtunnel.server: all is well\x1b]0;owned\x07\r\u2028\udc80"


def logged(error: Exception | None = None) -> str:
    record = logging.LogRecord("windtunnel.x", logging.ERROR, "f", 1, "%s is gone", (EVIL,), None)
    record.created, record.msecs = 1_700_000_000.0, 0.0
    if error is not None:
        record.exc_info = (type(error), error, None)
    return OneLine().format(record)


def test_nobody_forges_a_line_of_the_log() -> None:
    """A record is one line, whatever is in it; the lines of a traceback are indented."""
    line = logged()
    assert "\n" not in line
    assert "\x1b" not in line
    assert "job\\n2026" in line
    line.encode()
    first, *rest = logged(ValueError(EVIL)).split("\n")
    assert first == line
    assert rest
    assert all(each.startswith("    ") and each.isprintable() for each in rest)


def test_a_terminal_is_not_obeyed() -> None:
    """Names and messages lose their control characters; letters of all alphabets stay."""
    assert printable("größe 例\x1b[2J\x9b") == "größe 例\\x1b[2J\\x9b"
    assert for_terminal("a\n\tb\x1b[2J\x07\r") == "a\n\tb\\x1b[2J\\x07\\r"
