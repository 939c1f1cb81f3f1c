"""The page of one training job: its state, log, metrics, findings, files and request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from markupsafe import escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from windtunnel.priceperf.workload.counters import Counters, Diagnostic
from windtunnel.priceperf.workload.usage import QUIET_S, waited_for
from windtunnel.reports.failure import in_short, raised
from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.ui.formats import as_json
from windtunnel_local.ui.job import documents, phases
from windtunnel_local.ui.job.as_code import SDK_PREFIX, boto3_text, estimator_text
from windtunnel_local.ui.job.follower import Follower, messages
from windtunnel_local.ui.job.log_pages import JobLog
from windtunnel_local.ui.job.log_position import hosts_of, read, written
from windtunnel_local.ui.job.metrics import metrics
from windtunnel_local.ui.job.source_lines import Scripts, SourceLine
from windtunnel_local.ui.job.step import facts
from windtunnel_local.ui.pages.job_log import attachment, cut
from windtunnel_local.ui.pages.jobs import instances_of
from windtunnel_local.ui.pages.tensorboard import offer
from windtunnel_local.ui.request_again import request_again
from windtunnel_local.ui.site import Site, followed
from windtunnel_local.ui.text import fitting, room_of

FIRST_LINES = 300
_FIRST_BYTES = 40_000
"""The most bytes of the log in the page itself, so that the page stays below 200 kB."""
_FINDINGS = 20
_FINDING_CHARACTERS = 600
_FINDINGS_BYTES = 50_000
_FACTS = 60
_PHASES = 60
_VALUES_CHARACTERS = 8_000
_PROGRAM_CHARACTERS = 12_000
_CORES = 64
_FAILURE_LINES = 1000
"""How many of the log's last lines are searched for a failed job's traceback."""
_COST_PATIENCE_S = 0.5


def routes(site: Site) -> list[Route]:
    """The page with its live updates, the job's files, and its request in several forms."""
    job = "/ui/jobs/{name}"
    parts = Parts(site)
    return [
        *followed(job, partial(_page, site, parts), partial(_live, site, parts)),
        Route(f"{job}/file", partial(_file, site)),
        *(Route(f"{job}/{name}", partial(_program, site, name, made_of)) for name, _, made_of in _PROGRAMS),
    ]


@dataclass(frozen=True)
class Program:
    """The job's request in one form: JSON or Python."""

    name: str
    title: str
    text: str

    @property
    def short(self) -> bool:
        """Whether the text is short enough for the page; else the page links to it as a file."""
        return len(escape(self.text)) <= _PROGRAM_CHARACTERS


_PROGRAMS: Sequence[tuple[str, str, Callable[[Mapping[str, Any]], str]]] = (
    ("request.json", "As JSON", as_json),
    ("request_boto3.py", "As boto3's call", boto3_text),
    ("request_estimator.py", "As an Estimator", estimator_text),
)


