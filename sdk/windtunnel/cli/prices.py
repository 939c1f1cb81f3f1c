"""``windtunnel prices``: show the dated price book, or add AWS's prices of today to it."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

from windtunnel.cli.options import Listed, add_instances, day
from windtunnel.cli.output import print_wide
from windtunnel.errors import ConfigurationError

_EPILOG = """\
windtunnel prices --on 2023-01-01                          what was in force that day
windtunnel prices refresh                                  ask AWS (pricing:GetProducts; free of charge)
windtunnel prices refresh --region us-east-1 us-west-2 --instances ml.trn1.32xlarge p4d.24xlarge
windtunnel prices refresh --hosting --instances ml.c5.xlarge      what an endpoint costs

With ml. an instance is SageMaker training on-demand, without it EC2 on-demand. Reports use the built-in
prices and the fetched ones, each from its date on. Fetched prices never change an earlier day.
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "prices",
        help="the dated prices of reports; `prices refresh` asks AWS for today's",
        description="Show the dated price book, or add to it what AWS's Price List API says today.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "action", nargs="?", type=_action, choices=("list", "refresh"), default="list", help="default: list"
    )
    parser.add_argument("--on", type=day, metavar="DATE", help="only the prices of that day (2023-01-31)")
    add_instances(parser, "default: all that are modelled; also families (trn1), but not with refresh")
    parser.add_argument(
        "--region", nargs="+", action=Listed, metavar="REGION", help="default: all; for refresh us-east-1"
    )
    parser.add_argument(
        "--hosting", action="store_true", help="with refresh: prices of endpoints; needs --instances"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run_prices)


def _action(text: str) -> str:
    """The word as it is, unless it looks like an instance: no action has a digit."""
    if re.search(r"\d", text):
        raise argparse.ArgumentTypeError(f"for one instance: windtunnel prices --instances {text}")
    return text


def run_prices(arguments: argparse.Namespace) -> int:
    """Print the book, or refresh it. Returns the exit code."""
    if "refresh" in (arguments.instances or ()) or "refresh" in (arguments.region or ()):
        raise ConfigurationError("refresh comes first: windtunnel prices refresh --instances TYPE ...")
    if arguments.action == "refresh":
        return _refresh(arguments)
    if arguments.hosting:
        raise ConfigurationError(
            "--hosting goes with refresh; the list shows endpoints' prices that were fetched."
        )
    from windtunnel.reports.prices import prices

    report = prices(on=arguments.on, instances=arguments.instances, regions=arguments.region)
    if arguments.json:
        print(report.to_json())
        return 0
    print_wide(report)
    return 0


def _refresh(arguments: argparse.Namespace) -> int:
    if arguments.on is not None:
        raise ConfigurationError(
            "refresh asks for today's prices and takes no --on; AWS's list has no other."
        )
    from windtunnel.priceperf.money.offerings import HOSTING_ON_DEMAND
    from windtunnel.prices import cache
    from windtunnel.reports.prices import refreshed_data, refreshed_lines

    if arguments.hosting and not all(name.startswith("ml.") for name in arguments.instances or ("",)):
        raise ConfigurationError("--hosting needs --instances with types of endpoints, e.g. ml.c5.xlarge.")
    done = cache.refresh(
        arguments.region or cache.DEFAULT_REGIONS,
        arguments.instances or cache.DEFAULT_INSTANCES,
        offering=HOSTING_ON_DEMAND if arguments.hosting else None,
    )
    if arguments.json:
        print(json.dumps(refreshed_data(done), indent=2))
    else:
        print("\n".join(refreshed_lines(done)))
    return 0 if done.fetched else 1
