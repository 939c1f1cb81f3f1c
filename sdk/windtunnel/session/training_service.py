"""The port of training jobs: the SDK's calls to SageMaker, CloudWatch, S3, STS and IAM.

`boto3_training` makes the calls with boto3, against AWS or the local backend, which answers the same calls;
tests use a small real class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Protocol

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
METRIC_NAMESPACE = "/aws/sagemaker/TrainingJobs"
LOCAL_ACCOUNT = "000000000000"
"""The account that the local server plays; on AWS it does not exist."""
TERMINAL = frozenset({"Completed", "Failed", "Stopped"})
"""Statuses of a job that has ended."""
EVERY_JOB = 2**31
"""A limit for `TrainingService.list_jobs` that cuts nothing off."""
STATUSES = ("InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting")
"""All statuses of a job, in the order of AWS's model."""


@dataclass(frozen=True)
class LogLine:
    """One line of a job's log. ``timestamp_ms``: Unix milliseconds, UTC."""

    timestamp_ms: int
    text: str


class TrainingService(Protocol):
    """The calls that the SDK needs. All of them block; a refused call raises `ServiceCallFailed`."""

    def create_job(self, request: Mapping[str, Any]) -> None:
        """CreateTrainingJob."""

    def describe_job(self, name: str) -> dict[str, Any]:
        """DescribeTrainingJob; raises `JobNotFound`."""

    def stop_job(self, name: str) -> None:
        """StopTrainingJob; does not wait for the end. It is refused for a job that has ended."""

    def delete_job(self, name: str) -> None:
        """DeleteTrainingJob: deletes record, tags and metrics, nothing in S3. It is refused for a running job."""

    def list_jobs(self, limit: int, status: str | None = None) -> list[dict[str, Any]]:
        """ListTrainingJobs: the newest ``limit`` summaries, newest first; only jobs of ``status`` if it is given."""

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """ListTags."""

    def log_streams(self, job: str) -> list[str]:
        """Names of the job's log streams, one for each host; empty while there are none."""

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start), and the token for the next call."""

    def metric_statistics(
        self, job: str, metric: str, start: datetime, end: datetime, period_s: int
    ) -> list[dict[str, Any]]:
        """GetMetricStatistics: Timestamp, Average and SampleCount of each period with values, sorted by time."""

    def put_file(self, bucket: str, key: str, data: IO[bytes], kms_key_id: str | None, encrypt: bool) -> None:
        """Store the file, from its current position to its end."""

    def get_object(self, bucket: str, key: str, out: IO[bytes]) -> bool:
        """Stream an object to ``out``; False if the object does not exist."""

    def list_objects(self, bucket: str, prefix: str) -> list[str]:
        """All keys with the prefix, in order."""

    def ensure_bucket(self, bucket: str) -> None:
        """Create the bucket if it does not exist. Idempotent."""

    def account_id(self) -> str:
        """The caller's account."""

    def role_arn(self, name: str) -> str:
        """The ARN of an IAM role of this account."""
