"""boto3 against managed spot training, the queue, RetryStrategy and UpdateTrainingJob, over the wire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.contract.conftest import Backend, refused, wait_for
from tests.fakes.wire import create_request

LIMITS = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}


def test_a_spot_job_as_boto3_sees_it(sagemaker: Any, backend: Backend) -> None:
    """Interrupted in its transitions, less billed than trained, a log stream an attempt."""
    sagemaker.create_training_job(
        **create_request(
            EnableManagedSpotTraining=True,
            StoppingCondition=LIMITS,
            RetryStrategy={"MaximumRetryAttempts": 30},
            Environment={"WAIT": "1", "WINDTUNNEL_SPOT_INTERRUPTIONS": "1", "WINDTUNNEL_SPOT_SEED": "1"},
        )
    )

    def statuses() -> list[str]:
        job = sagemaker.describe_training_job(TrainingJobName="job")
        return [transition["Status"] for transition in job["SecondaryStatusTransitions"]]

    wait_for(lambda: statuses()[-1] == "Training")
    backend.clock.offset += timedelta(seconds=100)
    wait_for(lambda: statuses()[-4:] == ["Interrupted", "Starting", "Downloading", "Training"])
    sagemaker.stop_training_job(TrainingJobName="job")
    job = backend.ended()
    assert job["EnableManagedSpotTraining"] is True
    assert job["StoppingCondition"] == LIMITS
    assert job["RetryStrategy"] == {"MaximumRetryAttempts": 30}
    assert 30 <= job["BillableTimeInSeconds"] < 35 < 100 <= job["TrainingTimeInSeconds"]
    found = backend.client("logs").describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix="job/"
    )
    assert len(found["logStreams"]) == 2


def test_updates(sagemaker: Any, backend: Backend) -> None:
    """The ARN comes back; a job without a warm pool has no retention to change."""
    sagemaker.create_training_job(**create_request(Environment={"WAIT": "1"}))
    profiler = {"S3OutputPath": "s3://out/profiler"}
    answer = sagemaker.update_training_job(TrainingJobName="job", ProfilerConfig=profiler)
    job = sagemaker.describe_training_job(TrainingJobName="job")
    assert answer["TrainingJobArn"] == job["TrainingJobArn"]
    assert job["ProfilerConfig"] == profiler
    keep = {"KeepAlivePeriodInSeconds": 60}
    code, message = refused(sagemaker.update_training_job, TrainingJobName="job", ResourceConfig=keep)
    assert (code, "created without KeepAlivePeriodInSeconds" in message) == ("ValidationException", True)
    code, message = refused(sagemaker.update_training_job, TrainingJobName="none", ResourceConfig=keep)
    assert (code, message) == ("ValidationException", "Requested resource not found.")
    sagemaker.stop_training_job(TrainingJobName="job")
    backend.ended()
