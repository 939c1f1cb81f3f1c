"""`windtunnel calibrate`: a correction of the modelled step time from your own jobs on AWS."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import add_rehearsal, add_sizes, full_scale_of, rehearsal_of
from windtunnel.cli.output import complain
from windtunnel.errors import ConfigurationError

if TYPE_CHECKING:
    from windtunnel.priceperf import Evidence
    from windtunnel.user_calibration import UserCalibration

_ALL = object()
"""Value of ``--forget`` without a name. An empty name, e.g. from a shell's unset variable, does not mean all jobs."""
_EPILOG = """\
A job's real time for training steps and evaluation (its Training phase without the modelled set-up, preparation
and compilation) is compared with the modelled time. The log of real / modelled is shrunk towards 0, with the
calibration's own errors as prior: one job corrects the model in part, more jobs correct it further and narrow
the interval. Fixed costs are not corrected. Every report that uses the correction says so first.

examples:
  windtunnel calibrate --from-job bert-real --rehearsal counters.json --full-scale-samples 3600000
  windtunnel calibrate --describe job.json --rehearsal bert-local --full-scale-samples 3600000 --dry-run
  windtunnel calibrate --show
  windtunnel calibrate --forget bert-real
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "calibrate",
        help="correct the modelled step time with your own jobs on AWS",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--from-job", metavar="NAME", help="a job on AWS, asked for with your credentials")
    what.add_argument(
        "--describe", type=Path, metavar="FILE.json", help="a file with what describe-training-job printed"
    )
    what.add_argument("--show", action="store_true", help="show the stored jobs, and their correction")
    what.add_argument("--forget", nargs="?", const=_ALL, metavar="NAME", help="remove one job, or all")
    add_rehearsal(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the new correction, and store nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_sizes(parser)
    parser.set_defaults(func=run_calibrate)


def run_calibrate(arguments: argparse.Namespace) -> int:
    """Add a job to the user's calibration, or show or remove stored jobs. Returns the exit code."""
    from windtunnel.user_calibration import STORED

    if arguments.dry_run and (arguments.show or arguments.forget is not None):
        raise ConfigurationError("--dry-run needs a job to add: --from-job NAME or --describe FILE.json.")
    if arguments.show:
        _show(STORED.load(), as_json=arguments.json)
        return 0
    if arguments.forget is not None:
        if arguments.json:
            raise ConfigurationError(
                "--forget prints no JSON. To see what is left: windtunnel calibrate --show --json"
            )
        names = STORED.forget(None if arguments.forget is _ALL else arguments.forget)
        print(f"Forgotten: {', '.join(names)}." if names else "There was nothing to forget.")
        return 0
    evidence = _evidence(arguments)
    calibration = STORED.load().with_job(evidence) if arguments.dry_run else STORED.add(evidence)
    _show(calibration, as_json=arguments.json)
    if not arguments.json:
        kept = "A dry run: nothing was stored." if arguments.dry_run else f"Kept in {STORED.path}."
        print(f"{kept} Reports that use it say so first; --no-user-calibration leaves it out.")
    return 0


def _evidence(arguments: argparse.Namespace) -> Evidence:
    from windtunnel.priceperf.calibration.corrections import is_far
    from windtunnel.reports.aws_job.description import DescribedJob
    from windtunnel.reports.aws_job.report import evidence_for

    full_scale = full_scale_of(arguments)
    if arguments.rehearsal is None or full_scale is None:
        raise ConfigurationError(
            "calibrate needs a rehearsal of the job, --rehearsal COUNTERS.json (or the name of a local "
            "job), and its size on AWS, --full-scale-samples N (--help lists further sizes)."
        )
    if arguments.describe is not None:
        describe = DescribedJob.load(arguments.describe).describe()
    else:
        from windtunnel.job.training_job import TrainingJob
        from windtunnel.session.aws import AwsSession

        describe = TrainingJob(arguments.from_job, AwsSession()).describe()
    evidence = evidence_for(describe, rehearsal_of(arguments.rehearsal), full_scale)
    if is_far(evidence):
        complain(
            f"warning: {evidence.job} took {evidence.ratio:.3g} times the modelled steps, far from any published "
            "row. Are --full-scale-samples and --epochs those of the job, and is the rehearsal its script?"
        )
    return evidence


def _show(calibration: UserCalibration, *, as_json: bool) -> None:
    from windtunnel.reports.user_calibration import data, lines
    from windtunnel.user_calibration import STORED

    print(json.dumps(data(calibration), indent=2) if as_json else "\n".join(lines(calibration, STORED.path)))
