"""The live usage of a job's cores, published as ``windtunnel/usage.json`` beside the job's other output in S3.

The simulator writes a small file for each core into the job's folder. They become one S3 object,
because every client of the job can read S3 already. The object exists while the job trains.
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
"""Most files read of one host: more than any instance has cores."""
_FILES = "cores*/core-*.json"
_FOR_TOOLS = "latencies"
"""A member with the latency of each execution: only for `neuron-monitor`, and too large to store each second."""

_log = logging.getLogger(__name__)


class LiveUsage:
    """Updates the usage object of one job. Raises nothing: an error here must not end the training."""

    def __init__(self, objects: ObjectStore, clock: Clock, config: ServiceConfig) -> None:
        """Reads nothing yet."""
        self._objects = objects
        self._clock = clock
        self._config = config
        self._due = float("-inf")
        self._stored: list[tuple[str, int]] = []

    def publish(self, job: Job) -> None:
        """Update the object if a file has changed. Reads the files at most once a second."""
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
        except (ObjectError, OSError, RecursionError) as error:  # nested deeper than `json.dumps` can write
            _log.warning("Job %s: its usage is not published now: %s", job.name, error)

    def forget(self, job: Job) -> None:
        """Remove the object, because nothing runs any more. Idempotent."""
        with suppress(ObjectError, OSError):
            self._objects.delete(*self._place(job))

    def _place(self, job: Job) -> tuple[str, str]:
        return parse_s3(outputs.output_uri(job, "windtunnel", "usage.json"))

    def _files(self, job: Job, host: str) -> list[Path]:
        folders = self._config.paths(job.slot)
        found = folders.counters(host).glob(_FILES)
        return sorted(islice((path for path in found if path.is_file() and folders.holds(path)), MOST_CORES))

    def _cores(self, job: Job, host: str) -> Iterator[dict[str, Any]]:
        """The usage documents of a host's cores; files that are not valid are skipped, as a script may write them."""
        for path in self._files(job, host):
            try:
                with open_regular(path, self._config.paths(job.slot)) as file:
                    document = json.loads(file.read(_LARGEST_FILE))
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(document, dict) and document.get("schema") == SCHEMA:
                yield {key: value for key, value in document.items() if key != _FOR_TOOLS}
