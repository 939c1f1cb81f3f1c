"""A container engine that answers what a test says, at a Unix socket."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from windtunnel_local.runner.docker import DockerRunner, DockerSettings

DOCKER = {
    "GET /version": (200, {"ApiVersion": "1.41", "Version": "28.0", "Components": [{"Name": "Engine"}]}),
    "GET /info": (200, {"SecurityOptions": ["name=seccomp,profile=default"]}),
}
PODMAN = {
    "GET /version": (
        200,
        {"ApiVersion": "1.41", "Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]},
    ),
    "GET /info": (
        200,
        {"SecurityOptions": ["name=seccomp,profile=default"], "Rootless": True, "CgroupVersion": "1"},
    ),
}


@contextmanager
def runner_of(home: Path, answers: dict[str, tuple[int, Any]]) -> Iterator[tuple[DockerRunner, list[str]]]:
    """A runner of an engine with these answers; and what it has asked."""
    with engine(home, answers) as (address, asked), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        runner = DockerRunner(DockerSettings(home, "windtunnel-training:test"))
        try:
            yield runner, asked
        finally:
            runner.close()


@contextmanager
def engine(folder: Path, answers: dict[str, tuple[int, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Its address, and what is asked of it, as "POST /containers/create". What it has no answer to is 404.

    A function among the answers is called with the request's body.
    """
    asked: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path.removeprefix("/v1.41")
            asked.append(f"{self.command} {path}")
            status, answer = answers.get(asked[-1], (404, {"message": "No such thing"}))
            if callable(answer):
                answer = answer(json.loads(content or b"null"))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  names of the standard library

        def log_message(self, *_: object) -> None:
            pass

        def address_string(self) -> str:
            return "a socket"

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    path = folder / "engine.sock"
    with Server(str(path), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"unix://{path}", asked
        finally:
            server.shutdown()
            thread.join()
            path.unlink()
