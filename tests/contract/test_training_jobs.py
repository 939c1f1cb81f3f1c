"""boto3's SageMaker and Logs clients, unmodified, against the real service."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest

from tests.contract.conftest import Backend, refused, wait_for
from tests.fakes.wire import create_request
from windtunnel_local.service.ground.containers import LogBatch, LogLine

GROUP = "/aws/sagemaker/TrainingJobs"


@pytest.fixture
def backend(cleared_backend: Backend) -> Backend:
    """One server will do."""
    return cleared_backend


def test_a_job_runs_and_is_described_as_aws_describes_it(sagemaker: Any, backend: Backend) -> None:
    """Create, wait with botocore's waiter, describe, fetch the model. A VPC, as companies name, is kept."""
    vpc = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
    given = create_request(Tags=[{"Key": "team", "Value": "a"}], VpcConfig=vpc)
    arn = sagemaker.create_training_job(**given)["TrainingJobArn"]
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"
    waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName="job", WaiterConfig={"Delay": 0, "MaxAttempts": 1000})
    job = sagemaker.describe_training_job(TrainingJobName="job")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Completed", "Completed")
    assert job["ResourceConfig"] == create_request()["ResourceConfig"]
    assert job["VpcConfig"] == vpc
    assert job["CreationTime"] <= job["TrainingStartTime"] <= job["TrainingEndTime"]
    assert [t["Status"] for t in job["SecondaryStatusTransitions"]][-1] == "Completed"
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == "s3://out/models/job/output/model.tar.gz"
    stored = backend.client("s3").get_object(Bucket="out", Key="models/job/output/model.tar.gz")
    assert stored["Body"].read(2) == b"\x1f\x8b"
    stored["Body"].close()


def test_what_a_request_left_out_is_described_as_it_was_taken(sagemaker: Any, backend: Backend) -> None:
    """As on AWS: no channel is an empty list, compression and wrapping have their defaults' names."""
    job = backend.run()
    assert job["InputDataConfig"] == []
    assert job["OutputDataConfig"]["CompressionType"] == "GZIP"
    flags = ("EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining")
    assert [job[flag] for flag in flags] == [False, False, False]
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://out/models/"}}
    channel = {"ChannelName": "train", "DataSource": source}
    described = {**channel, "CompressionType": "None", "RecordWrapperType": "None"}
    assert backend.run("two", InputDataConfig=[channel])["InputDataConfig"] == [described]


def test_tags_of_awss_own_prefix_are_refused(sagemaker: Any, backend: Backend) -> None:
    """In a request and afterwards, in any case of letters; AWS alone sets such."""
    tags = [{"Key": "AWS:mine", "Value": "v"}]
    code, words = refused(sagemaker.create_training_job, **create_request(Tags=tags))
    assert code == "ValidationException" and "AWS:mine" in words
    arn = sagemaker.create_training_job(**create_request())["TrainingJobArn"]
    tags = [{"Key": "aws:mine", "Value": "v"}]
    assert refused(sagemaker.add_tags, ResourceArn=arn, Tags=tags)[0] == "ValidationException"
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == []
    backend.ended()


def test_a_job_can_be_stopped_and_deleted(sagemaker: Any, backend: Backend) -> None:
    """Stop reaches the container; a running job cannot be deleted, an ended one can."""
    sagemaker.create_training_job(**create_request(Environment={"WAIT": "1"}))
    wait_for(lambda: sagemaker.describe_training_job(TrainingJobName="job")["SecondaryStatus"] == "Training")
    assert refused(sagemaker.delete_training_job, TrainingJobName="job")[0] == "ResourceInUse"
    sagemaker.stop_training_job(TrainingJobName="job")
    assert backend.ended()["TrainingJobStatus"] == "Stopped"
    assert "status Stopped" in refused(sagemaker.stop_training_job, TrainingJobName="job")[1]
    sagemaker.delete_training_job(TrainingJobName="job")
    assert refused(sagemaker.describe_training_job, TrainingJobName="job") == (
        "ValidationException",
        "Requested resource not found.",
    )


