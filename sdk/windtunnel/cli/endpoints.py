"""``windtunnel endpoints``: list the endpoints, with their cost on AWS."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.options import add_place, session_of
from windtunnel.rendering.format import local_time, one_line

_REASON_WIDTH = 80
_BILLED = frozenset({"InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed"})


def add_parser(commands: Any) -> None:
    """Register the command."""
    listing = commands.add_parser(
        "endpoints",
        help="list endpoints, newest first, with what they cost on AWS",
        description=(
            "List endpoints, newest first. $ A DAY is what an endpoint's instances cost on AWS; "
            "SO FAR is their cost since it was created, an upper bound: AWS bills from InService "
            "on."
        ),
    )
    form = listing.add_mutually_exclusive_group()
    form.add_argument("-q", "--quiet", action="store_true", help="names only, one a line")
    form.add_argument("--json", action="store_true", help="print JSON: DescribeEndpoint's answers")
    add_place(listing)
    listing.set_defaults(func=_endpoints)


def _endpoints(arguments: argparse.Namespace) -> None:
    from windtunnel.errors import EndpointNotFound
    from windtunnel.hosting.endpoint import Endpoint

    session = session_of(arguments)
    summaries = session.endpoints.list_all()
    if arguments.quiet:
        for summary in summaries:
            print(summary["EndpointName"])
        return
    found = []
    for summary in summaries:
        try:
            description = session.endpoints.describe(summary["EndpointName"])
            description.pop("ResponseMetadata", None)
            row = () if arguments.json else _row(Endpoint(summary["EndpointName"], session), description)
        except EndpointNotFound:  # deleted just now
            continue
        found.append((description, row))
    if arguments.json:
        output.show_json([description for description, _ in found])
    elif found:
        header = ("NAME", "STATUS", "INSTANCE", "SINCE", "$ A DAY", "SO FAR", "REASON")
        output.show_table([header, *(row for _, row in found)])
        if session.local:
            print("Here they cost nothing; the dollars are AWS's.", file=sys.stderr)
    else:
        print("No endpoints.", file=sys.stderr)


def _row(endpoint: Any, description: Mapping[str, Any]) -> tuple[str, ...]:
    from windtunnel.hosting.endpoint import age_s

    fleet, cost = endpoint.instances_and_cost()
    hourly = cost.usd_per_hour if description["EndpointStatus"] in _BILLED else None
    return (
        endpoint.name,
        output.Status(description["EndpointStatus"]),
        " + ".join(f"{count} x {kind}" for kind, count in fleet) or "?",  # its configuration is deleted
        local_time(description["CreationTime"]),
        "?" if cost.usd_per_day is None else f"{cost.usd_per_day:,.2f}",
        "" if hourly is None else f"{hourly * age_s(description) / 3600:,.2f}",
        one_line(description.get("FailureReason", ""), _REASON_WIDTH),
    )
