"""The training jobs' side of SageMaker's API, free of HTTP.

Answers are dicts in the shape of AWS's responses, with `datetime` for timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from windtunnel_local.service import lifecycle
from windtunnel_local.service.billing import billable_seconds
from windtunnel_local.service.config import ServiceConfig
from windtunnel_local.service.errors import IllegalTransition, JobNotFound, ValidationFailed
from windtunnel_local.service.model import Job, JobQuery, Transition
from windtunnel_local.service.ports import Clock, ObjectStore, Runner, Store
from windtunnel_local.service.request import validation
from windtunnel_local.service.request.requests import DEFAULT_MAX_RUNTIME_S
from windtunnel_local.service.running.backend import Backend
from windtunnel_local.service.running.supervisor import Supervisor

TagList: TypeAlias = list[dict[str, str]]
"""Tags as the wire writes them: Key and Value."""

_ECHOED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "CheckpointConfig",
    "DebugHookConfig",
    "ExperimentConfig",
    "ProfilerConfig",
    "Environment",
    "RetryStrategy",
    "InfraCheckConfig",
)
_FLAGS = (
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
)


class TrainingJobService:
    """Create, describe, list, stop, delete and tag training jobs. Safe from several threads.

    No call waits for a job, except `delete`, which may wait for a clean-up of a second.
    """

    def __init__(
        self,
        store: Store,
        runner: Runner,
        objects: ObjectStore,
        clock: Clock,
        config: ServiceConfig,
        tick_s: float = 0.25,
    ) -> None:
        """Nothing runs until `resume` or `create`. ``tick_s``: how often waiting jobs look at the clock."""
        self._backend = Backend(store, runner, objects, clock, config, tick_s)
        self._supervisor = Supervisor(self._backend)

    # --- the server's life ---

    def resume(self) -> None:
        """Adopt the jobs that an earlier server left unfinished. Call once, before serving."""
        self._supervisor.resume()

    def busy(self) -> bool:
        """Whether any job runs."""
        return self._supervisor.busy()

    def shutdown(self) -> None:
        """Let go of all jobs within seconds; they run on and the next server adopts them. Idempotent."""
        self._supervisor.shutdown()

    # --- jobs ---

    def create(self, request: Mapping[str, Any]) -> str:
        """Accept a CreateTrainingJob request and start the job; returns its ARN.

        Raises:
            ValidationFailed: the request is not valid.
            JobExists: the name is taken.
        """
        validation.validate(request)
        name = request["TrainingJobName"]
        members = {member: value for member, value in request.items() if member != "Tags"}
        begun = lifecycle.begin(self._backend.clock.now())
        job = Job(name, self._backend.config.job_arn(name), members, begun)
        self._backend.store.insert_job(job)
        if request.get("Tags"):
            self._backend.store.set_tags(job.arn, {tag["Key"]: tag["Value"] for tag in request["Tags"]})
        self._supervisor.start(name)
        return job.arn

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeTrainingJob's answer; raises ``JobNotFound``."""
        return describe(self._backend.job(name))

    def list(self, query: JobQuery) -> dict[str, Any]:
        """ListTrainingJobs' answer: TrainingJobSummaries, and NextToken if there is more.

        Raises:
            ValidationFailed: the token is not valid for this query.
        """
        jobs, token = self._backend.store.list_jobs(query)
        answer: dict[str, Any] = {"TrainingJobSummaries": [_summary(job) for job in jobs]}
        return answer if token is None else {**answer, "NextToken": token}

    def stop(self, name: str) -> None:
        """Ask a job to stop; a job that is stopping already stays so.

        Raises:
            JobNotFound: no such job.
            ValidationFailed: it has ended.
        """
        try:
            self._supervisor.stop(name)
        except IllegalTransition:
            raise _rejected(self._backend.job(name)) from None

    def delete(self, name: str) -> None:
        """Forget a finished job with its tags and logs; what it stored in S3 stays.

        Raises:
            JobNotFound: no such job.
            ValidationFailed: it has not ended.
        """
        job = self._backend.job(name)
        if not job.lifecycle.finished:
            raise _rejected(job)
        self._supervisor.await_clean_up(name)
        self._backend.store.delete_job(name)

    # --- tags ---

    def add_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> TagList:
        """Add or overwrite tags; returns all tags of the job.

        Raises:
            JobNotFound: no job has this ARN.
            ValidationFailed: too many tags, or a key twice.
        """
        self._require(arn)
        validation.tags(tags)
        added = {tag["Key"]: tag["Value"] for tag in tags}
        merged = {**self._backend.store.tags(arn), **added}
        validation.tags(_tag_list(merged))
        self._backend.store.set_tags(arn, added)
        return _tag_list(merged)

    def list_tags(self, arn: str) -> TagList:
        """The tags of a job by key; raises ``JobNotFound``."""
        self._require(arn)
        return _tag_list(self._backend.store.tags(arn))

    def delete_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error. Raises ``JobNotFound``."""
        self._require(arn)
        self._backend.store.remove_tags(arn, keys)

    def _require(self, arn: str) -> None:
        name = arn.rpartition("/")[2]
        job = self._backend.store.get_job(name)
        if job is None or job.arn != arn:
            raise JobNotFound


def describe(job: Job) -> dict[str, Any]:
    """A job in the shape of DescribeTrainingJobResponse; members that do not apply are left out."""
    life = job.lifecycle
    answer: dict[str, Any] = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "TrainingJobStatus": life.status,
        "SecondaryStatus": life.secondary,
        "StoppingCondition": {
            "MaxRuntimeInSeconds": DEFAULT_MAX_RUNTIME_S,
            **job.request.get("StoppingCondition", {}),
        },
        "CreationTime": life.created,
        "LastModifiedTime": life.modified,
        "SecondaryStatusTransitions": [_transition(transition) for transition in life.transitions],
        **{member: job.request[member] for member in _ECHOED if member in job.request},
        **{flag: bool(job.request.get(flag, False)) for flag in _FLAGS},
    }
    seconds = billable_seconds(life)
    optional = {
        "ModelArtifacts": job.model_artifact and {"S3ModelArtifacts": job.model_artifact},
        "TrainingStartTime": life.training_start,
        "TrainingEndTime": life.training_end,
        "TrainingTimeInSeconds": seconds,
        "BillableTimeInSeconds": seconds,
        # Known earlier, while the upload runs; AWS shows it with the status.
        "FailureReason": life.failure_reason if life.status == "Failed" else None,
        "FinalMetricDataList": [dict(metric) for metric in job.final_metrics] or None,
    }
    return {**answer, **{member: value for member, value in optional.items() if value is not None}}


def _summary(job: Job) -> dict[str, Any]:
    life = job.lifecycle
    summary = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": life.created,
        "LastModifiedTime": life.modified,
        "TrainingJobStatus": life.status,
        "SecondaryStatus": life.secondary,
    }
    return summary if life.training_end is None else {**summary, "TrainingEndTime": life.training_end}


def _transition(transition: Transition) -> dict[str, Any]:
    entry = {
        "Status": transition.status,
        "StartTime": transition.start,
        "StatusMessage": transition.message,
    }
    return entry if transition.end is None else {**entry, "EndTime": transition.end}


def _tag_list(tags: Mapping[str, str]) -> TagList:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def _rejected(job: Job) -> ValidationFailed:
    """AWS's words for an operation that a job's status does not allow."""
    return ValidationFailed(
        f"The request was rejected because the training job is in status {job.lifecycle.status}."
    )
