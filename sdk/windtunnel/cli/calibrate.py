"""`windtunnel calibrate`: a correction of the modelled step time from your own jobs on AWS."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.printable import complain
from windtunnel.cli.report import add_rehearsal, add_sizes, full_scale_of, rehearsal_of
from windtunnel.errors import ConfigurationError

if TYPE_CHECKING:
    from windtunnel.priceperf import Correction, Evidence
    from windtunnel.user_calibration import UserCalibration

_EPILOG = """\
What a job took for training steps and evaluation (its Training phase without the modelled set-up, preparation
and compilation) is held against what the model says of it. The logs of real / modelled are shrunk towards 0,
with the calibration's own errors as prior: one job moves the model a part of the way, more jobs further, and
the interval narrows. Fixed costs are not corrected. Every report that uses the correction says so first.

examples:
  windtunnel calibrate --from-job bert-real --rehearsal counters.json --full-scale-samples 3600000
  windtunnel calibrate --describe job.json --rehearsal bert-local --full-scale-samples 3600000 --dry-run
  windtunnel calibrate --show
  windtunnel calibrate --forget bert-real
"""


def add_parsers(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "calibrate",
        help="correct the modelled step time by what your own jobs took on AWS",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--from-job", metavar="NAME", help="a job on AWS, asked for with your credentials")
    what.add_argument("--describe", type=Path, metavar="FILE.json", help="what describe-training-job printed")
    what.add_argument("--show", action="store_true", help="what is kept, and what follows from it")
    what.add_argument("--forget", nargs="?", const="", metavar="NAME", help="remove a job's part, or all")
    add_rehearsal(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would follow, keep nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_sizes(parser)
    parser.set_defaults(func=run_calibrate)


def run_calibrate(arguments: argparse.Namespace) -> int:
    """Add a job, show or remove what is kept. Returns the exit code."""
    from windtunnel.user_calibration import STORED

    if arguments.show:
        _print(STORED.load(), arguments.json)
        return 0
    if arguments.forget is not None:
        names = STORED.forget(arguments.forget or None)
        print(f"Forgotten: {', '.join(names)}." if names else "There was nothing to forget.")
        return 0
    evidence = _evidence(arguments)
    calibration = STORED.load().with_job(evidence) if arguments.dry_run else STORED.add(evidence)
    _print(calibration, arguments.json)
    if not arguments.json:
        kept = "A dry run: nothing was kept." if arguments.dry_run else f"Kept in {STORED.path}."
        print(f"{kept} Reports that use it say so first; --no-user-calibration leaves it out.")
    return 0


def _evidence(arguments: argparse.Namespace) -> Evidence:
    from windtunnel.priceperf.calibration.corrections import is_far
    from windtunnel.reports.aws_job.description import DescribedJob
    from windtunnel.reports.aws_job.report import evidence_for

    full_scale = full_scale_of(arguments)
    if arguments.rehearsal is None or full_scale is None:
        raise ConfigurationError(
            "calibrate needs what the job is modelled from, --rehearsal COUNTERS.json (or the name of a local "
            "job), and its size on AWS, --full-scale-samples N and what else of --help is known of it."
        )
    if arguments.describe is not None:
        describe = DescribedJob.load(arguments.describe).describe()
    else:
        from windtunnel.job import TrainingJob
        from windtunnel.session.sessions import AwsSession

        describe = TrainingJob(arguments.from_job, AwsSession()).describe()
    evidence = evidence_for(describe, rehearsal_of(arguments.rehearsal), full_scale)
    if is_far(evidence):
        complain(
            f"warning: {evidence.job} took {evidence.ratio:.3g} times the modelled steps, far from any published "
            "row. Are --full-scale-samples and --epochs those of the job, and is the rehearsal its script?"
        )
    return evidence


def _print(calibration: UserCalibration, as_json: bool) -> None:
    from windtunnel.user_calibration import STORED

    found = calibration.corrections
    if as_json:
        print(json.dumps(_data(calibration), indent=2))
        return
    if not calibration.evidence:
        print(f"No calibration of your own ({STORED.path}).")
        return
    outdated = {item.job for item in calibration.outdated}
    for item in calibration.evidence:
        unused = "; NOT USED: held against another version of the model" if item.job in outdated else ""
        print(
            f"{item.job}: {item.on}, {item.instance_type} x {item.instance_count}, steps and evaluation "
            f"{item.real_s:,.0f} s, modelled {item.modelled_s:,.0f} s: x {item.ratio:.2f}{unused}"
        )
    for correction in found.values():
        low, high = _ends(correction)
        print(
            f"{correction.calibration.key}: step times x {correction.factor:.2f} from {len(correction.jobs)} "
            f"job{'s' if len(correction.jobs) > 1 else ''}; 80 % interval of the next job x {low:.2f} to x {high:.2f}"
        )


def _ends(correction: Correction) -> tuple[float, float]:
    width = math.exp(correction.log_half_width)
    return correction.factor / width, correction.factor * width


def _data(calibration: UserCalibration) -> dict[str, Any]:
    return {
        "jobs": [
            {
                **asdict(item),
                "on": item.on.isoformat(),
                "ratio": item.ratio,
                "used": item not in calibration.outdated,
            }
            for item in calibration.evidence
        ],
        "corrections": [
            {
                "family": correction.calibration.key,
                "factor": correction.factor,
                "interval": list(_ends(correction)),
                "jobs": list(correction.jobs),
            }
            for correction in calibration.corrections.values()
        ],
    }
