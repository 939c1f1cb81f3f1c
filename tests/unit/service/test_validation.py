"""What CreateTrainingJob refuses beyond the wire model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.service.samples import IMAGE, channel, request
from windtunnel_local.service.errors import ValidationFailed
from windtunnel_local.service.request.validation import validate


def algorithm(**members: Any) -> dict[str, Any]:
    return {"TrainingImage": IMAGE, "TrainingInputMode": "File", **members}


def resources(**members: Any) -> dict[str, Any]:
    return {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30, **members}


def test_a_request_of_the_sdk_passes() -> None:
    """All that SDK v2 sends for a PyTorch estimator, harmless members included."""
    validate(
        request(
            InputDataConfig=[channel("train", "s3://b/train"), channel("val", "file:///data/val")],
            CheckpointConfig={"S3Uri": "s3://b/checkpoints", "LocalPath": "/opt/ml/checkpoints/"},
            Environment={"WINDTUNNEL_LOCAL_CORES": "2"},
            DebugHookConfig={"S3OutputPath": "s3://b/", "CollectionConfigurations": []},
            ProfilerConfig={"DisableProfiler": True},
            ExperimentConfig={"ExperimentName": "e"},
            RemoteDebugConfig={"EnableRemoteDebug": False},
            EnableManagedSpotTraining=False,
            Tags=[{"Key": "team", "Value": "a"}],
        )
    )


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"TrainingJobName": "a_b"}, "trainingJobName"),
        ({"TrainingJobName": "a" * 64}, "trainingJobName"),
        ({"ResourceConfig": resources(InstanceType="ml.p4d.24xlarge")}, "ml.trn1.2xlarge, ml.trn1.32xlarge"),
        ({"ResourceConfig": resources(InstanceType="ml.trn2.48xlarge")}, "ml.trn1n.32xlarge"),
        ({"ResourceConfig": resources(InstanceCount=0)}, "InstanceCount must be at least 1"),
        ({"ResourceConfig": resources(KeepAlivePeriodInSeconds=60)}, "KeepAlivePeriodInSeconds"),
        ({"ResourceConfig": resources(InstanceGroups=[{"InstanceCount": 1}])}, "InstanceGroups"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400 + 1}}, "28 days"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90}}, "MaxWaitTime"),
        ({"HyperParameters": {str(i): "1" for i in range(101)}}, "at most 100"),
        ({"HyperParameters": {"k" * 257: "1"}}, "at most 256"),
        ({"HyperParameters": {"text": "v" * 3000}}, "'text' has 3000 characters, at most 2500"),
        ({"Environment": {str(i): "1" for i in range(101)}}, "at most 100"),
        ({"Environment": {"KEY": "v" * 513}}, "'KEY' may have 512"),
        ({"EnableManagedSpotTraining": True}, "EnableManagedSpotTraining is not supported: spot"),
        ({"VpcConfig": {"SecurityGroupIds": ["s"], "Subnets": ["n"]}}, "EnableNetworkIsolation rehearses"),
        ({"SomethingNew": {"A": {"B": 1}}}, "SomethingNew is not supported"),
        ({"DebugHookConfig": {"S3OutputPath": "s3://b", "HookParameters": {"a": "b"}}}, "HookParameters"),
        ({"OutputDataConfig": {"S3OutputPath": "https://b/x"}}, "must look like s3://bucket/prefix"),
        ({"OutputDataConfig": {"S3OutputPath": "s3://b/x", "CompressionType": "NONE"}}, "Valid: 'GZIP'"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/opt/ml/model"}}, "LocalPath must be"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/opt/ml/model/"}}, "LocalPath must be"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/"}}, "LocalPath must be"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/a/../b"}}, "LocalPath must be"),
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "needs TrainingImage"),
        ({"AlgorithmSpecification": algorithm(TrainingInputMode="Pipe")}, "Valid: 'File'"),
        (
            {"AlgorithmSpecification": algorithm(MetricDefinitions=[{"Name": "m", "Regex": "a("}])},
            "does not compile",
        ),
        (
            {"AlgorithmSpecification": algorithm(MetricDefinitions=[{"Name": "m", "Regex": "loss"}])},
            "no group",
        ),
        ({"InputDataConfig": [channel("a", "s3://b/1"), channel("a", "s3://b/2")]}, "more than once: a"),
        (
            {"InputDataConfig": [channel("a", "s3://b/1", InputMode="FastFile")]},
            "'FastFile' is not supported",
        ),
        ({"InputDataConfig": [channel("a", "s3://b/1", CompressionType="Gzip")]}, "'Gzip'"),
        ({"InputDataConfig": [channel("a", "s3://b/1", ShuffleConfig={"Seed": 1})]}, "ShuffleConfig"),
        ({"InputDataConfig": [channel("a", "file://data")]}, "must be absolute"),
        ({"InputDataConfig": [channel("..", "s3://b/1")]}, "cannot be its name"),
        (
            {"InputDataConfig": [{"ChannelName": "a", "DataSource": {"FileSystemDataSource": {}}}]},
            "FileSystem",
        ),
        ({"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}, "unique"),
        ({"EnableNetworkIsolation": True, "ResourceConfig": resources(InstanceCount=2)}, "one instance"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(members: dict[str, Any], says: str) -> None:
    """Nothing is dropped in silence: the message names the member and what is valid."""
    with pytest.raises(ValidationFailed, match=None) as error:
        validate({**request(), **members})
    assert says in str(error.value)


@pytest.mark.parametrize("kind", ["ManifestFile", "AugmentedManifestFile"])
def test_manifests_are_refused(kind: str) -> None:
    """Only prefixes are fetched."""
    given = channel("a", "s3://b/1")
    given["DataSource"]["S3DataSource"]["S3DataType"] = kind
    with pytest.raises(ValidationFailed, match="S3Prefix"):
        validate(request(InputDataConfig=[given]))