def test_what_is_taken_missing_or_not_served_is_said(sagemaker: Any, backend: Backend) -> None:
    """Each with AWS's code, and a message that names it."""
    sagemaker.create_training_job(**create_request())
    with pytest.raises(sagemaker.exceptions.ResourceInUse) as taken:
        sagemaker.create_training_job(**create_request())
    # The error's own member, which clients of typed languages read alone.
    assert "must be unique" in taken.value.response["Message"]
    assert refused(sagemaker.stop_training_job, TrainingJobName="nope")[1] == "Requested resource not found."
    code, message = refused(sagemaker.create_hyper_parameter_tuning_job, **tuning())
    assert code == "UnsupportedOperation"
    assert "sagemaker:CreateHyperParameterTuningJob" in message
    code, message = refused(sagemaker.create_training_job, **create_request("x" * 5000))
    assert code == "ValidationException"
    assert "less than or equal to 63" in message
    backend.ended()  # which does not free its name
    assert refused(sagemaker.create_training_job, **create_request())[0] == "ResourceInUse"


def tuning() -> dict[str, Any]:
    limits = {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1}
    return {
        "HyperParameterTuningJobName": "t",
        "HyperParameterTuningJobConfig": {"Strategy": "Random", "ResourceLimits": limits},
    }


def test_logs_are_read_as_the_sdks_read_them(sagemaker: Any, backend: Backend) -> None:
    """Streams by prefix, events from the head, a token that is stable at the end, a filter."""
    logs = backend.client("logs")
    backend.run(Environment={"LINES": "25"})
    streams = logs.describe_log_streams(
        logGroupName=GROUP, logStreamNamePrefix="job/", orderBy="LogStreamName"
    )
    (stream,) = streams["logStreams"]
    assert stream["logStreamName"].startswith("job/algo-1-")
    lines: list[str] = []
    token: str | None = None
    while True:
        more = {"nextToken": token} if token else {}
        page = logs.get_log_events(
            logGroupName=GROUP, logStreamName=stream["logStreamName"], startFromHead=True, limit=10, **more
        )
        lines += [event["message"] for event in page["events"]]
        if page["nextForwardToken"] == token:
            break
        token = page["nextForwardToken"]
    wanted = [f"line {number}" for number in range(25)]
    assert [line for line in lines if line.startswith("line ")] == wanted
    found = logs.filter_log_events(logGroupName=GROUP, filterPattern='"line 24"')["events"]
    assert [event["message"] for event in found] == ["line 24"]


def test_an_empty_line_is_a_blank(backend: Backend, sagemaker: Any) -> None:
    """An event of CloudWatch's has a character at least; the line stays, and so do the places of the others."""
    backend.run(Environment={"LINES": "0"})
    stream = "job/algo-1-1"
    backend.application.store.open_log_stream("job", "algo-1", stream, 0)
    batch = LogBatch(tuple(LogLine(0, text) for text in ("a", "", "b")), "c")
    backend.application.store.append_log(stream, batch, 0)
    named = {"logGroupName": GROUP, "logStreamName": stream}
    logs = backend.client("logs")
    filtered = logs.filter_log_events(logGroupName=GROUP, logStreamNames=[stream])
    for found in (logs.get_log_events(**named, startFromHead=True), filtered):
        assert [event["message"] for event in found["events"]] == ["a", " ", "b"]
    for token in ("f/1", "f/" + "1" * 55, "b/" + "0" * 57):
        code, _ = refused(logs.get_log_events, **named, nextToken=token)
        assert code == "InvalidParameterException"


def test_the_latest_events_first_are_refused(backend: Backend, sagemaker: Any) -> None:
    """They would come in the other order than asked for."""
    backend.run()
    find = backend.client("logs").filter_log_events
    said = refused(find, logGroupName=GROUP, startFromHead=False)
    assert said[0] == "InvalidParameterException" and "startFromHead" in said[1]
    assert find(logGroupName=GROUP, startFromHead=True) == {
        **find(logGroupName=GROUP),
        "ResponseMetadata": ANY,
    }


def test_missing_logs_are_not_found(backend: Backend) -> None:
    """The SDKs wait for this very code."""
    logs = backend.client("logs")
    for group in ("/other", GROUP):
        code, _ = refused(logs.get_log_events, logGroupName=group, logStreamName="x")
        assert code == "ResourceNotFoundException"
    assert refused(logs.describe_log_streams)[0] == "InvalidParameterException"
    assert refused(logs.create_log_group, logGroupName="g")[0] == "UnsupportedOperation"
