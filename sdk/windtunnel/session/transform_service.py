"""The port of transform jobs: what the SDK asks of SageMaker, and of CloudWatch for their logs.

`boto3_transforms` makes the calls, against AWS or the local backend; tests use a small real class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from windtunnel.session.training_service import LogLine

TRANSFORM_LOG_GROUP = "/aws/sagemaker/TransformJobs"


class TransformService(Protocol):
    """What the SDK needs. All calls block; a refused one raises `ServiceCallFailed`."""

    def create(self, request: Mapping[str, Any]) -> None:
        """CreateTransformJob: asks, does not wait."""

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeTransformJob."""

    def stop(self, name: str) -> None:
        """StopTransformJob: asks, does not wait."""

    def log_streams(self, job: str) -> list[str]:
        """Names of the job's log streams, two an instance; empty while there are none."""

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start) and the token that continues behind them."""
