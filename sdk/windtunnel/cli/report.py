"""``windtunnel report``: how long a job took, and its modelled time and cost on trn1 and p4d."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.amounts import dollars
from windtunnel.cli.exit_codes import EXIT_FAILED
from windtunnel.cli.gpu_script import add_gpu_script, has_effect, precisions_of
from windtunnel.cli.options import (
    add_batch,
    add_instances,
    add_place,
    add_rehearsal,
    add_sizes,
    add_user_calibration,
    batch_of,
    day,
    full_scale_of,
    given_of,
    rehearsal_of,
    session_of,
    user_calibration_of,
)
from windtunnel.cli.price_options import add_prices, all_priced, prices_of
from windtunnel.cli.wording import option
from windtunnel.errors import ConfigurationError
from windtunnel.rendering.format import dollars_within

if TYPE_CHECKING:
    from windtunnel.reports.job.report import PricePerformance, ReportableJob

_OF_A_JOB = (
    "job", "describe", "rehearsal", "aws", "instances", "price", "offering", "discount", "batch_per_device",
    "gpu_script", "full_scale_samples", "epochs", "evaluation_samples", "evaluation_not_split", "dataset_gib",
    "preparation_seconds", "loader_samples_per_second", "tokenised_samples", "compile_cached", "sequence_length",
    "max_cost", "batch", "prices_on",
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Register the command."""
    report = commands.add_parser(
        "report", help="what a job took here, and would cost on trn1 and p4d", epilog=output.MODELLED
    )
    report.add_argument("job", metavar="JOB", nargs="?", help="name of a training job")
    report.add_argument(
        "--describe",
        type=Path,
        metavar="FILE.json",
        help="a job from a file with what describe-training-job printed",
    )
    add_rehearsal(report)
    add_place(report)
    report.add_argument(
        "--published", action="store_true", help="AWS's own trn1/p4d table, recomputed, instead of a job"
    )
    output.add_arguments(report, full=True)
    add_instances(
        report,
        "instance types to model, with or without ml., priced as SageMaker training (default: the job's, "
        "ml.trn1.32xlarge, ml.p4d.24xlarge)",
    )
    report.add_argument(
        "--prices-on",
        type=day,
        metavar="DATE",
        help="use that day's prices (default: each day on which a price changed)",
    )
    add_prices(report)
    add_batch(report)
    add_gpu_script(report)
    add_user_calibration(report)
    add_sizes(report)
    report.add_argument(
        "--max-cost",
        type=dollars,
        metavar="USD",
        help="exit with 1 if the modelled cost on the instance asked for is higher, or not known",
    )
    report.set_defaults(func=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print the report of a job or of the published table. Returns the exit code."""
    from windtunnel.reports.for_job import report_for_job
    from windtunnel.reports.published import published

    if args.published:
        _refuse_with_published(args)
        return output.show(published(), args)
    if args.job and args.describe:
        raise ConfigurationError(f"name a job once: JOB ({args.job}), or --describe FILE.json")
    if not args.job and not args.describe:
        raise ConfigurationError(
            "name a job (windtunnel report JOB; `windtunnel ps` lists them), or give --describe FILE.json "
            "or --published"
        )
    if args.job and Path(args.job).suffix == ".json":
        raise ConfigurationError(
            f"report takes a job, not a file: {args.job}. If the file has counters: windtunnel compare "
            f"{args.job}; if it has what describe-training-job printed: windtunnel report --describe "
            f"{args.job}"
        )
    if numbered := [name for name in args.instances or () if "=" in name]:
        raise ConfigurationError(
            f"--instances {numbered[0]}: report has as many of each as the job. For other numbers: windtunnel compare "
            f"{args.job or 'COUNTERS.json'} --instances {numbered[0]}"
        )
    if args.rehearsal and (given := given_of(args, ("gpu_script", "offering"))):
        raise ConfigurationError(
            f"{option(given[0])} does not go with --rehearsal: a job on AWS is held against its own instances, at the "
            "price of that day"
        )
    if args.max_cost is not None and not args.max_cost > 0:
        raise ConfigurationError(f"--max-cost must be above 0 dollars, not {args.max_cost:g}")
    try:
        job = _job(args)
        ran_here = not (args.aws or args.describe)
        report = report_for_job(
            job,
            full_scale_of(args, job if ran_here else None),
            instances=args.instances or None,
            batch=batch_of(args),
            prices=prices_of(args, args.prices_on or (_day_on_aws(job) if args.price else None)),
            prices_on=args.prices_on,
            rehearsal=None if args.rehearsal is None else rehearsal_of(args.rehearsal),
            user_calibration=user_calibration_of(args),
            precisions=precisions_of(args),
        )
        if report.comparison is not None:
            has_effect(args, report.comparison)
            all_priced(args, report.comparison.named)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    output.show(report, args)
    return 0 if args.max_cost is None else _held_to(args.max_cost, report)


def _held_to(limit: float, report: PricePerformance) -> int:
    """Say on stderr if the instance asked for costs more than ``limit`` dollars. Returns the exit code."""
    if report.screen is None or report.comparison is None:
        output.complain(f"--max-cost {limit:g}: the cost is not known: {report.unavailable}")
        return EXIT_FAILED
    first = report.screen.order[0]
    name, cost = report.comparison.estimates[first].name, report.screen.costs[first]
    if cost is None or not (report.comparison.is_known and report.comparison.estimates[first].fits):
        output.complain(f"--max-cost {limit:g}: the cost on {name} is not known, and the report says why")
        return EXIT_FAILED
    if cost.usd <= limit:
        return 0
    modelled = dollars_within(cost.usd, cost.low_usd, cost.high_usd)
    output.complain(f"--max-cost {limit:g}: the job is modelled to cost {modelled} on {name}")
    return EXIT_FAILED


def _refuse_with_published(args: argparse.Namespace) -> None:
    """Refuse options that do not apply to AWS's own table, instead of ignoring them."""
    if given := given_of(args, _OF_A_JOB):
        words = ", ".join("JOB" if name == "job" else option(name) for name in given)
        raise ConfigurationError(
            f"--published takes no job and no options of a job (given: {words}): windtunnel report "
            "--published [--json] [--html FILE]"
        )


def _day_on_aws(job: ReportableJob) -> date | None:
    """The day on which a job ran on AWS; None for a local job. A ``--price`` must be valid then to price its bill."""
    from windtunnel.reports.job.measured import collect

    facts = collect(job.describe(), None)
    started = facts.get("training_start") if facts["where"] == "aws" else None
    return None if started is None else date.fromisoformat(started)


def _job(args: argparse.Namespace) -> ReportableJob:
    if args.describe:
        from windtunnel.reports.aws_job.description import DescribedJob

        return DescribedJob.load(args.describe)
    from windtunnel.job.training_job import TrainingJob

    return TrainingJob.attach(args.job, session_of(args))
