"""Windtunnel's own JSON documents of a job, read from its output in S3."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import join_s3, parse_s3

_MOST_BYTES = 16 << 20
"""More than the largest document that the service writes: steps.json with 100,000 steps."""
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Ended:
    """An ended job, with the methods that a report calls."""

    described: Mapping[str, Any]
    counted: Mapping[str, Any] | None

    def describe(self) -> Mapping[str, Any]:
        """The job's answer of DescribeTrainingJob."""
        return self.described

    def counters(self) -> Mapping[str, Any] | None:
        """The job's counters.json; None if there is none."""
        return self.counted


def output_document(objects: ObjectStore, described: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """A document of a described job (``counters.json``, ``usage.json``), with long texts cut.

    None if it does not exist (yet), is not a JSON object, or is larger than `_MOST_BYTES`.
    """
    uri = join_s3(
        described["OutputDataConfig"]["S3OutputPath"], described["TrainingJobName"], "windtunnel", name
    )
    try:
        with objects.path(*parse_s3(uri)).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        found = None if len(content) > _MOST_BYTES else json.loads(content, object_pairs_hook=_cut)
    except (ObjectError, OSError, ValueError, RecursionError):
        # The job's own code may have stored anything under that name.
        return None
    return found if isinstance(found, dict) else None


def _cut(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {
        name[:_LONGEST_TEXT]: value[:_LONGEST_TEXT] if isinstance(value, str) else value
        for name, value in members
    }
