"""The actions of the page: stop, delete, run again. Each is a form; one that cannot be undone asks first."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.ui.request_again import next_name, request_again
from windtunnel_local.ui.site import Site

_SEE_OTHER = 303
_JOBS = "/ui/jobs"
_TRANSFORMS = "/ui/transform-jobs"
_ENDPOINTS = "/ui/endpoints"


def routes(site: Site) -> list[Route]:
    """The actions on training jobs, transform jobs and endpoints."""
    return [*_of_jobs(site), *_of_others(site)]


def _of_jobs(site: Site) -> list[Route]:
    jobs = site.backend.jobs

    def stop(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            jobs.stop(name)
        except ValidationFailed:
            # The job has ended since the page was drawn, or is stopping already; raises if it does not exist.
            jobs.describe(name)
        return _back(request, f"{_JOBS}/{quote(name)}")

    def ask_delete(request: Request) -> Response:
        name = jobs.describe(request.path_params["name"])["TrainingJobName"]
        told = (
            "The job's record, log and metrics are removed, and cannot be brought back. What it stored in S3, its"
            " model among it, stays."
        )
        return site.page(request, "delete.html", name=name, told=told, back=f"{_JOBS}/{quote(name)}")

    def delete(request: Request) -> Response:
        jobs.delete(request.path_params["name"])
        return RedirectResponse(_JOBS, _SEE_OTHER)

    def ask_again(request: Request) -> Response:
        name = request.path_params["name"]
        job = jobs.describe(name)
        return site.page(request, "again.html", job=job, name=next_name(name, site.backend.clock.now()))

    def again(request: Request) -> Response:
        name = request.path_params["name"]
        job = jobs.describe(name)
        new = request.state.form.get("name", "").strip()
        jobs.create(request_again(job, jobs.list_tags(job["TrainingJobArn"]), new))
        return RedirectResponse(f"{_JOBS}/{quote(new)}", _SEE_OTHER)

    job = f"{_JOBS}/{{name}}"
    return [
        Route(f"{job}/stop", stop, methods=["POST"]),
        Route(f"{job}/delete", ask_delete, methods=["GET"]),
        Route(f"{job}/delete", delete, methods=["POST"]),
        Route(f"{job}/run-again", ask_again, methods=["GET"]),
        Route(f"{job}/run-again", again, methods=["POST"]),
    ]


def _of_others(site: Site) -> list[Route]:
    transforms, endpoints = site.backend.transforms, site.backend.endpoints

    def stop(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            transforms.stop(name)
        except ValidationFailed:
            transforms.describe(name)  # as for a training job
        return RedirectResponse(_TRANSFORMS, _SEE_OTHER)

    def ask_delete(request: Request) -> Response:
        name = endpoints.describe_endpoint(request.path_params["name"])["EndpointName"]
        told = "It answers no more. Its model and its configuration stay, and can make another one."
        return site.page(request, "delete.html", name=name, told=told, back=_ENDPOINTS)

    def delete(request: Request) -> Response:
        endpoints.delete_endpoint(request.path_params["name"])
        return RedirectResponse(_ENDPOINTS, _SEE_OTHER)

    return [
        Route(f"{_TRANSFORMS}/{{name}}/stop", stop, methods=["POST"]),
        Route(f"{_ENDPOINTS}/{{name}}/delete", ask_delete, methods=["GET"]),
        Route(f"{_ENDPOINTS}/{{name}}/delete", delete, methods=["POST"]),
    ]


def _back(request: Request, otherwise: str) -> Response:
    """Redirect to the page that the form was on, if the form names it; else to ``otherwise``."""
    path = request.state.form.get("back", "")
    known = path == _JOBS or path.startswith((f"{_JOBS}?", f"{_JOBS}/"))
    return RedirectResponse(path if known and path.isprintable() else otherwise, _SEE_OTHER)
