"""`windtunnel run SCRIPT`: run a script as a training job."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.amounts import dollars, whole, whole_seconds
from windtunnel.cli.exit_codes import EXIT_FAILED, EXIT_USAGE
from windtunnel.cli.options import add_place, session_of
from windtunnel.cli.output import complain
from windtunnel.cli.script_options import (
    add_script_arguments,
    estimator_of,
    hyperparameters_of,
    only_rehearsed,
    pairs,
)
from windtunnel.cli.wording import worded
from windtunnel.errors import BudgetWarning, ConfigurationError, SourceError, SourceWarning, WindtunnelError
from windtunnel.porting import flags
from windtunnel.porting.program import left_behind
from windtunnel.porting.script import Script
from windtunnel.priceperf.errors import PricePerfError

if TYPE_CHECKING:
    from windtunnel.estimator.estimators import PyTorch
    from windtunnel.job.training_job import TrainingJob

_EPILOG = """\
What follows -- are hyperparameters as the script takes them. --channel, --hp, --env, --metric repeat.
Exit code: 0 the job has completed, or was started with --no-wait; 1 it failed, was stopped or reached --max-run;
2 it was refused before it began; 130 detached with Ctrl-C.

examples:
  windtunnel run train.py --channel train=data/train --hp epochs=3
  windtunnel run train.py --source-dir src --instance-type ml.trn1.32xlarge --local-cores 4
  windtunnel run train.py --channel train=data --rehearse 16     (minutes, then the answer for the whole job)
  windtunnel run train.py -- --epochs 3 --lr 1e-3     (the same as --hp epochs=3 --hp lr=1e-3)
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    run = commands.add_parser(
        "run",
        help="run a script as a training job and follow it",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_script_arguments(run)
    run.add_argument("--channel", action="append", default=[], metavar="NAME=PATH", help="input data")
    run.add_argument(
        "--metric", action="append", default=[], metavar="NAME=REGEX", help="a metric to find in the log"
    )
    run.add_argument("--job-name", help="default: the image's name and the time")
    run.add_argument(
        "--max-run", type=whole_seconds, metavar="S", help="stop after S seconds, or 2h (default: a day)"
    )
    run.add_argument(
        "--keep-alive",
        type=whole_seconds,
        metavar="S",
        help="keep the container S seconds: the next job starts in it",
    )
    run.add_argument(
        "--max-cost",
        type=dollars,
        metavar="USD",
        help="on AWS, lower --max-run so that the job costs no more than this",
    )
    run.add_argument("--output-path", metavar="s3://...", help="default: the session's bucket")
    run.add_argument("--role", help="IAM role; needed with --aws")
    run.add_argument(
        "--rehearse",
        type=whole,
        metavar="N",
        help="end each pass over a loader after N batches, and print what the whole job would take and cost",
    )
    run.add_argument("--no-wait", action="store_true", help="start the job and return")
    run.add_argument("--dry-run", action="store_true", help="print the request and start nothing")
    add_place(run)
    run.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        with warnings.catch_warnings():
            # Show warnings as one line on the terminal, without the line of code that raised them.
            warnings.simplefilter("always", BudgetWarning)
            warnings.simplefilter("once", SourceWarning)
            warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
            job = _started(arguments)
    except (WindtunnelError, PricePerfError) as error:
        # Whatever the error's kind: exit code 1 is for a job that was started.
        complain(worded(error, arguments))
        return EXIT_USAGE
    return 0 if job is None else _followed(job, arguments)


def _started(arguments: argparse.Namespace) -> TrainingJob | None:
    """Start the job; with ``--dry-run`` print its request instead, and return None."""
    estimator = _estimator(arguments)
    inputs = pairs(arguments.channel, "--channel", "NAME=PATH", once=True) or None
    if arguments.dry_run:
        print(estimator.fit(inputs, job_name=arguments.job_name, dry_run=True, rehearse=arguments.rehearse))
        for note in only_rehearsed(estimator):
            complain(f"note: {note}")
        return None
    return estimator.fit(inputs, wait=False, job_name=arguments.job_name, rehearse=arguments.rehearse)


def _estimator(arguments: argparse.Namespace) -> PyTorch:
    hyperparameters = hyperparameters_of(arguments)
    _read_script(arguments, hyperparameters)
    return estimator_of(
        arguments,
        hyperparameters=hyperparameters,
        session=session_of(arguments),
        role=arguments.role,
        **({} if arguments.max_run is None else {"max_run": arguments.max_run}),
        keep_alive_period_in_seconds=arguments.keep_alive,
        output_path=arguments.output_path,
        max_cost=arguments.max_cost,
        metric_definitions=[
            {"Name": name, "Regex": regex}
            for name, regex in pairs(arguments.metric, "--metric", "NAME=REGEX", once=True).items()
        ]
        or None,
    )


def _read_script(arguments: argparse.Namespace, hyperparameters: Mapping[str, Any]) -> None:
    """Find mistakes in the script's text before a container starts. Warns of imported files that are not sent.

    Raises:
        ConfigurationError: the script would refuse a hyperparameter, or read another value than the one given.
    """
    script = Path(arguments.source_dir or ".", arguments.script)
    alone = arguments.source_dir is None
    if not (alone or hyperparameters) or script.suffix != ".py" or not script.is_file():
        return
    with contextlib.suppress(SourceError):  # the container's Python may read what this one does not
        text = Script(script)
        if alone:
            for note in left_behind(text, arguments.dependency):
                warnings.warn(f"{script} {note}", SourceWarning, stacklevel=2)
        for finding in (*flags.refused(text, hyperparameters), *flags.misread(text, hyperparameters)):
            raise ConfigurationError(f"{script}:{finding}")


def _followed(job: TrainingJob, arguments: argparse.Namespace) -> int:
    print(f"Training job {job.name}", flush=True)
    place = job.session.place
    if arguments.no_wait:
        print(f"It goes on by itself. Follow it: windtunnel logs -f {job.name}{place}", file=sys.stderr)
        return 0
    if job.wait().status() != "Completed":
        # In Python a stopped job is no error, as in SDK v2; an exit code of 0 would promise a trained model.
        print(f"windtunnel report {job.name}{place} is of what ran until then.", file=sys.stderr)
        return EXIT_FAILED
    if arguments.rehearse:
        print(job.report())
    else:
        what = "took and cost" if place else "would take and cost on Trainium"
        print(f"What it {what}: windtunnel report {job.name}{place}")
    return 0
