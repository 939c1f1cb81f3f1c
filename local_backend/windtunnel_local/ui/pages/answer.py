"""The page of the answer: what a job would take and cost on AWS, with the reader's choices.

All figures come from `windtunnel.reports`. Its import takes a third of a second, so it is imported at the first
answer and not at the server's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windtunnel.reports.failure import in_short
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.ui.job_outputs import Ended, output_document
from windtunnel_local.ui.pages.job_log import attachment
from windtunnel_local.ui.site import Site

if TYPE_CHECKING:
    from windtunnel.priceperf.workload.rehearsed import RehearsedJob
    from windtunnel.reports.job.report import PricePerformance
    from windtunnel_local.ui.answer.choice import Choice, Form

_NOT_FOUND = 404


def routes(site: Site) -> list[Route]:
    job = "/ui/jobs/{name}/answer"
    return [Route(job, partial(_page, site)), Route(f"{job}/report.{{kind}}", partial(_export, site))]


@dataclass(frozen=True)
class _Found:
    """A job's report with the reader's choices. ``problem``: why there is no report."""

    job: Mapping[str, Any]
    counters: Mapping[str, Any] | None
    form: Form
    report: PricePerformance | None
    problem: str = ""


def _found(site: Site, request: Request, *, in_a_line: bool = False) -> _Found:
    """Make the report that a request asks for. ``in_a_line``: shorten the job's failure reason to one line."""
    from windtunnel.priceperf import InvalidInput, PriceUnknown
    from windtunnel_local.ui.answer.choice import read

    job = site.backend.jobs.describe(request.path_params["name"])
    if in_a_line and "FailureReason" in job:
        job = {**job, "FailureReason": in_short(job["FailureReason"])}
    counters = output_document(site.backend.objects, job, "counters.json")
    form = read(request.query_params.multi_items(), _rehearsed(counters))
    if counters is None and job["TrainingJobStatus"] not in TERMINAL:
        return _Found(job, None, form, None, "The job has not ended. What it counts is known when it has.")
    try:
        if form.choice is not None:
            return _Found(job, counters, form, _report(job, counters, form.choice))
    except PriceUnknown as error:
        form = form.wrong("on", str(error))
    except InvalidInput as error:
        return _Found(job, counters, form, None, f"Not with these choices: {error}.")
    except (ValueError, KeyError, TypeError):
        return _Found(job, counters, form, None, "What the job has counted is no longer what was stored.")
    return _Found(job, counters, form, None, "Mend what is said beside the fields.")


def _rehearsed(counters: Mapping[str, Any] | None) -> RehearsedJob | None:
    """What was rehearsed; None: nothing was counted, or the report will say why it cannot be read."""
    from windtunnel.priceperf import Workload

    try:
        return None if counters is None else Workload.from_counters(counters).rehearsed
    except (ValueError, KeyError, TypeError):
        return None


def _report(job: Mapping[str, Any], counters: Mapping[str, Any] | None, choice: Choice) -> PricePerformance:
    from windtunnel.reports.for_job import report_for_job
    from windtunnel.reports.job.report import Precisions

    return report_for_job(
        Ended(job, counters),
        choice.full_scale,
        instances=choice.instances or None,
        batch=choice.batch,
        prices_on=choice.on,
        instance_count=choice.nodes,
        offering=choice.offering,
        discount=choice.discount,
        precisions=Precisions(choice.trn, choice.gpu),
    )


def _page(site: Site, request: Request) -> Response:
    from windtunnel_local.ui.answer import choice

    found = _found(site, request, in_a_line=True)
    job = found.job
    return site.page(
        request,
        "answer.html",
        job=job,
        address=f"/ui/jobs/{quote(job['TrainingJobName'])}/answer",
        form=found.form,
        fields=choice,
        problem=found.problem,
        checked=_checked(found),
        # If nothing can be modelled, no choices are offered.
        choosing=found.form.choice is None
        or (found.report is None and found.counters is not None)
        or (found.report is not None and found.report.comparison is not None),
        **_content(found),
    )


def _checked(found: _Found) -> tuple[str, ...]:
    """The instances that are compared: those that the reader chose, else those of the report."""
    if found.form.instances or found.report is None or found.report.comparison is None:
        return found.form.instances
    return tuple(item.instance.name for item in found.report.comparison.estimates)


def _content(found: _Found) -> dict[str, Any]:
    """The part of the page below the instance menu."""
    from windtunnel.priceperf.money.offerings import TRAINING_ON_DEMAND
    from windtunnel.rendering.plots.chart import MISSING, available
    from windtunnel.reports.comparison.scaling import scaling_section
    from windtunnel_local.ui.answer.bought import unpriced
    from windtunnel_local.ui.answer.figures import bars, scaled
    from windtunnel_local.ui.answer.here import for_page

    report, choice = found.report, found.form.choice
    query = urlencode(_query(found.form))
    if report is None or choice is None:
        return {"sections": (), "bars": (), "scaled": None, "tables": (), "query": query, "png": None}
    tables = _scalings(report, choice)
    return {
        "sections": for_page(report.document().sections),
        "unpriced": [
            (one, [(way, urlencode(_query(found.form, offering=way.offering))) for way in one.ways])
            for one in unpriced(report, choice)
        ],
        "offering": found.form.given.get("offering", TRAINING_ON_DEMAND),
        "headline": report.notes,
        "bars": bars(report),
        "scaled": scaled(tables) if tables else None,
        "tables": [scaling_section(table) for table in tables],
        "query": query,
        "png": "" if available() else MISSING,
    }


def _scalings(report: PricePerformance, choice: Choice) -> list[Any]:
    from windtunnel.reports.comparison.scaling import scaling
    from windtunnel.reports.job.report import Precisions

    if report.comparison is None or report.workload is None:
        return []
    neuron = next((e.precision for e in report.comparison.estimates if e.instance.is_neuron), choice.trn)
    return [
        scaling(
            report.workload,
            item.name,
            mode=choice.mode,
            full_scale=choice.full_scale,
            prices=report.prices,
            precisions=Precisions(neuron, choice.gpu),
            global_batch=item.global_batch,
            instance_count=item.instance_count,
        ).scaling
        for item in report.comparison.estimates
    ]


def _query(form: Form, **changed: str) -> list[tuple[str, str]]:
    """The choices as a URL's query, with some fields changed."""
    fields = [(name, value) for name, value in {**form.given, **changed}.items() if name != "instance"]
    return [*(("instance", name) for name in form.instances), *fields]


def _export(site: Site, request: Request) -> Response:
    from windtunnel_local.ui.answer.exports import FILE_TYPES, NotHere

    kind = request.path_params["kind"]
    if kind not in FILE_TYPES:
        raise HTTPException(404)
    found = _found(site, request)
    if found.report is None:
        text = " ".join([found.problem, *(f"{name}: {said}" for name, said in found.form.errors.items())])
        return site.message(request, 400, "There is no such report", text)
    try:
        body = FILE_TYPES[kind].written(found.report)
    except NotHere as error:
        return site.message(request, _NOT_FOUND, "Not here", str(error))
    # A download, not a page: the report has its own styles, which this page's content policy forbids.
    headers = attachment(f"{found.job['TrainingJobName']}.{kind}")
    return Response(body, headers=headers, media_type=FILE_TYPES[kind].media_type)
