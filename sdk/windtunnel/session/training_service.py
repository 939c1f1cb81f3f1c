"""The port to AWS, or to the local server, which answers the same calls.

Everything the SDK asks of SageMaker, CloudWatch Logs, S3, STS and IAM is one of these calls.
`boto3_training` makes them with boto3, against AWS or the local backend; tests use a small real
class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Protocol

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
METRIC_NAMESPACE = "/aws/sagemaker/TrainingJobs"
LOCAL_ACCOUNT = "000000000000"
"""The account that the local server plays; no one has it on AWS."""
TERMINAL = frozenset({"Completed", "Failed", "Stopped"})
"""Statuses of a job that has ended."""
STATUSES = ("InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting")
"""All that a job can have, in the order of AWS's model."""


@dataclass(frozen=True)
class LogLine:
    """One line of a job's log. ``timestamp_ms``: Unix milliseconds, UTC."""

    timestamp_ms: int
    text: str


class TrainingService(Protocol):
    """What the SDK needs. All calls block; a refused one raises `ServiceCallFailed`."""

    def create_job(self, request: Mapping[str, Any]) -> None:
        """CreateTrainingJob."""

    def describe_job(self, name: str) -> dict[str, Any]:
        """DescribeTrainingJob; raises `JobNotFound`."""

    def stop_job(self, name: str) -> None:
        """StopTrainingJob: asks, does not wait. A job that has ended is refused."""

    def delete_job(self, name: str) -> None:
        """DeleteTrainingJob: its record, tags, metrics; what it stored in S3 stays. One that runs is refused."""

    def list_jobs(self, limit: int, status: str | None = None) -> list[dict[str, Any]]:
        """ListTrainingJobs: the newest ``limit`` summaries, newest first, of all jobs or those of one status."""

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """ListTags."""

    def log_streams(self, job: str) -> list[str]:
        """Names of the job's log streams, one a host; empty while there are none."""

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start) and the token that continues behind them."""

    def metric_statistics(
        self, job: str, metric: str, start: datetime, end: datetime, period_s: int
    ) -> list[dict[str, Any]]:
        """GetMetricStatistics: Timestamp, Average and SampleCount of each period that has values, by time."""

    def put_file(self, bucket: str, key: str, data: IO[bytes], kms_key_id: str | None, encrypt: bool) -> None:
        """Store the file, from its current position to its end."""

    def get_object(self, bucket: str, key: str, out: IO[bytes]) -> bool:
        """Stream an object to ``out``; False when there is none."""

    def list_objects(self, bucket: str, prefix: str) -> list[str]:
        """All keys with the prefix, in order."""

    def ensure_bucket(self, bucket: str) -> None:
        """Create the bucket if it does not exist. Idempotent."""

    def account_id(self) -> str:
        """The caller's account."""

    def role_arn(self, name: str) -> str:
        """The ARN of an IAM role of this account."""
