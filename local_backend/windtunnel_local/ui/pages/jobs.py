"""The lists of training jobs, of the queue and of warm pools: filtered, sorted, in pages, with live updates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windtunnel.priceperf.instances import CATALOG
from windtunnel.reports.failure import in_short
from windtunnel_local.service.ground.job import JobQuery
from windtunnel_local.service.ground.search_query import Condition, Group, SearchQuery
from windtunnel_local.ui.pages.by_cost import by_cost
from windtunnel_local.ui.pages.job_filter import (
    BY_COST,
    CHANGED,
    CREATED,
    POOL,
    ROWS,
    STATE,
    STATUSES,
    JobFilter,
)
from windtunnel_local.ui.site import Site, followed

_FIRST_LINE = 240
_PATIENCE_S = 0.02
"""How long the first answer waits for unknown costs; the others come with the live update."""
_LIVE_PATIENCE_S = 5.0
_BY_COST_PATIENCE_S = 1.0
"""How long the first answer waits for the order by cost: for thousands of known costs, or some hundred others."""


@dataclass(frozen=True)
class Row:
    name: str
    status: str
    state: str
    instances: str
    created: datetime
    changed: datetime
    billable_s: int | None
    since: datetime | None
    """When the present state began; None if the job has ended."""
    message: str
    """Why the job failed, or what it waits for; one line."""
    pool: str
    """The status of its warm pool; empty if it has none."""
    pool_until: datetime | None
    """When an Available warm pool ends, unless another job takes it over."""

    @property
    def stoppable(self) -> bool:
        return self.status == "InProgress"


def row_of(job: Mapping[str, Any]) -> Row:
    """The row of a job that Search has found."""
    transition = job["SecondaryStatusTransitions"][-1]
    going = job["TrainingJobStatus"] in ("InProgress", "Stopping")
    message = transition.get("StatusMessage", "") if going else job.get("FailureReason", "")
    pool = job.get("WarmPoolStatus", {}).get("Status", "")
    return Row(
        job["TrainingJobName"],
        job["TrainingJobStatus"],
        job["SecondaryStatus"],
        instances_of(job["ResourceConfig"]),
        job["CreationTime"],
        job["LastModifiedTime"],
        job.get("BillableTimeInSeconds"),
        transition["StartTime"] if going else None,
        first_line(in_short(message)),
        pool,
        _kept_until(job) if pool == "Available" else None,
    )


def _kept_until(job: Mapping[str, Any]) -> datetime | None:
    ended, seconds = job.get("TrainingEndTime"), job["ResourceConfig"].get("KeepAlivePeriodInSeconds")
    return ended + timedelta(seconds=seconds) if ended and seconds else None


def first_line(text: str) -> str:
    """The first line of a message, cut to the length that a row has room for."""
    line = text.partition("\n")[0]
    return line if len(line) <= _FIRST_LINE else f"{line[:_FIRST_LINE].rstrip()} …"


def instances_of(resources: Mapping[str, Any]) -> str:
    """A job's instances as text, one part for each instance group: ``2 × ml.trn1.32xlarge``."""
    groups: Sequence[Mapping[str, Any]] = resources.get("InstanceGroups") or [resources]
    return " + ".join(
        f"{group['InstanceCount']} × {group['InstanceType']}"
        if group.get("InstanceCount", 1) != 1
        else str(group["InstanceType"])
        for group in groups
    )


@dataclass(frozen=True)
class View:
    """One list of jobs: its path, heading, text if empty, search, and whether it has the filter form."""

    path: str
    heading: str
    empty: str
    search: Callable[[JobFilter], SearchQuery]
    filtered: bool = False


def _states(found: Any, *values: str) -> Callable[[JobFilter], SearchQuery]:
    where = Group("And", (Condition(found, "In", values),))
    return lambda given: SearchQuery(where, CREATED, "Ascending", ROWS, given.token or None)


VIEWS = (
    View(
        "/ui/jobs",
        "Training jobs",
        "No training job has run here yet. A first one: windtunnel run train.py",
        JobFilter.search,
        filtered=True,
    ),
    View(
        "/ui/queue",
        "Queue",
        "No job waits. Jobs wait here, first come, first served, when the machine is full.",
        _states(STATE, "Starting", "Pending"),
    ),
    View(
        "/ui/warm-pools",
        "Warm pools",
        "No containers are kept. A job with KeepAlivePeriodInSeconds leaves its own for the next one.",
        _states(POOL, "Available", "InUse"),
    ),
)


def routes(site: Site) -> list[Route]:
    """For each view the list and its live updates."""
    return [
        route
        for view in VIEWS
        for route in followed(view.path, partial(_page, site, view), partial(_live, site, view))
    ]


def _page(site: Site, view: View, request: Request) -> Response:
    given = JobFilter.of(request.query_params)
    return site.page(
        request,
        "jobs.html",
        **_content(site, view, given, _PATIENCE_S),
        statuses=STATUSES,
        types=sorted(CATALOG),
    )


def _live(site: Site, view: View, request: Request) -> Response:
    given = JobFilter.of(request.query_params)

    def parts() -> Mapping[str, str]:
        return {"rows": site.part(request, "jobs_rows.html", **_content(site, view, given, _LIVE_PATIENCE_S))}

    view.search(given)  # raises now if a field is not valid
    return site.live(lambda: _newest(site), parts)


def _newest(site: Site) -> Hashable:
    """A value that changes whenever any job changes, even one that this list does not show. Takes a millisecond."""
    changed = site.backend.jobs.search(SearchQuery(Group("And", ()), CHANGED, limit=1))["Results"]
    created = site.backend.jobs.list(JobQuery(limit=ROWS))["TrainingJobSummaries"]
    return (
        tuple(
            (job["TrainingJob"]["TrainingJobName"], job["TrainingJob"]["LastModifiedTime"]) for job in changed
        ),
        tuple(
            (job["TrainingJobName"], job["LastModifiedTime"], job.get("WarmPoolStatus", {}).get("Status"))
            for job in created
        ),
    )


def _content(site: Site, view: View, given: JobFilter, within_s: float) -> dict[str, Any]:
    ordered, following = None, None
    if view.filtered and given.sort == BY_COST:
        patience_s, dearest_first = max(within_s, _BY_COST_PATIENCE_S), given.order != "up"
        search = view.search(given)
        ordered = by_cost(
            site.backend.jobs, site.costs, search, ROWS, patience_s, dearest_first=dearest_first
        )
        jobs, costs = ordered.jobs, ordered.costs
    else:
        found = site.backend.jobs.search(view.search(given))
        jobs = [result["TrainingJob"] for result in found["Results"]]
        costs, following = site.costs.of(jobs, within_s), found.get("NextToken")
    return {
        "view": view,
        "filter": given,
        "rows": [row_of(job) for job in jobs],
        "costs": costs,
        "next": following,
        "by_cost": ordered,
    }
