"""The page that compares two to six jobs side by side: settings, results, metrics and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windtunnel.priceperf.workload.counters import Counters
from windtunnel_local.service.ground.errors import ServiceError
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.ui.charts.by_count_chart import legend_key
from windtunnel_local.ui.charts.line_chart import Series, described, line_chart
from windtunnel_local.ui.costs import Cost
from windtunnel_local.ui.job import documents, phases
from windtunnel_local.ui.job.as_code import SDK_PREFIX
from windtunnel_local.ui.job.metrics import names_of, series
from windtunnel_local.ui.jobs_compared.differences import Finding, Setting, findings, request_of, settings
from windtunnel_local.ui.site import Site
from windtunnel_local.ui.text import fitting, room_of

MOST_JOBS = 6
_MOST_METRICS = 12
_POINTS_A_PAGE = 5000
_LEAST_POINTS, _MOST_POINTS = 40, 300
_PATIENCE_S = 1.0
_LONGEST_VALUE = 120
_DIFFERING_BYTES, _SHARED_BYTES, _FINDINGS_BYTES = 40_000, 10_000, 20_000
"""The most bytes of a table: of settings that differ (two tables), of equal settings (two) and of findings (one)."""
_CELL_BYTES = 100
"""The bytes of a cell's HTML elements."""


def routes(site: Site) -> list[Route]:
    return [Route("/ui/compare", partial(_page, site))]


@dataclass(frozen=True)
class Column:
    """A job in the table's head and first rows. ``step_s``: the median training step on this machine.

    ``cost_to_come``: the cost could not be computed in the time that a page waits.
    """

    name: str
    job: Mapping[str, Any]
    running: bool
    elapsed_s: float
    billable_s: float
    steps: int | None
    step_s: float | None
    samples_per_s: float | None
    cost: Cost | None
    cost_to_come: bool
    key: Markup


@dataclass(frozen=True)
class Curves:
    """The chart of a metric, of all jobs that have it. ``last``: the newest value in each job."""

    name: str
    chart: Markup
    last: tuple[float | None, ...]
    words: tuple[str, ...]


def _page(site: Site, request: Request) -> Response:
    asked = list(dict.fromkeys(name for name in request.query_params.getlist("job") if name))
    jobs, missing = _jobs(site, asked[:MOST_JOBS])
    counted = [documents.counters(site.backend.objects, job) for job in jobs]
    curves, more = _curves(site, jobs)
    found = findings([documents.found(*one) for one in zip(counted, jobs, strict=True)]) if jobs else []
    shown = fitting(found, _FINDINGS_BYTES, _room_of_finding)
    return site.page(
        request,
        "compare.html",
        columns=_columns(site, jobs, counted),
        missing=missing,
        left_out=len(asked[MOST_JOBS:]),
        most=MOST_JOBS,
        settings=[
            _table("Hyperparameters", [_of_the_user(job) for job in jobs]),
            _table("Everything else that was asked for", [request_of(job) for job in jobs]),
        ],
        curves=curves,
        metrics_left_out=more,
        findings=shown,
        findings_left_out=len(found) - len(shown),
        cut=_LONGEST_VALUE,
    )


def _jobs(site: Site, names: Sequence[str]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The jobs that exist, the oldest first, and the names of those that do not."""
    found, missing = [], []
    for name in names:
        try:
            found.append(site.backend.jobs.describe(name))
        except ServiceError:
            missing.append(name)
    return sorted(found, key=lambda job: job["CreationTime"]), missing


def _of_the_user(job: Mapping[str, Any]) -> dict[str, str]:
    """The job's hyperparameters, without those that an SDK adds."""
    return {
        name: value
        for name, value in job.get("HyperParameters", {}).items()
        if not name.startswith(SDK_PREFIX)
    }


def _table(title: str, of_jobs: Sequence[Mapping[str, str]]) -> tuple[str, list[Setting], list[Setting], int]:
    """Title, settings that differ and equal settings, both as far as there is room, and how many more differ."""
    differ, same = settings(of_jobs)
    shown = fitting(differ, _DIFFERING_BYTES, lambda row: _room_of_setting(row.name, row.values))
    shared = fitting(same, _SHARED_BYTES, lambda row: _room_of_setting(row.name, row.values[:1]))
    return title, shown, shared, len(differ) - len(shown)


def _room_of_setting(name: str, values: Sequence[str | None]) -> int:
    return room_of(name, *((value or "")[:_LONGEST_VALUE] for value in values)) + _CELL_BYTES * len(values)


def _room_of_finding(row: Finding) -> int:
    lines = (cell.line for cell in row.cells)
    return room_of(row.message or row.kind, *lines) + _CELL_BYTES * len(row.cells)


def _columns(
    site: Site, jobs: Sequence[Mapping[str, Any]], counted: Sequence[Counters | str | None]
) -> list[Column]:
    costs, now = site.costs.of(jobs, _PATIENCE_S), site.backend.clock.now()
    columns = []
    for place, (job, counters) in enumerate(zip(jobs, counted, strict=True)):
        train = counters.train if isinstance(counters, Counters) else None
        name, running = job["TrainingJobName"], job["TrainingJobStatus"] not in TERMINAL
        columns.append(
            Column(
                name,
                job,
                running,
                phases.elapsed_s(job, now),
                phases.billable_s(job, phases.phases(job, now)),
                None if train is None else train.steps,
                None if train is None else train.median_step_seconds,
                train.samples / train.seconds if train and train.samples and train.seconds else None,
                costs.get(name),
                not running and name not in costs,
                legend_key(place, form=False),
            )
        )
    return columns


def _curves(site: Site, jobs: Sequence[Mapping[str, Any]]) -> tuple[list[Curves], int]:
    """The charts of the metrics that the jobs define, and how many more metrics there are."""
    now = site.backend.clock.now()
    names = list(dict.fromkeys(name for job in jobs for name in names_of(job)))
    shown = names[:_MOST_METRICS]
    most = max(_LEAST_POINTS, min(_MOST_POINTS, _POINTS_A_PAGE // max(1, len(shown) * len(jobs))))
    found = []
    for number, metric in enumerate(shown):
        lines = [
            Series(job["TrainingJobName"], series(site.backend.metrics, job, metric, now)[0], place)
            for place, job in enumerate(jobs)
            if metric in names_of(job)
        ]
        last = {line.name: line.points[-1][1] for line in lines if line.points}
        chart = line_chart(metric, lines, key=f"c{number}", most_points=most, dots_up_to=0)
        lasts = tuple(last.get(job["TrainingJobName"]) for job in jobs)
        found.append(Curves(metric, chart, lasts, tuple(map(described, lines))))
    return found, len(names) - len(shown)
