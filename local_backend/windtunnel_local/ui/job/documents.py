"""The files that a job has stored in S3, for its page, and the content of Windtunnel's documents among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from windtunnel.priceperf.errors import InvalidCounters
from windtunnel.priceperf.workload import usage
from windtunnel.priceperf.workload.counters import Counters, Diagnostic
from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import join_s3, parse_s3
from windtunnel_local.ui.job_outputs import output_document
from windtunnel_local.ui.text import fitting, room_of

MOST_ARTIFACTS = 200
_NAMES_BYTES = 20_000
"""The most bytes of the list of files in the page: one key may have 1,024."""


@dataclass(frozen=True)
class Artifact:
    """An object that the job has stored. ``path``: its key without the job's prefix."""

    path: str
    size: int
    modified: datetime


def stored_at(description: Mapping[str, Any]) -> tuple[str, str]:
    """The bucket, and the prefix (with a slash at its end), of all objects of the job's output."""
    output = description["OutputDataConfig"]["S3OutputPath"]
    return parse_s3(join_s3(output, description["TrainingJobName"], ""))


def artifacts(objects: ObjectStore, description: Mapping[str, Any]) -> tuple[list[Artifact], bool]:
    """The objects that the job has stored so far, by name, and whether there are more than listed."""
    bucket, prefix = stored_at(description)
    try:
        found = objects.list(bucket, prefix, limit=MOST_ARTIFACTS + 1)
    except ObjectError:
        return [], False
    files = (Artifact(one.key[len(prefix) :], one.size, one.modified) for one in found[:MOST_ARTIFACTS])
    listed = fitting(files, _NAMES_BYTES, lambda file: room_of(file.path) + len(quote(file.path)))
    return listed, len(found) > len(listed)


def counters(objects: ObjectStore, description: Mapping[str, Any]) -> Counters | str | None:
    """The job's counters.json; None if there is none yet; a text, which says why, if it cannot be read."""
    document = output_document(objects, description, "counters.json")
    if document is None:
        return None
    try:
        return Counters.read(document)
    except InvalidCounters as error:
        return str(error)


def found(counted: Counters | str | None, description: Mapping[str, Any]) -> tuple[Diagnostic, ...] | None:
    """The findings of a job with these counters, worst first; None if they are not known."""
    if not isinstance(counted, Counters):
        return None
    return counted.found(came_through=description["TrainingJobStatus"] in TERMINAL - {"Failed"})


def usages(objects: ObjectStore, description: Mapping[str, Any]) -> list[usage.CoreUsage]:
    """What the job's cores do now; empty if that is unknown, as the job does not train yet or any more."""
    document = output_document(objects, description, "usage.json")
    return [] if document is None else usage.read(document)


def stamp(objects: ObjectStore, description: Mapping[str, Any], name: str) -> str:
    """A text that changes whenever the document changes; empty if there is no document."""
    bucket, prefix = stored_at(description)
    found = objects.head(bucket, f"{prefix}windtunnel/{name}")
    return "" if found is None else f"{found.etag} {found.modified.timestamp()}"
