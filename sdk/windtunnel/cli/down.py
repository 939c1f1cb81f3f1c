"""``windtunnel down``: end the local backend."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Register the command."""
    down = commands.add_parser(
        "down",
        help="end the local backend; jobs go on",
        description=(
            "End the local backend, so that the next one starts with new settings. Running jobs "
            "go on, and the next backend takes them over."
        ),
    )
    down.set_defaults(func=_down)


def _down(_: argparse.Namespace) -> None:
    from windtunnel.session.resolve import shared_local_session

    backend = shared_local_session().backend
    backend.release()
    left = backend.stop()
    print(
        "No local backend was running."
        if left is None
        else f"The local backend at {left.endpoint} has ended."
    )
