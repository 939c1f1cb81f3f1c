"""Pages of this machine's clusters: the list, one cluster, and the bill of one of its Slurm jobs.

The pages only read; they name the commands that change a cluster. The modules that read clusters are imported at the
first request for such a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windtunnel_local.ui.formats import cut
from windtunnel_local.ui.site import Site, followed

if TYPE_CHECKING:
    from windtunnel_local.cluster.seen import ClusterSeen
    from windtunnel_local.cluster.slurm_jobs import JobRun

_PATH = "/ui/clusters"
_NOT_FOUND = 404
_MOST_JOBS = 50
_MOST_NODES = 100
_LONGEST_FILE = 50_000
_EVERY_S = 2.0
_NUMBER = re.compile(r"[0-9]{1,10}")


def routes(site: Site) -> list[Route]:
    """The list, a cluster (both with live updates), and a job."""
    return [
        *followed(_PATH, partial(_list, site), partial(_live_list, site)),
        *followed(f"{_PATH}/{{name}}", partial(_cluster, site), partial(_live_cluster, site)),
        Route(f"{_PATH}/{{name}}/jobs/{{number}}", partial(_job, site)),
    ]


def _list(site: Site, request: Request) -> Response:
    return site.page(request, "clusters.html", clusters=_every(site))


def _live_list(site: Site, request: Request) -> Response:
    def parts() -> Mapping[str, str]:
        return {"rows": site.part(request, "clusters_rows.html", clusters=_every(site))}

    return site.live(lambda: _every(site), parts, _EVERY_S)


def _cluster(site: Site, request: Request) -> Response:
    found = _one(site, request)
    return _gone(site, request) if found is None else site.page(request, "cluster.html", **_content(found))


def _live_cluster(site: Site, request: Request) -> Response:
    def parts() -> Mapping[str, str]:
        found = _one(site, request)
        if found is None:
            return {"now": '<p class="empty">This cluster has been deleted.</p>'}
        return {
            "now": site.part(request, "cluster_now.html", **_content(found)),
            "file": cut(found.text, _LONGEST_FILE),
        }

    if _one(site, request) is None:
        return _gone(site, request)
    return site.live(lambda: _one(site, request), parts, _EVERY_S)


def _job(site: Site, request: Request) -> Response:
    cluster = _one(site, request)
    if cluster is None:
        return _gone(site, request)
    number = request.path_params["number"]
    runs = [run for run in cluster.runs if _NUMBER.fullmatch(number) and run.number == int(number)]
    if not runs:
        told = "Slurm has not begun it yet, or ended it so long ago that the page no longer reads of it."
        return site.message(request, _NOT_FOUND, "There is no such job in this cluster", told)
    return site.page(
        request,
        "cluster_job.html",
        cluster=cluster,
        runs=runs,
        job=runs[-1],
        **_bill(site, cluster, runs),
    )


def _bill(site: Site, cluster: ClusterSeen, own: Sequence[JobRun]) -> dict[str, Any]:
    """The bill as in `windtunnel cluster report`: in two lines, and as a section. Empty if the nodes are unknown."""
    from windtunnel.reports.cluster import bill
    from windtunnel.reports.cluster.report import cluster_report
    from windtunnel_local.cluster.job_data import bare_document

    if cluster.configuration is None:
        return {"headline": "", "section": None, "price_notes": ()}
    now = site.backend.clock.now()
    report = cluster_report(bare_document(cluster.folder, cluster.configuration, own, cluster.runs, now))
    return {
        "headline": bill.headline(report.job, report.bills),
        "section": bill.section(report.job, report.bills) if report.bills else None,
        "price_notes": report.price_notes,
    }


def _every(site: Site) -> tuple[ClusterSeen, ...]:
    from windtunnel_local.cluster.seen import every

    return every(site.home)


def _one(site: Site, request: Request) -> ClusterSeen | None:
    from windtunnel_local.cluster.seen import one

    return one(site.home, request.path_params["name"])


def _gone(site: Site, request: Request) -> Response:
    told = "It may have been deleted. `windtunnel cluster list` names those that there are."
    return site.message(request, _NOT_FOUND, "There is no such cluster", told)


def _content(cluster: ClusterSeen) -> dict[str, Any]:
    jobs = cluster.jobs
    return {
        "cluster": cluster,
        "longest": _LONGEST_FILE,
        "jobs": jobs[:_MOST_JOBS],
        "more_jobs": cluster.older or len(jobs) > _MOST_JOBS,
        "nodes": cluster.nodes[:_MOST_NODES],
        "more_nodes": len(cluster.nodes) - _MOST_NODES,
    }
