"""`windtunnel top JOB`: show what the simulated NeuronCores of a running job do."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import job_of
from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.job.training_job import TrainingJob

_PERIOD_S = 1.0
_WIDTH = 160


def add_parser(commands: Any) -> None:
    """Register the command."""
    top = commands.add_parser(
        "top",
        help="show what the cores of a running job do",
        description="Show what the simulated NeuronCores of a running job do, once a second, until it ends or "
        "Ctrl-C. The job goes on. Where there is no terminal, it is one look.",
    )
    top.add_argument("name", help="the job's name")
    top.add_argument("--once", action="store_true", help="one look")
    top.add_argument("--json", action="store_true", help="one JSON object a look")
    top.set_defaults(func=_top, aws=False)


def _top(arguments: argparse.Namespace) -> int:
    job = job_of(arguments)
    once = arguments.once or not (sys.stdout.isatty() or arguments.json)
    try:
        if once:
            return _look(job, as_json=arguments.json)
        if arguments.json:
            while _look(job, as_json=True) == 0:
                time.sleep(_PERIOD_S)
        else:
            _watch(job)
    except KeyboardInterrupt:
        return 0  # watching was ended, which is no error
    return 0


def _look(job: TrainingJob, *, as_json: bool) -> int:
    """Print the cores' state once; returns 1 if the job does not train any more."""
    document = job.usage()
    if document is None:
        return _nothing(job)
    from windtunnel.priceperf.workload.usage import read
    from windtunnel.reports.live_usage import screen

    usages = read(document)
    if as_json:
        shown = {"job": job.name, "time": document["time"], "cores": [one.as_dict() for one in usages]}
        print(json.dumps(shown), flush=True)
        return 0
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH).print(
        screen(job.name, document["instance_type"], usages)
    )
    return 0


def _nothing(job: TrainingJob) -> int:
    """Print why there is nothing to show; returns 1 if the job has ended, else 0."""
    description = job.describe()
    status, secondary = description["TrainingJobStatus"], description.get("SecondaryStatus", "")
    if status in TERMINAL:
        print(
            f"{job.name} has ended: {status}. `windtunnel report {job.name}` has its figures.",
            file=sys.stderr,
        )
        return 1
    print(f"{job.name}: {secondary}; no core is in use.", file=sys.stderr)
    return 0


def _watch(job: TrainingJob) -> None:
    """Redraw the screen until the job has ended."""
    from rich.live import Live
    from rich.text import Text

    from windtunnel.priceperf.workload.usage import read
    from windtunnel.reports.live_usage import screen

    with Live(Text("..."), auto_refresh=False, transient=True) as live:
        while (status := job.status()) not in TERMINAL:
            document = job.usage()
            if document is None:
                live.update(Text(f"{job.name}: {status}; no core is in use."), refresh=True)
            else:
                shown = screen(job.name, document["instance_type"], read(document))
                live.update(shown, refresh=True)
            time.sleep(_PERIOD_S)
    _nothing(job)
