"""What a job's cores do now, for whoever watches: ``windtunnel/usage.json`` beside the job's other output.

The simulator publishes a small file a core in the job's folder. They become one object in S3,
since that is what any client of the job can read already; it is there while the job trains.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from windtunnel_local.service.data import outputs
from windtunnel_local.service.data.untrusted_files import open_regular
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import Clock, ObjectStore
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.request import requests

SCHEMA = "windtunnel.usage/1"
INTERVAL_S = 1.0
_LARGEST_FILE = 256 * 1024
MOST_CORES = 256
"""Of a host: more than any instance has."""
_FILES = "cores*/core-*.json"
_FOR_TOOLS = "latencies"
"""Single executions: for `neuron-monitor` in the container, and too many to store each second."""

_log = logging.getLogger(__name__)


class LiveUsage:
    """Refreshes one job's object. Nothing here is raised: nobody's training depends on it."""

    def __init__(self, objects: ObjectStore, clock: Clock, config: ServiceConfig) -> None:
        """Nothing is read yet."""
        self._objects = objects
        self._clock = clock
        self._config = config
        self._due = float("-inf")
        self._stored: list[tuple[str, int]] = []

    def publish(self, job: Job) -> None:
        """Store what is new; reads files at most once a second, and writes only what has changed."""
        if self._clock.monotonic() < self._due:
            return
        self._due = self._clock.monotonic() + INTERVAL_S
        try:
            present = [
                (str(path), path.stat().st_mtime_ns) for host in job.hosts for path in self._files(job, host)
            ]
            if present == self._stored:
                return
            document = {
                "schema": SCHEMA,
                "job": job.name,
                "time": self._clock.now().timestamp(),
                "instance_type": requests.instance(job).name,
                "hosts": [{"host": host, "cores": list(self._cores(job, host))} for host in job.hosts],
            }
            self._objects.put(*self._place(job), BytesIO(json.dumps(document).encode()))
            self._stored = present
        except (ObjectError, OSError, RecursionError) as error:  # it could be read, but not nested in ours
            _log.warning("Job %s: its usage is not published now: %s", job.name, error)

    def forget(self, job: Job) -> None:
        """Remove the object: nothing runs any more. Idempotent."""
        with suppress(ObjectError, OSError):
            self._objects.delete(*self._place(job))

    def _place(self, job: Job) -> tuple[str, str]:
        return parse_s3(outputs.output_uri(job, "windtunnel", "usage.json"))

    def _files(self, job: Job, host: str) -> list[Path]:
        folders = self._config.paths(job.slot)
        found = folders.counters(host).glob(_FILES)
        return sorted(islice((path for path in found if path.is_file() and folders.holds(path)), MOST_CORES))

    def _cores(self, job: Job, host: str) -> Iterator[dict[str, Any]]:
        """The documents of a host's processes. A script may have written anything there."""
        for path in self._files(job, host):
            try:
                with open_regular(path, self._config.paths(job.slot)) as file:
                    document = json.loads(file.read(_LARGEST_FILE))
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(document, dict) and document.get("schema") == SCHEMA:
                yield {key: value for key, value in document.items() if key != _FOR_TOOLS}
