"""``windtunnel endpoint-logs``: print the log of an endpoint's containers."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli.amounts import count
from windtunnel.cli.options import add_place, session_of
from windtunnel.cli.output import complain


def add_parser(commands: Any) -> None:
    """Register the command."""
    logs = commands.add_parser("endpoint-logs", help="print the log of an endpoint")
    logs.add_argument("name", help="the endpoint's name")
    logs.add_argument(
        "-f", "--follow", action="store_true", help="go on until the endpoint is deleted; Ctrl-C ends"
    )
    logs.add_argument(
        "-n", "--lines", type=count, metavar="N", help="only the last N lines that exist already"
    )
    add_place(logs)
    logs.set_defaults(func=_logs)


def _logs(arguments: argparse.Namespace) -> int:
    from windtunnel.errors import EndpointNotFound
    from windtunnel.hosting.endpoint import Endpoint

    endpoint = Endpoint(arguments.name, session_of(arguments))
    printed = False
    for line in endpoint.logs(follow=arguments.follow, last=arguments.lines):
        print(line, flush=arguments.follow)
        printed = True
    if printed:
        return 0
    try:
        status = endpoint.describe()["EndpointStatus"]
    except EndpointNotFound as error:
        complain(error)
        return 1
    complain(f"{endpoint.name} has no log (yet): it is {status}.")
    return 0
