"""The page that starts TensorBoard for one job, in a process of its own with its own port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.ui.site import Site
from windtunnel_local.ui.tensorboard.boards import Board, installed
from windtunnel_local.ui.tensorboard.event_files import stored

_PATIENCE_S = 5.0
"""How long to wait for TensorBoard's start, which takes two or three seconds; there are only a few threads."""
_SEE_OTHER = 303
_FEW = 200
_SIMULATORS = "neuron/"
"""The prefix of the simulator's own event files, which every job has."""


def routes(site: Site) -> list[Route]:
    """Show, start and close a job's TensorBoard."""
    jobs, boards, address = site.backend.jobs, site.boards, "/ui/jobs/{name}/tensorboard"

    def show(request: Request) -> Response:
        job = jobs.describe(request.path_params["name"])
        return _page(site, request, job, boards.of(job), go_on=False)

    def start(request: Request) -> Response:
        job = jobs.describe(request.path_params["name"])
        board = boards.open(job) if installed() and _has_some(job, _names(site, job)) else None
        return _page(site, request, job, board, go_on=True)

    def close(request: Request) -> Response:
        job = jobs.describe(request.path_params["name"])
        boards.close(job)
        return RedirectResponse(f"/ui/jobs/{quote(job['TrainingJobName'])}", _SEE_OTHER)

    return [
        Route(address, show, methods=["GET"]),
        Route(address, start, methods=["POST"]),
        Route(f"{address}/close", close, methods=["POST"]),
    ]


def offer(site: Site, job: Mapping[str, Any]) -> dict[str, Any]:
    """What the job's page says of TensorBoard. ``wanted``: the job asks for it, or its script writes event files."""
    names = _names(site, job)
    return {
        "board": site.boards.of(job),
        "installed": installed(),
        "some": _has_some(job, names),
        "wanted": "TensorBoardOutputConfig" in job or any(not n.startswith(_SIMULATORS) for n in names),
    }


def _names(site: Site, job: Mapping[str, Any]) -> list[str]:
    return list(stored(site.backend.objects, job, _FEW))


def _has_some(job: Mapping[str, Any], names: list[str]) -> bool:
    """Whether the job has event files, or may still write some as it runs."""
    return bool(names) or job["TrainingJobStatus"] not in TERMINAL


def _page(
    site: Site, request: Request, job: Mapping[str, Any], board: Board | None, *, go_on: bool
) -> Response:
    if board is not None:
        board.settled.wait(_PATIENCE_S)
    return site.page(
        request,
        "tensorboard.html",
        job=job,
        board=board,
        # Forward to TensorBoard at once, unless the page must first say that files were left out.
        go_on=go_on and board is not None and not board.full,
        some=_has_some(job, _names(site, job)),
        installed=installed(),
    )
