"""The port of transform jobs: the SDK's calls to SageMaker, and to CloudWatch Logs for their logs.

`boto3_transforms` makes the calls, against AWS or the local backend; tests use a small real class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from windtunnel.session.training_service import LogLine

TRANSFORM_LOG_GROUP = "/aws/sagemaker/TransformJobs"


class TransformService(Protocol):
    """The calls that the SDK needs. All of them block; a refused call raises `ServiceCallFailed`."""

    def create(self, request: Mapping[str, Any]) -> None:
        """CreateTransformJob; does not wait for the job."""

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeTransformJob."""

    def in_progress(self) -> list[str]:
        """ListTransformJobs: the names of the jobs that are InProgress."""

    def stop(self, name: str) -> None:
        """StopTransformJob; does not wait for the end."""

    def log_streams(self, job: str) -> list[str]:
        """Names of the job's log streams, two for each instance; empty while there are none."""

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start), and the token for the next call."""
