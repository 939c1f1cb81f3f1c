"""The backend's commands: ``python -m windtunnel_local serve | image build|status|contents | doctor | cluster ...``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from windtunnel.cli.parser import Parser
from windtunnel_local.log_format import log_to
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import from_environment

EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 fine, 1 failed with a message on stderr, 2 wrong usage, 130 Ctrl-C."""
    given = list(sys.argv[1:] if argv is None else argv)
    return _written(lambda: _command(given))


def _written(command: Callable[[], int]) -> int:
    """Run a command; its exit code, or 1 if its output (even --help) cannot be written: Python would exit with 120."""
    try:
        try:
            code = command()
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return code
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader, such as `head`, needs no more
            print(f"windtunnel: {error}", file=sys.stderr)  # noqa: T201  a command's message to its user
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again at exit
        return 1


def _command(given: Sequence[str]) -> int:
    if given[:1] == ["cluster"]:
        return _clusters("commands", given[1:], "windtunnel")
    # Imports the whole server, for which the command line of clusters need not wait.
    from windtunnel_local import commands

    arguments = _parser().parse_args(given)
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
    except KeyboardInterrupt:
        builds = arguments.command == "image" and arguments.action == "build"
        kept = ". Steps that succeeded are kept: `windtunnel image build` goes on from there."
        print(f"\nwindtunnel: interrupted{kept if builds else ''}", file=sys.stderr)  # noqa: T201
        return EXIT_INTERRUPTED
    except WindtunnelError as error:  # _written handles OSError
        print(f"windtunnel: {error}", file=sys.stderr)  # noqa: T201  a command's message to its user
        return 1


def pcluster() -> int:
    """The command `pcluster`; returns the exit code."""
    return _written(lambda: _clusters("pcluster", sys.argv[1:], "pcluster"))


def _clusters(command_line: str, argv: Sequence[str], called: str) -> int:
    """Run a command line of the package `cluster`, imported here only; ``called``: its name in messages."""
    module = import_module(f"windtunnel_local.cluster.{command_line}")
    try:
        settings = from_environment(os.environ)
    except WindtunnelError as error:
        print(f"{called}: {error}", file=sys.stderr)  # noqa: T201  a command's message to its user
        return 1
    code: int = module.main(settings, argv)
    return code


def _parser() -> Parser:
    parser = Parser(prog="python -m windtunnel_local", description=__doc__)
    commands_ = parser.add_subparsers(dest="command", required=True, prog="windtunnel")
    commands_.add_parser("serve", help="serve this home until idle or SIGTERM")
    image = commands_.add_parser("image", help="the training image")
    image.add_argument("action", choices=["build", "status", "contents"])
    image.add_argument("--json", action="store_true", help="one JSON document on stdout")
    doctor = commands_.add_parser("doctor", help="check what a job needs on this machine")
    doctor.add_argument("--json", action="store_true", help="one JSON document on stdout")
    doctor.add_argument(
        "--restore", action="store_true", help="put back the last sound copy of a damaged record of jobs"
    )
    commands_.add_parser("cluster", help="clusters of AWS ParallelCluster, on this machine", add_help=False)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
