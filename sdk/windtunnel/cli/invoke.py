"""``windtunnel invoke``: send a request to an endpoint, and print its answer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.errors import ConfigurationError
from windtunnel.local_paths import reading

JSON_TYPE = "application/json"


def add_parser(commands: Any) -> None:
    """Register the command."""
    invoke = commands.add_parser(
        "invoke",
        help="ask an endpoint, and print its answer",
        description="Ask an endpoint, and print its answer as it comes.",
    )
    invoke.add_argument("name", help="the endpoint's name")
    question = invoke.add_mutually_exclusive_group(required=True)
    question.add_argument("--json", metavar="JSON", help="the question, sent as application/json")
    question.add_argument("--file", type=Path, metavar="PATH", help="a file that is sent as it is")
    invoke.add_argument("--content-type", metavar="TYPE", help=f"of the question; default: {JSON_TYPE}")
    invoke.add_argument("--accept", metavar="TYPE", help=f"of the answer; default: {JSON_TYPE}")
    add_place(invoke)
    invoke.set_defaults(func=_invoke)


def _invoke(arguments: argparse.Namespace) -> None:
    answer = session_of(arguments).endpoints.invoke(
        {
            "EndpointName": arguments.name,
            "ContentType": arguments.content_type or JSON_TYPE,
            "Accept": arguments.accept or JSON_TYPE,
            "Body": question_of(arguments),
        }
    )
    if not sys.stdout.isatty():  # to a file or a pipe: the answer's bytes unchanged
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.body)
        return
    from windtunnel.rendering.format import lines

    text = lines(answer.body.decode(errors="replace"))
    print(text, end="" if text.endswith("\n") else "\n")  # the shell's prompt begins a line of its own


def question_of(arguments: argparse.Namespace) -> bytes:
    """The request's body, from ``--json`` or ``--file``.

    Raises:
        ConfigurationError: the text is no JSON, or the file cannot be read.
    """
    if arguments.file is not None:
        with reading(arguments.file, ConfigurationError):
            return bytes(arguments.file.read_bytes())
    import json

    try:
        json.loads(arguments.json)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"--json {arguments.json!r:.80} is no JSON: {error}. In a shell, put it into single quotes: "
            '--json \'{"inputs": "a text"}\''
        ) from error
    return str(arguments.json).encode()
