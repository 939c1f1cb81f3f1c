"""The real server as a process of its own, with a container engine that is none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import closing

from tests.fakes.runner import FakeRunner
from windtunnel_local import app
from windtunnel_local.credentials import Credentials
from windtunnel_local.server import Server, listen
from windtunnel_local.settings import Settings


def serve_until_stdin_ends(
    settings: Settings,
    credentials: Credentials,
    runner: FakeRunner,
    accepting: Callable[[app.Application, int], None],
) -> None:
    """``accepting``: called once with the application and its port, when connections are accepted."""
    with closing(listen(0)) as socket:
        port = socket.getsockname()[1]
        application = app.build(settings, credentials, port, runner=runner)
        server = Server(
            application.api,
            is_idle=lambda: False,
            accepting=lambda: accepting(application, port),
            leaving=application.page.end,
        )

        def leave() -> None:
            sys.stdin.read()
            server.should_exit = True

        application.resume()
        threading.Thread(target=leave, daemon=True).start()
        try:
            server.run([socket])
        finally:
            application.close()
            runner.close()
