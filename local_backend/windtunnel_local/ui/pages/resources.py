"""The pages that list endpoints and transform jobs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windtunnel_local.service.ground.errors import ResourceNotFound
from windtunnel_local.service.ground.hosting import Kind, ResourceQuery
from windtunnel_local.ui.pages.jobs import first_line
from windtunnel_local.ui.site import Site, followed

_ROWS = 50


@dataclass(frozen=True)
class View:
    """One list. ``answer``: the answer's member with the items; ``prefix``: how members of the items begin."""

    path: str
    heading: str
    empty: str
    kind: Kind
    answer: str
    prefix: str


@dataclass(frozen=True)
class Row:
    """An endpoint or a transform job."""

    name: str
    status: str
    created: datetime
    changed: datetime | None
    reason: str


VIEWS = (
    View(
        "/ui/endpoints",
        "Endpoints",
        "There is no endpoint. A trained model becomes one with job.deploy(), and answers there.",
        "endpoint",
        "Endpoints",
        "Endpoint",
    ),
    View(
        "/ui/transform-jobs",
        "Transform jobs",
        "No transform job has run here. Transformer(...).transform() sends whole files through a model.",
        "transform-job",
        "TransformJobSummaries",
        "TransformJob",
    ),
)


def routes(site: Site) -> list[Route]:
    return [
        route
        for view in VIEWS
        for route in followed(view.path, partial(_page, site, view), partial(_live, site, view))
    ]


def _page(site: Site, view: View, request: Request) -> Response:
    return site.page(request, "resources.html", **_content(site, view, request))


def _live(site: Site, view: View, request: Request) -> Response:
    def state() -> Hashable:
        return tuple((row.name, row.status, row.changed) for row in _content(site, view, request)["rows"])

    def parts() -> Mapping[str, str]:
        return {"rows": site.part(request, "resources_rows.html", **_content(site, view, request))}

    state()
    return site.live(state, parts)


def _content(site: Site, view: View, request: Request) -> dict[str, Any]:
    given = request.query_params
    text, token = given.get("q", "").strip(), given.get("token")
    query = ResourceQuery(kind=view.kind, name_contains=text or None, limit=_ROWS, token=token)
    service = site.backend.endpoints if view.kind == "endpoint" else site.backend.transforms
    found = service.list(query)
    following = found.get("NextToken")
    return {
        "view": view,
        "q": text,
        "query": urlencode({name: given[name] for name in ("q", "token") if given.get(name)}),
        "rows": [_row(view, _with_reason(site, item)) for item in found[view.answer]],
        "next": urlencode({"q": text, "token": following}) if following else None,
    }


def _with_reason(site: Site, item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item with its failure reason, which for a failed endpoint only its description has."""
    if item.get("EndpointStatus") != "Failed":
        return item
    try:
        return site.backend.endpoints.describe_endpoint(item["EndpointName"])
    except ResourceNotFound:  # deleted meanwhile
        return item


def _row(view: View, item: Mapping[str, Any]) -> Row:
    return Row(
        item[f"{view.prefix}Name"],
        item[f"{view.prefix}Status"],
        item["CreationTime"],
        item.get("LastModifiedTime"),
        first_line(item.get("FailureReason", "")),
    )
