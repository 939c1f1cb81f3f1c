"""``windtunnel inference``: the cost of a million inferences."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.options import day
from windtunnel.errors import ConfigurationError

_EPILOG = """\
windtunnel inference                                               AWS's published table, recomputed
windtunnel inference --throughput 2693 --instance trn1.2xlarge     your own figure
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "inference",
        help="cost of a million inferences: AWS's published table recomputed, or your throughput",
        description="What a million inferences cost, from throughput and price.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--throughput", type=float, metavar="N", help="inferences per second of a whole instance"
    )
    parser.add_argument("--instance", metavar="TYPE", help="e.g. trn1.2xlarge (EC2 price)")
    parser.add_argument("--on", type=day, metavar="DATE", help="at that day's price (default: the newest)")
    parser.add_argument("--usd-per-hour", type=float, metavar="USD", help="a price of your own")
    output.add_arguments(parser, charts=False)
    parser.set_defaults(func=run_inference)


def run_inference(arguments: argparse.Namespace) -> int:
    """Print the table, or the cost at a throughput. Returns the exit code."""
    from windtunnel.reports import inference as inference_report

    given = (arguments.throughput, arguments.instance)
    if given.count(None) == 1 or (arguments.usd_per_hour is not None and None in given):
        raise ConfigurationError(
            "a figure of your own needs --throughput N and --instance TYPE (e.g. --throughput 2693 --instance "
            "trn1.2xlarge); without both, AWS's published table is shown."
        )
    report: inference_report.InferenceReport | inference_report.PublishedInferenceReport
    if arguments.throughput is None:
        report = inference_report.published(arguments.on)
    else:
        report = inference_report.inference(
            arguments.throughput, arguments.instance, arguments.on, usd_per_hour=arguments.usd_per_hour
        )
    return output.show(report, arguments)
