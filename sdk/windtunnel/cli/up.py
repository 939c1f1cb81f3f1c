"""``windtunnel up``: start the local backend."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.rendering.format import one_line


def add_parser(commands: Any) -> None:
    """Register the command."""
    up = commands.add_parser(
        "up",
        help="start the local backend and show how other SDKs reach it",
        description="Start the local backend, or find the running one. It leaves by itself when it is idle, "
        "unless `windtunnel env` has asked for it.",
    )
    up.set_defaults(func=_up)


def _up(_: argparse.Namespace) -> None:
    from windtunnel.session.resolve import shared_local_session

    backend = shared_local_session().backend
    running = backend.ensure()
    print(f"The local backend {running.version} runs at {running.endpoint} (runner: {running.runner}).")
    print(f"State: {one_line(backend.home)}")
    print('\nboto3, the AWS CLI and SageMaker\'s own SDKs reach it after: eval "$(windtunnel env)"')
