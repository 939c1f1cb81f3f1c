"""The cost that today's jobs would have had on AWS: a part of the list of jobs that is loaded after it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from windtunnel_local.service.ground.search_query import Condition, Group, SearchQuery
from windtunnel_local.ui.costs import Cost
from windtunnel_local.ui.pages.by_cost import newest_first
from windtunnel_local.ui.pages.job_filter import CREATED, beginning_us
from windtunnel_local.ui.site import Site

_PATIENCE_S = 3.0
"""Enough for some thousand jobs. Computed costs are kept, so the next call goes on from there."""


def routes(site: Site) -> list[Route]:
    return [Route("/ui/jobs/-/today", partial(_today, site))]


def _today(site: Site, request: Request) -> Response:
    until = time.monotonic() + _PATIENCE_S
    ended, whole = 0, True
    costs: dict[str, Cost] = {}
    for jobs in newest_first(site.backend.jobs, _created_today(site)):
        found = site.costs.of(jobs, until - time.monotonic())
        ended += len(found)
        costs |= {name: cost for name, cost in found.items() if cost is not None}
        if time.monotonic() > until:
            whole = False
            break
    name, most = max(costs.items(), key=lambda item: item[1].usd, default=("", None))
    context: dict[str, Any] = {"ended": ended, "costs": list(costs.values()), "whole": whole}
    context |= {"most": most, "most_name": name}
    if request.headers.get("sec-fetch-dest") == "document":  # opened as a link, without JavaScript
        return site.page(request, "today_page.html", **context)
    return HTMLResponse(site.part(request, "today.html", **context))


def _created_today(site: Site) -> SearchQuery:
    """A search for all jobs created since midnight in this machine's time zone."""
    today = site.backend.clock.now().astimezone().date()
    begun = Condition(CREATED, "GreaterThanOrEqualTo", (beginning_us(today),))
    return SearchQuery(Group("And", (begun,)), CREATED)
