"""What `windtunnel doctor` says of an EC2 instance whose role a job could take."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.fakes.http import serving
from windtunnel_local.runner.docker.instance_role import instance_role_checks


@contextmanager
def metadata(
    hop_limit: int, *, role: str = "Host", tokens_required: bool = True
) -> Iterator[tuple[str, int]]:
    """A metadata service; its answers live for so many hops, as an instance's do."""

    class Handler(BaseHTTPRequestHandler):
        def setup(self) -> None:
            super().setup()
            self.request.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hop_limit)

        def answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def do_PUT(self) -> None:
            known = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self.answer(200 if known else 400, "TOKEN")

        def do_GET(self) -> None:
            admitted = self.headers["X-aws-ec2-metadata-token"] == "TOKEN" or not tokens_required
            there = self.path == "/latest/meta-data/iam/security-credentials/" and role
            self.answer(200 if admitted and there else 404 if admitted else 401, role)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield ("127.0.0.1", port)


@pytest.fixture
def ec2(tmp_path: Path) -> Path:
    (tmp_path / "sys_vendor").write_text("Amazon EC2\n")
    (tmp_path / "board_asset_tag").write_text("i-0123456789abcdef0\n")
    return tmp_path


def test_a_role_within_a_containers_reach_is_named_with_the_command(ec2: Path) -> None:
    """Hop limit 2, as AWS sets it for containers' sake."""
    with metadata(2) as address:
        (check,) = instance_role_checks(1, ec2, address)
    assert not check.ok
    assert "Host" in check.detail
    assert (
        "aws ec2 modify-instance-metadata-options --instance-id i-0123456789abcdef0"
        " --http-tokens required --http-put-response-hop-limit 1`" in check.fix
    )


@pytest.mark.parametrize(
    ("hops", "hop_limit", "role", "ok"),
    [
        (1, 1, "Host", True),  # what the command sets
        (0, 1, "Host", False),  # which does not help where containers' connections are this machine's
        (1, 2, "", True),  # an instance without a role
    ],
)
def test_what_is_out_of_reach_is_no_alarm(ec2: Path, hops: int, hop_limit: int, role: str, ok: bool) -> None:
    """And only then."""
    with metadata(hop_limit, role=role) as address:
        (check,) = instance_role_checks(hops, ec2, address)
    assert check.ok is ok


def test_the_first_version_of_the_service_needs_no_token(ec2: Path) -> None:
    """An instance that still allows it is told so."""
    with metadata(64, tokens_required=False) as address:
        (check,) = instance_role_checks(1, ec2, address)
    assert not check.ok


def test_other_machines_are_not_asked(tmp_path: Path) -> None:
    """Nobody listens here."""
    assert instance_role_checks(1, tmp_path, ("127.0.0.1", 9)) == []
