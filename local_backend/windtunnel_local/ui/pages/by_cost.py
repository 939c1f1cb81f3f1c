"""Jobs sorted by the cost that they would have had on AWS.

The database has no index for that, since the page computes costs with a model. So jobs are read one by one, the newest
first, until a time limit. Computed costs are kept, so the next call gets further: a job with a known cost takes a
quarter of the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.service.ground.search_query import SearchQuery
from windtunnel_local.service.training_jobs import TrainingJobService
from windtunnel_local.ui.costs import Cost, CostBook
from windtunnel_local.ui.pages.job_filter import CREATED

_AT_ONCE = 200


@dataclass(frozen=True)
class ByCost:
    """The first jobs by cost. ``of``: how many jobs have a cost; ``without``: how many ended jobs have none.

    ``whole``: all jobs were read; else only the newest.
    """

    jobs: list[dict[str, Any]]
    costs: dict[str, Cost | None]
    of: int
    without: int
    whole: bool


def by_cost(
    service: TrainingJobService,
    book: CostBook,
    query: SearchQuery,
    most: int,
    within_s: float,
    *,
    dearest_first: bool = True,
) -> ByCost:
    """Up to ``most`` of the jobs that match, sorted by cost; with equal costs, the newest first."""
    until = time.monotonic() + within_s
    first: list[tuple[Cost, dict[str, Any]]] = []
    of = without = 0
    whole = True
    for jobs in newest_first(service, query):
        costs = book.of(jobs, until - time.monotonic())
        known = [(cost, job) for job in jobs if (cost := costs.get(job["TrainingJobName"])) is not None]
        of, without = of + len(known), without + len(costs) - len(known)
        first = sorted([*first, *known], key=lambda one: one[0].usd, reverse=dearest_first)[:most]
        ended = sum(job["TrainingJobStatus"] in TERMINAL for job in jobs)
        if len(costs) < ended or time.monotonic() > until:
            whole = False
            break
    return ByCost(
        [job for _, job in first], {job["TrainingJobName"]: cost for cost, job in first}, of, without, whole
    )


def newest_first(service: TrainingJobService, query: SearchQuery) -> Iterator[list[dict[str, Any]]]:
    """All jobs that match a search, in pages, the newest first; the query's own order and page are ignored."""
    token = None
    while True:
        asked = replace(query, sort_by=CREATED, sort_order="Descending", limit=_AT_ONCE, token=token)
        found = service.search(asked)
        yield [result["TrainingJob"] for result in found["Results"]]
        token = found.get("NextToken")
        if token is None:
            return
