"""The page of a job's steps over time, on the first core of each host; also as a file for Perfetto."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.ui.charts.step_lanes import Block, lane_svg
from windtunnel_local.ui.job import phases
from windtunnel_local.ui.job_outputs import output_document
from windtunnel_local.ui.pages.job_log import attachment
from windtunnel_local.ui.site import Site
from windtunnel_local.ui.trace.chrome import chrome_trace
from windtunnel_local.ui.trace.steps import PARTS, Lane, Step, Steps, read

_MOST_LANES = 8
_LONGEST_LISTED = 12
_AROUND = 5
_TICKS = 5
_LONGEST_NUMBER = 12
_PIECES = 500


def routes(site: Site) -> list[Route]:
    job = "/ui/jobs/{name}/trace"
    return [Route(job, partial(_page, site)), Route(f"{job}.json", partial(_file, site))]


@dataclass(frozen=True)
class Window:
    """The steps to show: their numbers from 1, ``first`` and ``last`` included. ``problem``: why the query is wrong."""

    first: int
    last: int
    of: int
    problem: str = ""

    @property
    def ways(self) -> list[tuple[str, int, int]]:
        """Links to other windows: a name, and the first and last step."""
        width = self.last - self.first + 1
        quarter, found = width // 4, []
        if width > 3:
            found.append(("Closer", self.first + quarter, self.last - quarter))
        if self.first > 1:
            found.append(("Earlier", max(1, self.first - width), max(1, self.first - width) + width - 1))
        if self.last < self.of:
            found.append(
                ("Later", min(self.of, self.last + width) - width + 1, min(self.of, self.last + width))
            )
        if width < self.of:
            more = max(1, width // 2)
            found.append(("Wider", max(1, self.first - more), min(self.of, self.last + more)))
            found.append(("All steps", 1, self.of))
        return found


@dataclass(frozen=True)
class Shown:
    """A lane within the window. ``parts``: the seconds of each part, summed over the steps in the window."""

    name: str
    drawing: Markup
    steps: int
    training: int
    seconds: float
    parts: tuple[float, ...]
    left_out: int


def window(given: Mapping[str, str], of: int) -> Window:
    """The window that a query asks for. If the query is wrong, all steps, with a ``problem``."""
    first, wrong_first = _number(given.get("from", ""), 1)
    last, wrong_last = _number(given.get("to", ""), of)
    wrong = wrong_first or wrong_last
    if wrong:
        return Window(1, of, of, f"{wrong!r} is no number of a step. There are 1 to {of:,}.")
    if first > last or first > of or last < 1:
        return Window(1, of, of, f"There are no steps from {first:,} to {last:,}. There are 1 to {of:,}.")
    return Window(max(1, first), min(of, last), of)


def _number(text: str, otherwise: int) -> tuple[int, str]:
    text = text.strip()
    if not text:
        return otherwise, ""
    if len(text) > _LONGEST_NUMBER or not (text.isascii() and text.isdecimal()):
        return otherwise, text[:_LONGEST_NUMBER]
    return int(text), ""


def _page(site: Site, request: Request) -> Response:
    job, found = _found(site, request)
    address = f"/ui/jobs/{quote(job['TrainingJobName'])}/trace"
    content = {} if found is None else _content(found, request.query_params)
    ended = job["TrainingJobStatus"] in TERMINAL
    return site.page(request, "trace.html", job=job, address=address, ended=ended, steps=found, **content)


def _found(site: Site, request: Request) -> tuple[Mapping[str, Any], Steps | None]:
    job = site.backend.jobs.describe(request.path_params["name"])
    return job, read(output_document(site.backend.objects, job, "steps.json"))


def _content(found: Steps, given: Mapping[str, str]) -> dict[str, Any]:
    lanes = found.lanes[:_MOST_LANES]
    looked = window(given, max(len(lane.steps) for lane in lanes))
    chosen = [(lane, lane.steps[looked.first - 1 : looked.last]) for lane in lanes]
    every = [step for _, steps in chosen for step in steps]
    begin, end = min(step.begin_s for step in every), max(step.end_s for step in every)
    first_lane, first_steps = next((lane, steps) for lane, steps in chosen if steps)
    longest = sorted(first_steps, key=lambda step: -step.seconds)[:_LONGEST_LISTED]
    return {
        "window": looked,
        "ways": [(name, urlencode({"from": first, "to": last})) for name, first, last in looked.ways],
        "lanes": [_shown(lane, steps, begin, end, len(lanes)) for lane, steps in chosen if steps],
        "more_lanes": len(found.lanes) - len(lanes),
        "ticks": [begin + (end - begin) * place / (_TICKS - 1) for place in range(_TICKS)],
        "parts": PARTS,
        "longest": [(step, _around(step, looked.of)) for step in longest],
        "longest_of": first_lane.name,
    }


def _shown(lane: Lane, steps: Sequence[Step], begin: float, end: float, lanes: int) -> Shown:
    blocks = [Block(step.begin_s, step.end_s, step.parts, step.training) for step in steps]
    return Shown(
        lane.name,
        lane_svg(blocks, begin, end, lanes),
        len(steps),
        sum(step.training for step in steps),
        sum(step.seconds for step in steps),
        tuple(map(sum, zip(*(step.parts for step in steps), strict=True))),
        lane.left_out,
    )


def _around(step: Step, of: int) -> str:
    return urlencode({"from": max(1, step.number - _AROUND), "to": min(of, step.number + _AROUND)})


def _file(site: Site, request: Request) -> Response:
    job, found = _found(site, request)
    if found is None:
        return site.message(request, 404, "There is no trace of this job", "It has left no times of steps.")
    name = job["TrainingJobName"]
    told = phases.phases(job, site.backend.clock.now())
    pieces = _together(chrome_trace(name, found, told))
    return StreamingResponse(pieces, headers=attachment(f"{name}.trace.json"), media_type="application/json")


def _together(lines: Iterator[str]) -> Iterator[str]:
    """The lines joined into larger pieces, because each piece is passed between threads."""
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) == _PIECES:
            yield "".join(held)
            held = []
    yield "".join(held)
