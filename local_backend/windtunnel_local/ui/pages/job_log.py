"""The pages of a job's log: in pages of lines, searched, and as a file. They work without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.observed.logs import MAX_SCANNED
from windtunnel_local.ui.job.log_pages import ERRORS, Found, JobLog, Line, LogPage, phrase
from windtunnel_local.ui.job.log_position import hosts_of, read, written
from windtunnel_local.ui.job.wire import page_of_lines
from windtunnel_local.ui.site import Site
from windtunnel_local.ui.text import fitting, room_of

LINES = 500
MATCHES = 200
_BYTES = 100_000
_BESIDE = 130
"""The bytes of a line's time, position and HTML element."""
_SEARCHES = 20
"""The most calls of the service for one answer: they search 400,000 lines in about 2 s."""
_NO_ERROR = {
    "all": "No line of the log tells of an error.",
    "some": f"None of the first {_SEARCHES * MAX_SCANNED:,} lines tells of an error. To look on, search for Error.",
}
"""The message by how much of the log was searched, as the URL's field ``none`` has it."""


def routes(site: Site) -> list[Route]:
    """A page of lines, one whole line, and the whole log as a file."""
    job = "/ui/jobs/{name}"
    return [
        Route(f"{job}/log", partial(_log, site)),
        Route(f"{job}/log/line", partial(_line, site)),
        Route(f"{job}/log.txt", partial(_file, site)),
    ]


def _within(lines: Sequence[Line], room: int, *, newest: bool) -> list[Line]:
    """As many of the newest or oldest lines as take at most ``room`` bytes in a page; at least one."""
    kept = fitting(
        reversed(lines) if newest else lines, room, lambda line: room_of(line.text, most=None) + _BESIDE
    )
    return kept[::-1] if newest else kept


def _log(site: Site, request: Request) -> Response:
    name, given = request.path_params["name"], request.query_params
    site.backend.jobs.describe(name)
    reader, host = JobLog(site.backend.logs, name), given.get("host") or None
    as_json = given.get("format") == "json"
    streams = list(reader.streams(host))
    if given.get("error"):
        return _first_error(reader, name, host, as_json)
    if given.get("q"):
        found = _matches(reader, phrase(given["q"]), given.get("token") or None, host)
        page, token = LogPage(found.lines), found.token
    else:
        page, token = _asked_for(reader, given, streams), None
    if as_json:
        return JSONResponse({**page_of_lines(page), "token": token})
    return site.page(
        request,
        "job_log.html",
        name=name,
        page=page,
        begin=written(page.begin),
        end=written(page.end),
        host=host or "",
        hosts=hosts_of(reader.streams()),
        q=given.get("q", ""),
        at=given.get("at", ""),
        no_error=_NO_ERROR.get(given.get("none", ""), ""),
        token=token,
    )


def _asked_for(reader: JobLog, given: Any, streams: Sequence[str]) -> LogPage:
    """The page that the query asks for: before or after a position, around a line, or the last page."""
    if "at" in given:
        return _around(reader, given["at"], streams)
    if "after" in given:
        return cut(reader.after(read(given["after"]), LINES, streams), _BYTES, newest=False)
    before = read(given["before"]) if given.get("before") else None
    return cut(reader.before(before, LINES, streams), _BYTES, newest=True)


def _around(reader: JobLog, at: str, streams: Sequence[str]) -> LogPage:
    stream, sequence = _place(at)
    place = reader.place(stream, sequence, [*streams, *({stream} - set(streams))])
    before = cut(reader.before(place, LINES // 2, streams), _BYTES, newest=True)
    after = cut(reader.after(place, LINES // 2, streams), _BYTES, newest=False)
    return LogPage([*before.lines, *after.lines], before.begin, after.end, more=after.more)


def _place(at: str) -> tuple[str, int]:
    found = list(read(at).items())
    if len(found) != 1:
        raise ValidationFailed(f"{at[:100]!r} is no line of a log: it looks like algo-1-1760000000:1200.")
    return found[0]


def cut(page: LogPage, room: int, *, newest: bool) -> LogPage:
    """The page with as many of its newest or oldest lines as take at most ``room`` bytes."""
    lines = _within(page.lines, room, newest=newest)
    if len(lines) == len(page.lines):
        return page
    if newest:
        begin = {**page.begin, **_first_places(page.lines, lines)}
        return LogPage(lines, begin, page.end, more=True)
    end = dict(page.begin)
    for line in lines:
        end[line.stream] = line.sequence + 1
    return LogPage(lines, page.begin, end, more=True)


def _first_places(all_lines: Sequence[Line], kept: Sequence[Line]) -> dict[str, int]:
    """For each stream, the sequence number of its first kept line, or after its last line if none was kept."""
    places = {line.stream: line.sequence + 1 for line in all_lines}
    return {**places, **{line.stream: line.sequence for line in reversed(kept)}}


def _matches(reader: JobLog, pattern: str, token: str | None, host: str | None) -> Found:
    """As many matches as fit in a page, and the token to search on after them."""
    found = _search(reader, pattern, MATCHES, token, host)
    fit = len(_within(found.lines, _BYTES, newest=False))
    return found if fit == len(found.lines) else _search(reader, pattern, fit, token, host)


def _search(reader: JobLog, pattern: str, most: int, token: str | None, host: str | None) -> Found:
    """Up to ``most`` matches, found by at most `_SEARCHES` calls of the service."""
    lines: list[Line] = []
    for _ in range(_SEARCHES):
        found = reader.search(pattern, most - len(lines), token, host)
        lines += found.lines
        token = found.token
        if token is None or len(lines) >= most:
            break
    return Found(lines, token)


def _first_error(reader: JobLog, name: str, host: str | None, as_json: bool) -> Response:
    found = _search(reader, ERRORS, 1, None, host)
    at = written({found.lines[0].stream: found.lines[0].sequence}) if found.lines else ""
    none = "all" if found.token is None else "some"
    if as_json:
        return JSONResponse({"at": at, "said": _NO_ERROR[none]})
    host_too = f"&host={quote(host)}" if host else ""
    place = f"at={quote(at)}{host_too}#at" if at else f"none={none}{host_too}"
    return RedirectResponse(f"/ui/jobs/{quote(name)}/log?{place}", 303)


def _line(site: Site, request: Request) -> Response:
    """One whole line as it was printed, as a plain-text download."""
    name = request.path_params["name"]
    site.backend.jobs.describe(name)
    stream, sequence = _place(request.query_params.get("at", ""))
    text = JobLog(site.backend.logs, name).whole(stream, sequence)
    if text is None:
        raise HTTPException(404)
    return PlainTextResponse(text, headers=attachment(f"{name}-{stream}-{sequence}.txt"))


def _file(site: Site, request: Request) -> Response:
    name, host = request.path_params["name"], request.query_params.get("host") or None
    site.backend.jobs.describe(name)
    reader = JobLog(site.backend.logs, name)
    streams = list(reader.streams(host))

    def text() -> Iterator[str]:
        for stream in streams:
            if len(streams) > 1:
                yield f"--- {stream}\n"
            yield from reader.all_of(stream)

    return StreamingResponse(text(), media_type="text/plain", headers=attachment(f"{name}.log"))


def attachment(name: str) -> dict[str, str]:
    """Headers that make the browser download the answer, not open it."""
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
