"""The server's commands: ``python -m windtunnel_local serve | image build|status|contents | doctor``."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from windtunnel_local import commands
from windtunnel_local.log_format import log_to
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import from_environment


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 fine, 1 failed with a message on stderr, 2 wrong usage."""
    arguments = _parser().parse_args(argv)
    log_to(logging.StreamHandler(sys.stderr))
    try:
        settings = from_environment(os.environ)
        if arguments.command == "serve":
            return commands.serve(settings)
        if arguments.command == "image":
            if arguments.action == "build":
                return commands.image_build(settings, as_json=arguments.json)
            if arguments.action == "contents":
                return commands.image_contents(settings, as_json=arguments.json)
            return commands.image_status(settings, as_json=arguments.json)
        if arguments.restore:
            return commands.restore(settings)
        return commands.doctor(settings, as_json=arguments.json)
    except (WindtunnelError, OSError) as error:
        print(f"windtunnel: {error}", file=sys.stderr)  # noqa: T201  a command's message to its user
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m windtunnel_local", description=__doc__)
    commands_ = parser.add_subparsers(dest="command", required=True)
    commands_.add_parser("serve", help="serve this home until idle or SIGTERM")
    image = commands_.add_parser("image", help="the training image")
    image.add_argument("action", choices=["build", "status", "contents"])
    image.add_argument("--json", action="store_true", help="one JSON document on stdout")
    doctor = commands_.add_parser("doctor", help="check what a job needs on this machine")
    doctor.add_argument("--json", action="store_true", help="one JSON document on stdout")
    doctor.add_argument(
        "--restore", action="store_true", help="put back the last sound copy of a damaged record of jobs"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
