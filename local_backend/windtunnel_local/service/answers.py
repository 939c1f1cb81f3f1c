"""Jobs in the shape of AWS's answers: dicts with `datetime` for timestamps, and only members that apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel_local.service.ground.billed_time import billable_seconds, training_seconds
from windtunnel_local.service.ground.job import Job, JobSummary, Transition, WarmPool
from windtunnel_local.service.request.requests import DEFAULT_MAX_RUNTIME_S

_ECHOED = (
    "AlgorithmSpecification",
    "RoleArn",
    "ResourceConfig",
    "VpcConfig",
    "HyperParameters",
    "CheckpointConfig",
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "TensorBoardOutputConfig",
    "ExperimentConfig",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
    "Environment",
    "RetryStrategy",
    "InfraCheckConfig",
    "RemoteDebugConfig",
)
_FLAGS = (
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
)
OF_THE_REQUEST = (*_ECHOED, "InputDataConfig", "OutputDataConfig", "StoppingCondition", *_FLAGS)
"""The members of the request that DescribeTrainingJob returns."""
CHANNEL_DEFAULTS = {"CompressionType": "None", "RecordWrapperType": "None"}
OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
"""AWS returns these even if the request left them out; SDK v2's attach() reads KmsKeyId."""
_DESCRIBED_ONLY = frozenset(
    {"ProfilerRuleConfigurations", "InfraCheckConfig", "RemoteDebugConfig", "ProfilingStatus"}
)


def described(job: Job) -> dict[str, Any]:
    """A job in the shape of DescribeTrainingJobResponse."""
    life, request = job.lifecycle, job.current
    answer: dict[str, Any] = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "TrainingJobStatus": life.status,
        "SecondaryStatus": life.secondary,
        "StoppingCondition": {
            "MaxRuntimeInSeconds": DEFAULT_MAX_RUNTIME_S,
            **request.get("StoppingCondition", {}),
        },
        "CreationTime": life.created,
        "LastModifiedTime": life.modified,
        "SecondaryStatusTransitions": [_transition(transition) for transition in life.transitions],
        "ProfilingStatus": "Disabled",  # nothing here is profiled, whatever ProfilerConfig asks
        **{member: request[member] for member in _ECHOED if member in request},
        "InputDataConfig": [
            {**CHANNEL_DEFAULTS, **channel} for channel in request.get("InputDataConfig", ())
        ],
        "OutputDataConfig": {**OUTPUT_DEFAULTS, **request["OutputDataConfig"]},
        **{flag: bool(request.get(flag, False)) for flag in _FLAGS},
    }
    optional = {
        "ModelArtifacts": job.model_artifact and {"S3ModelArtifacts": job.model_artifact},
        "TrainingStartTime": life.training_start,
        "TrainingEndTime": life.training_end,
        "TrainingTimeInSeconds": training_seconds(life),
        "BillableTimeInSeconds": billable_seconds(life, job.spot),
        # Known before, while the upload runs; but AWS shows it only with the status Failed.
        "FailureReason": life.failure_reason if life.status == "Failed" else None,
        "FinalMetricDataList": [dict(metric) for metric in job.final_metrics] or None,
        "WarmPoolStatus": job.warm_pool and _warm_pool(job.warm_pool),
    }
    answer.update((member, value) for member, value in optional.items() if value is not None)
    return answer


def found(job: Job, tags: Mapping[str, str]) -> dict[str, Any]:
    """A job in the shape of Search's TrainingJob."""
    answer = {member: value for member, value in described(job).items() if member not in _DESCRIBED_ONLY}
    return {**answer, "Tags": tag_list(tags)}


def summary(job: JobSummary) -> dict[str, Any]:
    """A job in the shape of TrainingJobSummary."""
    answer: dict[str, Any] = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": job.created,
        "LastModifiedTime": job.modified,
        "TrainingJobStatus": job.status,
        "SecondaryStatus": job.secondary,
    }
    if job.training_end is not None:
        answer["TrainingEndTime"] = job.training_end
    if job.warm_pool_status is not None:
        answer["WarmPoolStatus"] = {"Status": job.warm_pool_status}
    return answer


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as the API sends them (a list of Key and Value), sorted by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def _transition(transition: Transition) -> dict[str, Any]:
    entry = {
        "Status": transition.status,
        "StartTime": transition.start,
        "StatusMessage": transition.message,
    }
    return entry if transition.end is None else {**entry, "EndTime": transition.end}


def _warm_pool(pool: WarmPool) -> dict[str, Any]:
    optional = {
        "ResourceRetainedBillableTimeInSeconds": pool.retained_billable_s,
        "ReusedByJob": pool.reused_by,
    }
    return {"Status": pool.status, **{name: value for name, value in optional.items() if value is not None}}
