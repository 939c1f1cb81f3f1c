"""Models, endpoint configurations, endpoints and transform jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from windtunnel_local.service.ground.errors import ResourceExists, ResourceNotFound
from windtunnel_local.service.ground.hosting import Kind, Resource, ResourceQuery
from windtunnel_local.service.ground.unix_time import microseconds, moment
from windtunnel_local.store.database import Row, Table
from windtunnel_local.store.paging import PageToken, decode_token

_RESOURCE = "SELECT kind, name, arn, created_us, modified_us, request, status, record, tags FROM resources"


class ResourceTable(Table):
    """The resources' part of `service.ground.ports.Store`."""

    def insert_resource(self, resource: Resource) -> None:
        with self.database.transaction() as db:
            done = db.execute(
                "INSERT INTO resources (modified_us, status, record, tags, kind, name, arn, created_us, request)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    *_changing(resource),
                    resource.kind,
                    resource.name,
                    resource.arn,
                    microseconds(resource.created),
                    json.dumps(resource.request),
                ),
            )
            if done.rowcount == 0:
                raise ResourceExists(resource.kind, resource.arn)

    def get_resource(self, kind: Kind, name: str) -> Resource | None:
        rows = self.database.read(f"{_RESOURCE} WHERE kind = ? AND name = ?", (kind, name))
        return _resource(rows[0]) if rows else None

    def update_resource(self, resource: Resource) -> None:
        with self.database.transaction() as db:
            done = db.execute(
                "UPDATE resources SET modified_us = ?, status = ?, record = ?, tags = ? WHERE kind = ? AND name = ?",
                (*_changing(resource), resource.kind, resource.name),
            )
            if done.rowcount == 0:
                raise ResourceNotFound(resource.kind, resource.arn)

    def delete_resource(self, kind: Kind, name: str) -> bool:
        with self.database.transaction() as db:
            return db.execute("DELETE FROM resources WHERE kind = ? AND name = ?", (kind, name)).rowcount > 0

    def list_resources(self, query: ResourceQuery) -> tuple[Sequence[Resource], str | None]:
        rows = self.database.read(f"{_RESOURCE} WHERE kind = ?", (query.kind,))
        found = [resource for resource in map(_resource, rows) if _matches(resource, query)]
        is_descending = query.sort_order == "Descending"
        found.sort(key=lambda resource: (_value(resource, query), resource.name), reverse=is_descending)
        order = f"{query.kind} {query.sort_by} {query.sort_order}"
        if query.token is not None:
            last = decode_token(query.token, order, (str, int))
            behind = (last.value, last.name)
            found = [r for r in found if _is_behind((_value(r, query), r.name), behind, is_descending)]
        page = found[: query.limit]
        if len(found) == len(page):
            return page, None
        return page, PageToken(order, _value(page[-1], query), page[-1].name).encode()


def _is_behind(key: tuple[Any, str], last: tuple[Any, str], is_descending: bool) -> bool:
    if type(key[0]) is not type(last[0]):
        return False
    return key < last if is_descending else key > last


def _changing(resource: Resource) -> tuple[Any, ...]:
    return (
        microseconds(resource.modified),
        resource.status,
        json.dumps(resource.record),
        json.dumps(dict(resource.tags)),
    )


def _resource(row: Row) -> Resource:
    kind, name, arn, created_us, modified_us, request, status, record, tags = row
    return Resource(
        kind,
        name,
        arn,
        moment(created_us),
        moment(modified_us),
        json.loads(request),
        status,
        json.loads(record),
        json.loads(tags),
    )


def _matches(resource: Resource, query: ResourceQuery) -> bool:
    return (
        (query.name_contains or "").lower() in resource.name.lower()
        and query.status in (None, resource.status)
        and (query.created_after is None or resource.created > query.created_after)
        and (query.created_before is None or resource.created < query.created_before)
        and (query.modified_after is None or resource.modified > query.modified_after)
        and (query.modified_before is None or resource.modified < query.modified_before)
    )


def _value(resource: Resource, query: ResourceQuery) -> str | int:
    if query.sort_by == "Name":
        return resource.name
    return (resource.status or "") if query.sort_by == "Status" else microseconds(resource.created)
