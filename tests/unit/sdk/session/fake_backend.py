"""A tiny server program that behaves as `python -m windtunnel_local serve` does towards the SDK.

Usage: fake_backend.py MODE. Modes: ok; old (of another version); removed (its venv is gone); slow (answers
after 0.3 s); second (another holds the home: exits 0); lingers (withdraws its note 0.5 s before it ends); crash
(prints and exits 3); mute (never answers). Each start adds a line to `starts` in the home.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from windtunnel._version import __version__


class Handler(BaseHTTPRequestHandler):
    """GET /health."""

    def do_GET(self) -> None:
        """Answer as the backend does."""
        body = json.dumps({"version": "0", "pid": os.getpid()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing."""


def main(mode: str) -> None:
    """Serve until killed, or fail as told."""
    home = Path(os.environ["WINDTUNNEL_HOME"])
    with (home / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if mode == "second":
        sys.exit(0)
    if mode == "crash":
        print("no Docker engine: start it with `service docker start`", flush=True)
        sys.exit(3)
    signal.alarm(60)  # a test that breaks leaves nothing behind for long
    if mode == "mute":
        print("thinking", flush=True)
        time.sleep(60)
    if mode == "slow":
        time.sleep(0.3)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    keys = {"access_key_id": "AK", "secret_access_key": "SK", "account_id": "0" * 12, "region": "us-east-1"}
    (home / "credentials.json").write_text(json.dumps(keys))
    stated = {
        "endpoint": f"http://127.0.0.1:{server.server_port}",
        "pid": os.getpid(),
        "version": "0" if mode == "old" else __version__,
        "interpreter": "/removed/python" if mode == "removed" else sys.executable,
        "runner": "docker",
    }
    (home / "backend.json.new").write_text(json.dumps(stated))
    (home / "backend.json.new").rename(home / "backend.json")

    def leave(*_: object) -> None:
        (home / "backend.json").unlink()
        time.sleep(0.5)
        os._exit(0)

    if mode == "lingers":
        signal.signal(signal.SIGTERM, leave)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
