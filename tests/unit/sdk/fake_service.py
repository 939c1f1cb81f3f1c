"""A `TrainingService` in memory: a real class with SageMaker's visible behaviour, scripted job by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import IO, Any

from windtunnel.errors import JobNotFound, ServiceCallFailed
from windtunnel.session.training_service import LogLine

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=timezone.utc)

Step = tuple[str, str, str, Mapping[str, Sequence[str]]]
"""status, secondary status, its message, and the lines each host prints in it."""

COMPLETES: tuple[Step, ...] = (
    ("InProgress", "Starting", "Preparing the instances for training", {}),
    ("InProgress", "Training", "Training in progress", {"algo-1": ("one", "two")}),
    ("InProgress", "Training", "Training in progress", {"algo-1": ("three",)}),
    ("InProgress", "Uploading", "Uploading generated training model", {}),
    ("Completed", "Completed", "Training job completed", {"algo-1": ("four",)}),
)


class FakeService:
    """Each `describe_job` moves a job one step along its script; logs come in pages of two lines."""

    page = 2

    def __init__(self, *script: Step, failure: str | None = None) -> None:
        self.script = script or COMPLETES
        self.failure = failure
        self.requests: dict[str, dict[str, Any]] = {}
        self.at: dict[str, int] = {}
        self.printed: dict[str, list[str]] = {}
        self.transitions: dict[str, list[dict[str, Any]]] = {}
        self.objects: dict[tuple[str, str], bytes] = {}
        self.encrypted: dict[tuple[str, str], str | None] = {}
        self.buckets: set[str] = set()
        self.stopped: list[str] = []
        self.interrupt_reading = False
        self.values: dict[tuple[str, str], list[tuple[datetime, float]]] = {}

    def create_job(self, request: Mapping[str, Any]) -> None:
        """Record the request."""
        name = request["TrainingJobName"]
        if name in self.requests:
            raise ServiceCallFailed("CreateTrainingJob", "ResourceInUse", "Job name must be unique")
        self.requests[name] = dict(request)
        self.at[name] = -1
        self.transitions[name] = []

    def store(self, job: str, name: str, content: bytes) -> None:
        """Keep a file below the job's output, as the backend does."""
        bucket, _, prefix = self.requests[job]["OutputDataConfig"]["S3OutputPath"][5:].partition("/")
        self.objects[bucket, "/".join(part for part in (prefix.rstrip("/"), job, name) if part)] = content

    def describe_job(self, name: str) -> dict[str, Any]:
        """The next step of the script."""
        if name not in self.requests:
            raise JobNotFound(name, local=True)
        self.at[name] = min(self.at[name] + 1, len(self.script) - 1)
        status, secondary, message, lines = self.script[self.at[name]]
        if self.at[name] >= len(self.transitions[name]):
            self._enter(name, secondary, message)
            for host, printed in lines.items():
                self.printed.setdefault(f"{name}/{host}-1700000000", []).extend(printed)
        shown = [step for step in self.transitions[name] if step]
        description = {
            **self.requests[name],
            "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{name}",
            "TrainingJobStatus": status,
            "SecondaryStatus": secondary,
            "SecondaryStatusTransitions": [dict(step) for step in shown],
            "CreationTime": NOW,
            "LastModifiedTime": NOW + timedelta(seconds=self.at[name]),
            "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.25, "Timestamp": NOW}],
        }
        if status in ("Completed", "Failed", "Stopped"):
            ended = NOW + timedelta(seconds=self.at[name])
            description.update(TrainingTimeInSeconds=21, BillableTimeInSeconds=20, TrainingEndTime=ended)
        if status == "Completed":
            output = self.requests[name]["OutputDataConfig"]["S3OutputPath"].rstrip("/")
            description["ModelArtifacts"] = {"S3ModelArtifacts": f"{output}/{name}/output/model.tar.gz"}
        if status == "Failed":
            description["FailureReason"] = self.failure
        return description

    def _enter(self, name: str, secondary: str, message: str) -> None:
        """Add a transition, or change the message of the current one."""
        steps = self.transitions[name]
        when = NOW + timedelta(seconds=len(steps))
        step = {"Status": secondary, "StatusMessage": message, "StartTime": when}
        current = next((known for known in reversed(steps) if known), None)
        if current is not None and current["Status"] == secondary:
            current["StatusMessage"] = message
            steps.append({})
        else:
            steps.append(step)

    def stop_job(self, name: str) -> None:
        """Record the wish."""
        self.stopped.append(name)

    def delete_job(self, name: str) -> None:
        """Forget the job; one that has not ended is refused."""
        if self.script[self.at[name]][0] not in ("Completed", "Failed", "Stopped"):
            raise ServiceCallFailed("DeleteTrainingJob", "ResourceInUse", "The job has not ended")
        del self.requests[name]

    def metric_statistics(
        self, job: str, metric: str, start: datetime, end: datetime, period_s: int
    ) -> list[dict[str, Any]]:
        """The values of that time, in their periods."""
        values = [(at, value) for at, value in self.values.get((job, metric), ()) if start <= at < end]
        periods: dict[int, list[float]] = {}
        for at, value in values:
            periods.setdefault(int(at.timestamp()) // period_s * period_s, []).append(value)
        return [
            {
                "Timestamp": datetime.fromtimestamp(begin, timezone.utc),
                "Average": sum(found) / len(found),
                "SampleCount": float(len(found)),
            }
            for begin, found in sorted(periods.items())
        ]

    def list_jobs(self, limit: int, status: str | None = None) -> list[dict[str, Any]]:
        """Summaries of where the jobs are, newest first."""
        summaries: list[dict[str, Any]] = []
        for name in reversed(self.requests):
            found, secondary, *_ = self.script[max(self.at[name], 0)]
            summary = {"TrainingJobName": name, "TrainingJobStatus": found, "SecondaryStatus": secondary}
            summaries.append({**summary, "CreationTime": NOW, "TrainingEndTime": NOW})
        return [one for one in summaries if status in (None, one["TrainingJobStatus"])][:limit]

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """The tags of the request."""
        return list(self.requests[arn.rpartition("/")[2]].get("Tags", []))

    def log_streams(self, job: str) -> list[str]:
        """Streams that have lines."""
        return sorted(stream for stream in self.printed if stream.startswith(f"{job}/"))

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """At most `page` lines behind the token, which stays the same at the end."""
        if self.interrupt_reading:
            raise KeyboardInterrupt
        start = int(token or 0)
        lines = self.printed[stream][start : start + self.page]
        return [LogLine(start + i, line) for i, line in enumerate(lines)], str(start + len(lines))

    def put_file(self, bucket: str, key: str, data: IO[bytes], kms_key_id: str | None, encrypt: bool) -> None:
        """Keep the bytes; the bucket must exist."""
        if bucket not in self.buckets:
            raise ServiceCallFailed("PutObject", "NoSuchBucket", "The specified bucket does not exist")
        self.objects[bucket, key] = data.read()
        self.encrypted[bucket, key] = kms_key_id if encrypt else "no"

    def get_object(self, bucket: str, key: str, out: IO[bytes]) -> bool:
        """The bytes kept."""
        if (bucket, key) not in self.objects:
            return False
        out.write(self.objects[bucket, key])
        return True

    def list_objects(self, bucket: str, prefix: str) -> list[str]:
        """Keys with the prefix."""
        return sorted(key for place, key in self.objects if place == bucket and key.startswith(prefix))

    def ensure_bucket(self, bucket: str) -> None:
        """Create it."""
        self.buckets.add(bucket)

    def account_id(self) -> str:
        """An account."""
        return "123456789012"

    def role_arn(self, name: str) -> str:
        """A role's ARN."""
        return f"arn:aws:iam::123456789012:role/{name}"
