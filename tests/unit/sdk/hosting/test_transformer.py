"""Batch transform: what is sent, what is refused before, and what a job's end says."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.fake_endpoints import FakeEndpoints
from tests.unit.sdk.fake_service import FakeService
from tests.unit.sdk.fake_transforms import FakeTransforms
from tests.unit.sdk.hosting.test_deploy import ROLE, code, model  # noqa: F401 - a fixture
from windtunnel import (
    ConfigurationError,
    InputError,
    Transformer,
    TransformJob,
    TransformJobFailed,
    UnsupportedArgument,
    WaitTimeout,
)
from windtunnel.session.aws import AwsSession
from windtunnel.session.local import LocalSession


def test_what_is_sent(
    code: Path,  # noqa: F811
    aws: AwsSession,
    endpoints: FakeEndpoints,
    transforms: FakeTransforms,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As SDK v2: a model, then a job with every argument at its member; then the status and the log."""
    transforms.printed["j/i-1"] = ["loaded"]
    transformer = model(aws, name="m").transformer(
        2,
        "ml.c5.xlarge",
        strategy="SingleRecord",
        assemble_with="Line",
        output_path="s3://out/p",
        output_kms_key="k",
        accept="text/csv",
        env={"A": "1"},
        max_concurrent_transforms=4,
        max_payload=2,
        tags={"team": "a"},
        volume_kms_key="v",
    )
    assert endpoints.calls == ["CreateModel"]
    transformer.transform(
        "s3://in/data",
        content_type="text/csv",
        compression_type="Gzip",
        split_type="Line",
        job_name="j",
        input_filter="$[1:]",
        output_filter="$[0]",
        join_source="Input",
        experiment_config={"ExperimentName": "e"},
        model_client_config={"InvocationsMaxRetries": 1},
    )
    assert transforms.jobs["j"] == {
        "TransformJobName": "j",
        "ModelName": "m",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://in/data"}},
            "ContentType": "text/csv",
            "CompressionType": "Gzip",
            "SplitType": "Line",
        },
        "TransformOutput": {
            "S3OutputPath": "s3://out/p",
            "Accept": "text/csv",
            "AssembleWith": "Line",
            "KmsKeyId": "k",
        },
        "TransformResources": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeKmsKeyId": "v"},
        "BatchStrategy": "SingleRecord",
        "MaxConcurrentTransforms": 4,
        "MaxPayloadInMB": 2,
        "Environment": {"A": "1"},
        "Tags": [{"Key": "team", "Value": "a"}],
        "DataProcessing": {"InputFilter": "$[1:]", "OutputFilter": "$[0]", "JoinSource": "Input"},
        "ExperimentConfig": {"ExperimentName": "e"},
        "ModelClientConfig": {"InvocationsMaxRetries": 1},
    }
    printed = capsys.readouterr().out
    assert "loaded\n" in printed
    assert "Transform job j: Completed after" in printed


def test_defaults(local: LocalSession, transforms: FakeTransforms, service: FakeService) -> None:
    """Nothing that was not asked for; a new output path for each job, in a bucket that is there."""
    transformer = Transformer("m-2026-01-31-12-00-00-123", 1, "ml.c5.xlarge", session=local)
    paths = []
    for name in (None, "second"):
        transformer.transform("s3://in/data", wait=False, job_name=name)
        paths.append(transformer.output_path)
    first, second = transforms.jobs.values()
    assert first["TransformJobName"].startswith("m-") and first["TransformJobName"].count("-") == 7
    assert paths == [one["TransformOutput"]["S3OutputPath"] for one in (first, second)]
    assert paths[1] == f"s3://{local.default_bucket()}/second"
    assert paths[0] == f"s3://{local.default_bucket()}/{first['TransformJobName']}"
    assert local.default_bucket() in service.buckets
    assert first.keys() == {
        "TransformJobName",
        "ModelName",
        "TransformInput",
        "TransformOutput",
        "TransformResources",
    }


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        ({"instance_type": "c5.xlarge"}, {}, "no SageMaker instance type"),
        ({"instance_count": 0}, {}, "instance_count=0"),
        ({"strategy": "All"}, {}, "'MultiRecord' or 'SingleRecord'"),
        ({"max_payload": 101}, {}, "0 to 100 MB"),
        ({"max_concurrent_transforms": 17}, {}, "102 MB, at most 100"),
        ({"env": dict.fromkeys("abcdefghijklmnopq", "")}, {}, "17 variables, at most 16"),
        ({}, {"data": "data"}, "no S3 URI"),
        ({}, {"split_type": "Lines"}, "'Line'"),
        ({}, {"job_name": "a_b"}, "a_b"),
    ],
)
def test_refused_before_anything_is_sent(
    local: LocalSession, transforms: FakeTransforms, made: dict[str, Any], given: dict[str, Any], words: str
) -> None:
    """With the argument, its value and the limit."""
    arguments: dict[str, Any] = {"instance_count": 1, "instance_type": "ml.c5.xlarge", **made}
    with pytest.raises((ConfigurationError, InputError), match=words):
        Transformer("m", **arguments, session=local).transform(**{"data": "s3://in/data", **given})
    assert transforms.jobs == {}


def test_what_is_not_here(local: LocalSession) -> None:
    """By name."""
    with pytest.raises(UnsupportedArgument, match="batch_data_capture_config"):
        Transformer("m", 1, "ml.c5.xlarge", session=local).transform("s3://in/d", batch_data_capture_config=1)
    with pytest.raises(ConfigurationError, match=r"transform\(\) starts one"):
        Transformer("m", 1, "ml.c5.xlarge", session=local).wait()


def test_a_job_that_fails_says_why(local: LocalSession, transforms: FakeTransforms) -> None:
    """Reason, last lines, and where what came through is."""
    transforms.script, transforms.failure = ("InProgress", "Failed"), "ClientError: See job logs"
    transforms.printed["j/i-1/data-log"] = ["in/a: ClientError: 400"]
    with pytest.raises(TransformJobFailed) as failed:
        Transformer("m", 1, "ml.c5.xlarge", output_path="s3://o/p", session=local).transform(
            "s3://in/d", job_name="j"
        )
    assert failed.value.reason == "ClientError: See job logs"
    assert failed.value.log_tail == ("in/a: ClientError: 400",)
    assert "s3://o/p" in failed.value.next_step


def test_waiting_ends(local: LocalSession, transforms: FakeTransforms) -> None:
    """When the time is over; and a stopped job is no error."""
    transforms.script = ("InProgress",)
    Transformer("m", 1, "ml.c5.xlarge", session=local).transform("s3://in/d", job_name="j", wait=False)
    with pytest.raises(WaitTimeout, match="j is still InProgress"):
        TransformJob("j", local).wait(timeout=0)
    again = Transformer.attach("j", local)
    assert (again.model_name, again.output_path) == ("m", TransformJob("j", local).output_path)
    again.stop_transform_job()
    out = io.StringIO()
    TransformJob("j", local).wait(logs=False, out=out)
    assert "Stopped" in out.getvalue()
