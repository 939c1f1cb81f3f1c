"""``windtunnel report`` and ``windtunnel compare``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.dates import day

if TYPE_CHECKING:
    from windtunnel.priceperf import FullScale

_EPILOG = "Modelled figures carry an interval; costs carry their price and its date."


def add_parsers(subparsers: Any) -> None:
    """Add ``report`` and ``compare`` to the command line's sub-commands."""
    report = subparsers.add_parser(
        "report", help="what a job took here, and would cost on trn1 and p4d", epilog=_EPILOG
    )
    report.add_argument("job", metavar="JOB", nargs="?", help="name of a training job")
    report.add_argument(
        "--published", action="store_true", help="AWS's own trn1/p4d table, recomputed, instead of a job"
    )
    report.add_argument(
        "--inference", action="store_true", help="AWS's inference table, recomputed (= windtunnel inference)"
    )
    _add_common(report)
    report.set_defaults(func=run_report)

    compared = subparsers.add_parser(
        "compare", help="model a counters.json on several instance types", epilog=_EPILOG
    )
    compared.add_argument("counters", metavar="COUNTERS.json", type=Path, help="counters of a rehearsed job")
    _add_common(compared)
    compared.set_defaults(func=run_compare)


def run_report(args: argparse.Namespace) -> int:
    """Print the report of a job or of the published table. Returns the exit code."""
    from windtunnel.report import published, report_for_job

    if args.inference:
        if args.published or args.job or args.full_scale_samples is not None or args.instances:
            return _complain("--inference takes no job and no sizes: windtunnel report --inference [--json]")
        from windtunnel import inference_report

        return _show(inference_report.published(args.prices_on), args.json)
    if args.published:
        if args.job or args.full_scale_samples is not None or args.instances or args.prices_on:
            return _complain("--published takes no job and no sizes: windtunnel report --published [--json]")
        return _show(published(), args.json)
    if not args.job:
        return _complain("name a job (windtunnel report JOB; `windtunnel ps` lists them) or give --published")
    try:
        full_scale = _full_scale(args)
        from windtunnel.job import TrainingJob

        return _show(
            report_for_job(
                TrainingJob.attach(args.job),
                full_scale,
                instances=args.instances or None,
                prices_on=args.prices_on,
            ),
            args.json,
        )
    except ValueError as error:
        return _complain(str(error))


def run_compare(args: argparse.Namespace) -> int:
    """Print the report of a counters file. Returns the exit code."""
    from windtunnel.report import report_for_counters

    try:
        counters = json.loads(args.counters.read_text(encoding="utf-8"))
    except OSError as error:
        return _complain(f"cannot read {args.counters}: {error.strerror}")
    except ValueError as error:
        return _complain(f"{args.counters} is not JSON: {error}")
    if not isinstance(counters, dict):
        return _complain(f"{args.counters} holds no JSON object; expected a job's counters.json")
    try:
        return _show(
            report_for_counters(
                counters, _full_scale(args), instances=args.instances or None, prices_on=args.prices_on
            ),
            args.json,
        )
    except ValueError as error:
        return _complain(str(error))


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--instances",
        nargs="+",
        metavar="TYPE",
        help="instance types to model (default: the job's, trn1.32xl, p4d)",
    )
    parser.add_argument(
        "--prices-on",
        type=day,
        metavar="DATE",
        help="price everything modelled at that day's prices (default: each day on which one changed)",
    )
    size = parser.add_argument_group("the real job behind the rehearsed sample")
    size.add_argument("--full-scale-samples", type=int, metavar="N", help="training samples of an epoch")
    size.add_argument("--epochs", type=int, metavar="E", help="epochs (default 1)")
    size.add_argument(
        "--evaluation-samples", type=int, metavar="N", help="evaluated after each epoch (default 0)"
    )
    size.add_argument("--dataset-gib", type=float, metavar="GIB", help="what each instance downloads")
    size.add_argument("--preparation-seconds", type=float, metavar="S", help="tokenising and the like")
    size.add_argument(
        "--tokenised-samples",
        type=int,
        metavar="N",
        help="text samples the script tokenises before it trains",
    )
    size.add_argument("--sequence-length", type=int, metavar="N", help="tokens a sample, to check the range")


def _full_scale(args: argparse.Namespace) -> FullScale | None:
    from windtunnel.priceperf import FullScale, InvalidInput

    given = {
        "epochs": args.epochs,
        "evaluation_samples": args.evaluation_samples,
        "dataset_gib": args.dataset_gib,
        "preparation_s": args.preparation_seconds,
        "tokenised_samples": args.tokenised_samples,
        "sequence_length": args.sequence_length,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if args.full_scale_samples is None:
        if given:
            raise InvalidInput("sizes of the real job need --full-scale-samples N (samples of one epoch) too")
        return None
    return FullScale(train_samples=args.full_scale_samples, **given)


def _show(report: Any, as_json: bool) -> int:
    if as_json:
        print(report.to_json())
        return 0
    from rich.console import Console

    Console(highlight=False).print(report)
    return 0


def _complain(message: str) -> int:
    print(f"windtunnel: {message}", file=sys.stderr)
    return 2
