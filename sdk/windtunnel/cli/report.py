"""``windtunnel report``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.dates import day
from windtunnel.cli.jobs import add_place, session_of

if TYPE_CHECKING:
    from windtunnel.priceperf import FullScale
    from windtunnel.rehearsal import Rehearsal
    from windtunnel.reports.job.report import ReportableJob
    from windtunnel.user_calibration import CalibrationStore

_EPILOG = "Modelled figures carry an interval; costs carry their price and its date."


def add_parser(subparsers: Any) -> None:
    """Add ``report`` to the command line's sub-commands."""
    report = subparsers.add_parser(
        "report", help="what a job took here, and would cost on trn1 and p4d", epilog=_EPILOG
    )
    report.add_argument("job", metavar="JOB", nargs="?", help="name of a training job")
    report.add_argument(
        "--describe", type=Path, metavar="FILE.json", help="a job by what describe-training-job printed"
    )
    add_rehearsal(report)
    add_place(report)
    report.add_argument(
        "--published", action="store_true", help="AWS's own trn1/p4d table, recomputed, instead of a job"
    )
    report.add_argument(
        "--inference", action="store_true", help="AWS's inference table, recomputed (= windtunnel inference)"
    )
    output.add_arguments(report)
    report.add_argument(
        "--instances",
        nargs="+",
        metavar="TYPE",
        help="instance types to model (default: the job's, trn1.32xl, p4d)",
    )
    report.add_argument(
        "--prices-on",
        type=day,
        metavar="DATE",
        help="price everything modelled at that day's prices (default: each day on which one changed)",
    )
    add_user_calibration(report)
    add_sizes(report)
    report.set_defaults(func=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print the report of a job or of the published table. Returns the exit code."""
    from windtunnel.reports.for_job import report_for_job
    from windtunnel.reports.published import published

    if args.inference:
        if args.published or args.job or args.full_scale_samples is not None or args.instances:
            return complain("--inference takes no job and no sizes: windtunnel report --inference [--json]")
        from windtunnel.reports import inference as inference_report

        return output.show(inference_report.published(args.prices_on), args)
    if args.published:
        if args.job or args.full_scale_samples is not None or args.instances or args.prices_on:
            return complain(
                "--published takes no job and no sizes: windtunnel report --published [--json] [--html FILE]"
            )
        return output.show(published(), args)
    if bool(args.job) == bool(args.describe):
        return complain(
            "name a job (windtunnel report JOB; `windtunnel ps` lists them), or give --describe FILE.json "
            "or --published"
        )
    try:
        full_scale = full_scale_of(args)
        return output.show(
            report_for_job(
                _job(args),
                full_scale,
                instances=args.instances or None,
                prices_on=args.prices_on,
                rehearsal=None if args.rehearsal is None else rehearsal_of(args.rehearsal),
                user_calibration=user_calibration_of(args),
            ),
            args,
        )
    except ValueError as error:
        return complain(str(error))


def _job(args: argparse.Namespace) -> ReportableJob:
    if args.describe:
        from windtunnel.reports.aws_job.description import DescribedJob

        return DescribedJob.load(args.describe)
    from windtunnel.job.training_job import TrainingJob

    return TrainingJob.attach(args.job, session_of(args))


def add_rehearsal(parser: argparse.ArgumentParser) -> None:
    """``--rehearsal``: what a job on AWS is predicted from."""
    parser.add_argument(
        "--rehearsal",
        metavar="COUNTERS.json",
        help="of a job on AWS: the counters (or the local job) to predict it from",
    )


def rehearsal_of(given: str) -> Rehearsal:
    """The file of that name, or the local job."""
    if given.endswith(".json") or Path(given).exists():
        return given
    from windtunnel.job.training_job import TrainingJob

    return TrainingJob.attach(given)


def add_user_calibration(parser: argparse.ArgumentParser) -> None:
    """``--no-user-calibration``."""
    parser.add_argument(
        "--no-user-calibration",
        action="store_true",
        help="the model as it is, whatever windtunnel calibrate has kept",
    )


def user_calibration_of(args: argparse.Namespace) -> CalibrationStore | None:
    """What `windtunnel calibrate` has kept, unless it is not wanted."""
    from windtunnel.user_calibration import STORED

    return None if args.no_user_calibration else STORED


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the sizes of the real job."""
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
    size.add_argument("--compile-cached", action="store_true", help="all graphs come from a compile cache")
    size.add_argument("--sequence-length", type=int, metavar="N", help="tokens a sample, to check the range")


def full_scale_of(args: argparse.Namespace) -> FullScale | None:
    """The sizes that were given; None: none.

    Raises:
        InvalidInput: some without the number of samples.
    """
    from windtunnel.priceperf import FullScale, InvalidInput

    given = {
        "epochs": args.epochs,
        "evaluation_samples": args.evaluation_samples,
        "dataset_gib": args.dataset_gib,
        "preparation_s": args.preparation_seconds,
        "tokenised_samples": args.tokenised_samples,
        "compile_cached": args.compile_cached or None,
        "sequence_length": args.sequence_length,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if args.full_scale_samples is None:
        if getattr(args, "architecture", None):
            given.pop("sequence_length", None)
        if given:
            raise InvalidInput("sizes of the real job need --full-scale-samples N (samples of one epoch) too")
        return None
    return FullScale(train_samples=args.full_scale_samples, **given)


def complain(message: str) -> int:
    """Print what was wrong. Returns exit code 2."""
    print(f"windtunnel: {message}", file=sys.stderr)
    return 2
