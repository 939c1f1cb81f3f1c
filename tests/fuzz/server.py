"""The server that is fuzzed: the real one, in a process of its own, with a container engine that runs nothing.

    python -m tests.fuzz.server HOME

Prints one JSON line once it accepts, with the endpoint, the key pair and the operations that are
served, and leaves when its stdin ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from tests.fakes.runner import FakeContainer, FakeRunner, Image
from tests.fakes.server import serve_until_stdin_ends
from windtunnel_local import app
from windtunnel_local.credentials import load_or_create
from windtunnel_local.home import Home
from windtunnel_local.service.ground.containers import JobPlan
from windtunnel_local.settings import Settings

IMAGE = "windtunnel-training"


class ForgetfulRunner(FakeRunner):
    """Keeps nothing of what it ran, so that the memory that grows is the server's."""

    def start(self, plan: JobPlan) -> None:
        """Start it, and let go of the records that only tests read."""
        super().start(plan)
        self.plans.clear()
        self._threads = [thread for thread in self._threads if thread.is_alive()]


def train(container: FakeContainer) -> int:
    """A job of two lines and a model."""
    container.print("loss=0.5")
    container.print("\x1b[31mred\x1b[0m\r")
    container.write("/opt/ml/model/model.txt", "weights")
    return 0


def main(home: Path) -> None:
    """Serve until stdin ends."""
    os.umask(0o077)
    logging.basicConfig(filename=home / "backend.log", level=logging.INFO)
    settings = Settings(home=home, image=IMAGE, stop_grace_s=5)
    Home(home)
    credentials = load_or_create(home / "credentials.json")

    def accepting(application: app.Application, port: int) -> None:
        note = {
            "port": port,
            "pid": os.getpid(),
            "access_key_id": credentials.access_key_id,
            "secret_access_key": credentials.secret_access_key,
            "served": {
                **{name: sorted(calls) for name, calls in application.api.services.rpc.items()},
                "s3": sorted(application.api.services.s3.operations),
            },
        }
        print(json.dumps(note), flush=True)

    runner = ForgetfulRunner(app.SystemClock(), train, **{IMAGE: Image()})
    serve_until_stdin_ends(settings, credentials, runner, accepting)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