class Parts:
    """The parts of the page that change while a job runs, each as HTML of its own element."""

    def __init__(self, site: Site) -> None:
        """Read nothing yet: each part is made when it is asked for."""
        self._site = site
        self._scripts = Scripts(site.backend.objects)
        self.made: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "head": self._head,
            "phases": self._phases,
            "metrics": self._metrics,
            "cores": self._cores,
            "findings": self._findings,
            "step": self._step,
            "files": self._files,
            "tensorboard": lambda job: offer(self._site, job),
        }

    def html(self, request: Request, name: str, description: Mapping[str, Any]) -> str:
        """The HTML of one part; ``name``: a key of `made`."""
        content = self.made[name](description)
        return self._site.part(request, f"job_{name}.html", job=description, **content)

    def _head(self, job: Mapping[str, Any]) -> dict[str, Any]:
        now = self._site.backend.clock.now()
        found = phases.phases(job, now)
        resources = job["ResourceConfig"]
        hosts = sum(group.get("InstanceCount", 1) for group in resources.get("InstanceGroups") or [resources])
        billable, goes_on = phases.billable_s(job, found), bool(found) and found[-1].end is None
        return {
            **self._failure(job),
            "cost": self._site.costs.of([job], _COST_PATIENCE_S).get(job["TrainingJobName"]),
            "instances": instances_of(resources),
            "hosts": hosts,
            "running": job["TrainingJobStatus"] not in TERMINAL,
            "elapsed_s": phases.elapsed_s(job, now),
            "billable_s": billable,
            # The start for the page's clock, so that it shows the seconds billed so far.
            "billed_since": now - timedelta(seconds=billable) if goes_on and found[-1].billed else None,
        }

    def _failure(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """What a failed job's script raised, at which line, and the script around that line; empty if unknown."""
        reason = job.get("FailureReason", "")
        if not reason:
            return {"failed_by": "", "failed_at": "", "failed_lines": []}
        log = JobLog(self._site.backend.logs, job["TrainingJobName"])
        lines = log.before(None, _FAILURE_LINES, list(log.streams())).lines
        found = raised((line.text for line in lines), reason)
        if found is None:
            return {"failed_by": in_short(reason), "failed_at": "", "failed_lines": []}
        return {
            "failed_by": found.what,
            "failed_at": found.place,
            "failed_lines": self._scripts.around(job, found.place),
        }

    def _phases(self, job: Mapping[str, Any]) -> dict[str, Any]:
        found = phases.phases(job, self._site.backend.clock.now())
        return {
            "phases": found[-_PHASES:],
            "left_out": len(found) - len(found[-_PHASES:]),
            "timeline": phases.timeline(found[-_PHASES:]),
        }

    def _metrics(self, job: Mapping[str, Any]) -> dict[str, Any]:
        backend = self._site.backend
        return {"metrics": metrics(backend.metrics, job, backend.clock.now())}

    def _cores(self, job: Mapping[str, Any]) -> dict[str, Any]:
        usages = documents.usages(self._site.backend.objects, job)
        return {
            "usages": usages[:_CORES],
            "left_out": len(usages) - len(usages[:_CORES]),
            "waited_for": waited_for(usages),
            "most_steps": max((usage.steps for usage in usages), default=0),
            "quiet_s": QUIET_S,
        }

    def _findings(self, job: Mapping[str, Any]) -> dict[str, Any]:
        counters = documents.counters(self._site.backend.objects, job)
        found = documents.found(counters, job) or ()
        with_script = ((one, self._scripts.around(job, one.line)) for one in found[:_FINDINGS])
        shown = fitting(with_script, _FINDINGS_BYTES, _room_of_finding)
        return {
            "counters": counters,
            "findings": shown,
            "left_out": len(found) - len(shown),
            "longest": _FINDING_CHARACTERS,
            "ended": job["TrainingJobStatus"] in TERMINAL,
        }

    def _step(self, job: Mapping[str, Any]) -> dict[str, Any]:
        counters = documents.counters(self._site.backend.objects, job)
        return {
            "facts": facts(counters)[:_FACTS] if isinstance(counters, Counters) else [],
            "problem": counters if isinstance(counters, str) else "",
            "ended": job["TrainingJobStatus"] in TERMINAL,
        }

    def _files(self, job: Mapping[str, Any]) -> dict[str, Any]:
        found, more = documents.artifacts(self._site.backend.objects, job)
        return {"files": found, "more": more, "place": "s3://{}/{}".format(*documents.stored_at(job))}


def _page(site: Site, parts: Parts, request: Request) -> Response:
    backend, name = site.backend, request.path_params["name"]
    job = backend.jobs.describe(name)
    tags = backend.jobs.list_tags(job["TrainingJobArn"])
    log = JobLog(backend.logs, name)
    streams = log.streams()
    last = cut(log.before(None, FIRST_LINES, list(streams)), _FIRST_BYTES, newest=True)
    made = request_again(job, tags, name)
    return site.page(
        request,
        "job.html",
        job=job,
        parts={part: parts.html(request, part, job) for part in parts.made},
        running=job["TrainingJobStatus"] not in TERMINAL,
        lines=last.lines,
        hosts=hosts_of(streams),
        begin=written(last.begin),
        end=written(last.end),
        more=last.more,
        settings=_settings(job),
        longest=_VALUES_CHARACTERS
        // max(1, len(job.get("HyperParameters", {})) + len(job.get("Environment", {}))),
        channels=job.get("InputDataConfig", []),
        tags=tags,
        programs=[Program(name, title, made_of(made)) for name, title, made_of in _PROGRAMS],
    )


def _live(site: Site, parts: Parts, request: Request) -> Response:
    given = request.query_params
    name = request.path_params["name"]
    site.backend.jobs.describe(name)
    follower = Follower(
        site.backend,
        name,
        lambda part, job: parts.html(request, part, job),
        read(given.get("after", "")),
        given.get("host") or None,
    )
    return site.events(messages(follower, site.look))


def _file(site: Site, request: Request) -> Response:
    """One of the job's files as a download. It must not open in the browser, as a script wrote it."""
    job = site.backend.jobs.describe(request.path_params["name"])
    bucket, prefix = documents.stored_at(job)
    name = request.query_params.get("path", "")
    try:
        place = site.backend.objects.path(bucket, prefix + name)
    except (ObjectError, ValueError):
        raise HTTPException(404) from None
    return FileResponse(
        place,
        filename=PurePosixPath(name).name or "file",
        media_type="application/octet-stream",
    )


def _program(
    site: Site, file: str, made_of: Callable[[Mapping[str, Any]], str], request: Request
) -> Response:
    name = request.path_params["name"]
    job = site.backend.jobs.describe(name)
    made = request_again(job, site.backend.jobs.list_tags(job["TrainingJobArn"]), name)
    return PlainTextResponse(made_of(made), headers=attachment(f"{name}_{file}"))


def _settings(job: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Tables of names and values: the user's hyperparameters first, then what the SDK added."""
    values = job.get("HyperParameters", {})
    return {
        "Hyperparameters": sorted((k, v) for k, v in values.items() if not k.startswith(SDK_PREFIX)),
        "Added by the SDK": sorted((k, v) for k, v in values.items() if k.startswith(SDK_PREFIX)),
        "Environment": sorted(job.get("Environment", {}).items()),
    }


def _room_of_finding(finding: tuple[Diagnostic, Sequence[SourceLine]]) -> int:
    one, lines = finding
    texts = room_of(one.message, one.advice, most=_FINDING_CHARACTERS)
    return texts + room_of(one.severity, one.line, one.line, *(line.text for line in lines))
