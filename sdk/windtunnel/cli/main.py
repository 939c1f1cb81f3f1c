"""`windtunnel`: start the backend, run and watch jobs, read the bill.

Exit codes: 0 done; 1 the job that was run failed or was stopped, something is not there, `check` has findings, or what
--fail-on or --max-cost asks for was found; 2 the command line or an argument is wrong, or a job was refused before it
began; 130 detached with Ctrl-C. Our own errors are printed as one message on stderr, without a traceback.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from windtunnel._version import __version__
from windtunnel.cli import (
    calibrate,
    check,
    cluster,
    compare,
    completion,
    describe,
    diagnostics,
    down,
    download,
    endpoint_logs,
    endpoints,
    env,
    inference,
    invoke,
    logs,
    metrics,
    plan,
    prices,
    ps,
    report,
    rm,
    run,
    stop,
    top,
    ui,
    up,
    validate,
)
from windtunnel.cli.exit_codes import EXIT_DETACHED, EXIT_FAILED, EXIT_USAGE
from windtunnel.cli.output import complain
from windtunnel.cli.parser import Parser
from windtunnel.cli.wording import worded
from windtunnel.errors import ConfigurationError, WindtunnelError
from windtunnel.priceperf.errors import PricePerfError
from windtunnel.session.local_server import no_backend_here

COMMANDS = (
    up, down, ui, run, ps, describe, logs, metrics, top, stop, download, rm, endpoints, invoke, endpoint_logs, env,
    check, report, diagnostics, compare, plan, validate, calibrate, prices, inference, completion,
)  # fmt: skip
"""All commands, in the order of --help. A new command is a file with `add_parser` and an entry here."""

_TAKE_WORDS = ("run", "check", "env")
"""Commands that take words after ``--``: a script's arguments, or a command to run."""


class PassedOn(NamedTuple):
    """A command that the backend runs. ``words``: what may follow it, options last, for shell completion."""

    text: str
    words: tuple[str, ...]


PASSED_ON = {
    "image": PassedOn(
        (
            "build the training image, or say whether it exists and what is in it (image build | status | "
            "contents)"
        ),
        ("build", "status", "contents", "--json"),
    ),
    "cluster": PassedOn(
        "a cluster of AWS ParallelCluster on this machine (cluster create | list | ssh | report | ...)",
        ("create", "list", "update", "ssh", "job", "describe", "delete", "start", "stop"),
    ),
    "doctor": PassedOn(
        "check what the local backend needs: Docker, the image, memory, disk", ("--json", "--restore")
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # `windtunnel ps >&-` closes stdout
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  for as long as the process runs
    if given and given[0] in PASSED_ON and given[:2] != cluster.REPORT:
        # All that follows such a command, also --help, is for the backend's own parser.
        return _backend_command(given)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a log may hold what the terminal cannot show
    arguments = argparse.Namespace()
    try:
        # Flushed here: if that fails when Python exits, the exit code is 120 and Python prints a message of its own.
        try:
            code = _command(given, arguments)
        except SystemExit:  # --help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        print(f"\nwindtunnel: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return EXIT_DETACHED
    except ConfigurationError as error:
        complain(worded(error, arguments))
        return EXIT_USAGE
    except WindtunnelError as error:
        complain(error)
        return EXIT_FAILED
    except PricePerfError as error:
        complain(worded(error, arguments))
        return EXIT_FAILED
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # `windtunnel logs NAME | head`: the reader has ended
            complain(error)
        _drop_what_cannot_be_written()
        return EXIT_FAILED


def _command(given: Sequence[str], arguments: argparse.Namespace) -> int:
    """Run the command; ``arguments`` get what the command line gives."""
    own, words = split_words(given)
    parser = build_parser()
    parser.parse_args(own, arguments)
    arguments.parser, arguments.words = parser, words
    if words and arguments.command not in _TAKE_WORDS:
        complain(f"{arguments.command} takes nothing after --, and did nothing; given: {' '.join(words)}")
        return EXIT_USAGE
    command: Callable[[argparse.Namespace], int | None] = arguments.func
    return command(arguments) or 0


def _drop_what_cannot_be_written() -> None:
    """Redirect stdout to /dev/null if it cannot be flushed, so that Python does not try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands. Does nothing else, and does not import boto3."""
    parser = Parser(
        prog="windtunnel",
        description="Rehearse SageMaker training jobs for AWS Trainium on this machine.",
    )
    parser.add_argument("--version", action="version", version=f"windtunnel {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    for name, (text, words) in PASSED_ON.items():
        if name == cluster.REPORT[0]:
            cluster.add_parser(commands, text, words)
            continue
        passed_on = commands.add_parser(name, help=text, add_help=False)
        choices = [word for word in words if not word.startswith("-")]
        if choices:
            passed_on.add_argument("action", choices=choices)
        for option in words[len(choices) :]:
            passed_on.add_argument(option, action="store_true")
    for command_parser in commands.choices.values():
        command_parser.others = commands.choices
    parser.in_python = {"deploy": "job.deploy(): docs/how_to/deploy_a_model.md"}
    return parser


def split_words(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command line before ``--``, which is ours, and after it, which is the script's."""
    if "--" not in given:
        return list(given), []
    place = list(given).index("--")
    return list(given[:place]), list(given[place + 1 :])


def _backend_command(given: Sequence[str]) -> int:
    """Replace this process by the backend's command line. The SDK never imports the backend."""
    missing = "windtunnel_local is not installed. pip install windtunnel."
    if reason := no_backend_here() or (missing if find_spec("windtunnel_local") is None else ""):
        print(f"windtunnel: {reason}", file=sys.stderr)
        return EXIT_FAILED
    sys.stdout.flush()
    command = [sys.executable, "-m", "windtunnel_local", *given]
    try:
        os.execv(sys.executable, command)  # noqa: S606 - replaces this process; needs no shell
    except OSError as error:
        print(f"windtunnel: {sys.executable} cannot be started: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
