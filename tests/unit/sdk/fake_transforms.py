"""A `TransformService` in memory: a real class with SageMaker's visible behaviour. botocore checks each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.unit.sdk.fake_endpoints import validated
from windtunnel.errors import ServiceCallFailed
from windtunnel.session.training_service import LogLine


class FakeTransforms:
    """Each look at a job moves it one step along ``script``."""

    def __init__(self, *script: str, failure: str | None = None) -> None:
        self.script = script or ("InProgress", "InProgress", "Completed")
        self.failure = failure
        self.jobs: dict[str, dict[str, Any]] = {}
        self.looks = 0
        self.printed: dict[str, list[str]] = {}

    def create(self, request: Mapping[str, Any]) -> None:
        """Record it."""
        self.jobs[request["TransformJobName"]] = validated("CreateTransformJob", request)

    def describe(self, name: str) -> dict[str, Any]:
        """The next step of the script."""
        if name not in self.jobs:
            said = f"Could not find requested job with name: {name}"
            raise ServiceCallFailed("DescribeTransformJob", "ValidationException", said)
        status = self.script[min(self.looks, len(self.script) - 1)]
        self.looks += 1
        found = {**self.jobs[name], "TransformJobStatus": status}
        return {**found, "FailureReason": self.failure} if status == "Failed" else found

    def in_progress(self) -> list[str]:
        """All, or none."""
        return [*self.jobs] if self.script[min(self.looks, len(self.script) - 1)] == "InProgress" else []

    def stop(self, name: str) -> None:
        """From now on it is Stopped."""
        self.describe(name)
        self.script = ("Stopped",)

    def log_streams(self, job: str) -> list[str]:
        """Streams that have lines."""
        return sorted(stream for stream in self.printed if stream.startswith(f"{job}/"))

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """All lines behind the token."""
        lines = self.printed[stream][int(token or 0) :]
        return [LogLine(0, line) for line in lines], str(int(token or 0) + len(lines))
