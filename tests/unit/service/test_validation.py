"""What CreateTrainingJob refuses beyond the wire model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.wire import IMAGE
from tests.unit.service.samples import channel, request
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.request.validation import validate


def algorithm(**members: Any) -> dict[str, Any]:
    return {"TrainingImage": IMAGE, "TrainingInputMode": "File", **members}


def resources(**members: Any) -> dict[str, Any]:
    return {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30, **members}


def sourced(name: str, **members: Any) -> dict[str, Any]:
    """A channel with members of its S3DataSource."""
    made = channel(name, "s3://b/1")
    made["DataSource"]["S3DataSource"].update(members)
    return made


def tensorboard(path: str) -> dict[str, Any]:
    return {"TensorBoardOutputConfig": {"S3OutputPath": "s3://b/t", "LocalPath": path}}


NO_FOLDERS = ("/", "x", "/dev/shm", "/proc", "/opt/ml/output", "/opt/ml/output/data/", "/a/./b", "/opt/../x")
GROUP = {"InstanceGroupName": "g", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 2}
NAMED = {"InstanceGroupName": "h"}


@pytest.mark.parametrize(
    "members",
    [
        {"InputDataConfig": [sourced("a", S3DataType="ManifestFile")]},
        {"InputDataConfig": [sourced("a", S3DataDistributionType="ShardedByS3Key")]},
        {"InputDataConfig": [channel("a", "s3://b/1", InputMode="FastFile", ShuffleConfig={"Seed": 7})]},
        {"AlgorithmSpecification": algorithm(TrainingInputMode="FastFile")},
        {"OutputDataConfig": {"S3OutputPath": "s3://b/x", "CompressionType": "NONE", "KmsKeyId": "key"}},
        tensorboard("/opt/ml/output/tensorboard/"),
        {**tensorboard("/opt/x/tb"), "CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/opt/x"}},
        {"EnableNetworkIsolation": True, "ResourceConfig": resources(InstanceCount=2)},
        {
            "ResourceConfig": {"InstanceGroups": [GROUP, {**GROUP, "InstanceGroupName": "h"}]},
            "InputDataConfig": [sourced("a", InstanceGroupNames=["h"])],
        },
    ],
)
def test_what_is_honoured_passes(members: dict[str, Any]) -> None:
    """Each way to ask for data, hosts and output that the service has."""
    validate({**request(), **members})


@pytest.mark.parametrize(
    "image",
    [
        "mine",
        "mine:1.0-RC",
        "library/mine__own.x-y",
        "localhost:5000/mine:1",
        "Registry.Example.com/team/mine@sha256:" + "0" * 64,
        "[::1]:5000/mine",
        "sha256:" + "0" * 64,
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1@sha256:" + "a" * 64,
    ],
)
def test_names_of_images(image: str) -> None:
    """As the engine takes them, its own ids among them."""
    validate(request(AlgorithmSpecification=algorithm(TrainingImage=image)))


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
        ({"ResourceConfig": resources(InstanceType="ml.p4d.24xlarge")}, "ml.trn1.2xlarge, ml.trn1.32xlarge"),
        ({"Environment": {"WINDTUNNEL_AWS_IN_JOBS": "yes"}}, "must be 0 or 1; given: yes"),
        (
            {"Environment": {"WINDTUNNEL_AWS_IN_JOBS": "1"}, "EnableNetworkIsolation": True},
            "WINDTUNNEL_AWS_IN_JOBS=1 and EnableNetworkIsolation exclude each other",
        ),
        ({"ResourceConfig": resources(InstanceCount=0)}, "InstanceCount must be at least 1"),
        ({"ResourceConfig": resources(InstanceGroups=[GROUP])}, "exclude each other"),
        ({"ResourceConfig": {"InstanceGroups": [GROUP, GROUP]}}, "more than once: g"),
        ({"ResourceConfig": resources(InstanceCount=2**31 - 1)}, "at most 64"),
        (
            {"ResourceConfig": {"InstanceGroups": [{**GROUP, "InstanceCount": 63}, {**GROUP, **NAMED}]}},
            "asks for 65 instances",
        ),
        (
            {"ResourceConfig": {"InstanceGroups": [{**GROUP, "InstanceType": "ml.c5.xlarge"}]}},
            "InstanceGroups[g].InstanceType 'ml.c5.xlarge' is not simulated",
        ),
        ({"ResourceConfig": {"InstanceGroups": [{**GROUP, "InstanceCount": 0}]}}, "at least 1"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400 + 1}}, "28 days"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90}}, "valid only with"),
        ({"EnableManagedSpotTraining": True}, "Invalid MaxWaitTimeInSeconds. It must be present and be"),
        (
            {
                "EnableManagedSpotTraining": True,
                "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59},
            },
            "greater than or equal to MaxRuntimeInSeconds; given: 59, and MaxRuntimeInSeconds is 60",
        ),
        ({"SomethingNew": {"A": {"B": 1}}}, "SomethingNew is not supported"),
        ({"DebugHookConfig": {"S3OutputPath": "s3://b", "HookParameters": {"a": "b"}}}, "HookParameters"),
        ({"OutputDataConfig": {"S3OutputPath": "https://b/x"}}, "must look like s3://bucket/prefix"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/opt/ml/model"}}, "LocalPath must be"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/a/../b"}}, "LocalPath must be"),
        ({"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/proc/x"}}, "LocalPath must be"),
        (
            {"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/usr/bin/"}},
            "given: /usr/bin/. The default",
        ),
        (
            {"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/"}},
            "given: /. The default is /opt/ml/check",
        ),
        (tensorboard("/opt/ml/model"), "TensorBoardOutputConfig.LocalPath must be an absolute directory"),
        *(
            (tensorboard(path), f"given: {path}. The default is /opt/ml/output/tensorboard")
            for path in NO_FOLDERS
        ),
        ({"TensorBoardOutputConfig": {"S3OutputPath": "https://b/c"}}, "must look like s3://bucket/prefix"),
        (
            {"CheckpointConfig": {"S3Uri": "s3://b/c", "LocalPath": "/x"}, **tensorboard("/x/")},
            "must differ, for each is a folder that is stored elsewhere; given: /x for both",
        ),
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "needs TrainingImage"),
        (
            {"AlgorithmSpecification": algorithm(TrainingImage="a b")},
            "TrainingImage 'a b' is no image's name",
        ),
        ({"AlgorithmSpecification": algorithm(TrainingImage="Mine:1")}, "lower case"),
        ({"AlgorithmSpecification": algorithm(TrainingImage="mine:")}, "[REGISTRY/]NAME[:TAG]"),
        ({"AlgorithmSpecification": algorithm(TrainingImage="https://mine")}, "is no image's name"),
        ({"AlgorithmSpecification": algorithm(TrainingInputMode="Pipe")}, "use FastFile"),
        ({"AlgorithmSpecification": algorithm(AlgorithmName="a")}, "AlgorithmName is not supported"),
        (
            {
                "AlgorithmSpecification": algorithm(
                    TrainingImageConfig={"TrainingRepositoryAccessMode": "Vpc"}
                )
            },
            "Pull the image there",
        ),
        (
            {"AlgorithmSpecification": algorithm(MetricDefinitions=[{"Name": "m", "Regex": "a("}])},
            "does not compile",
        ),
        (
            {
                "AlgorithmSpecification": algorithm(
                    MetricDefinitions=[{"Name": "m", "Regex": "(a{4294967296})"}]
                )
            },
            "does not compile",
        ),
        (
            {"AlgorithmSpecification": algorithm(MetricDefinitions=[{"Name": "m", "Regex": "loss"}])},
            "no group",
        ),
        ({"InputDataConfig": [channel("a", "s3://b/1"), channel("a", "s3://b/2")]}, "more than once: a"),
        ({"InputDataConfig": [channel("a", "s3://b/1", InputMode="Pipe")]}, "[a].InputMode 'Pipe'"),
        ({"InputDataConfig": [channel("a", "s3://b/1", CompressionType="Gzip")]}, "only in Pipe input mode"),
        (
            {"InputDataConfig": [channel("a", "s3://b/1", RecordWrapperType="RecordIO")]},
            "only in Pipe input mode",
        ),
        ({"InputDataConfig": [sourced("a", InstanceGroupNames=["x"])]}, "no instance group x"),
        ({"InputDataConfig": [sourced("a", S3DataType="AugmentedManifestFile")]}, "in a ManifestFile"),
        ({"InputDataConfig": [sourced("a", S3DataType="Converse")]}, "serverless"),
        ({"InputDataConfig": [sourced("a", AttributeNames=["x"])]}, "InputDataConfig[a].DataSource.S3Data"),
        ({"InputDataConfig": [channel("a", "file://data")]}, "must be absolute"),
        ({"InputDataConfig": [channel("..", "s3://b/1")]}, "cannot be its name"),
        (
            {"InputDataConfig": [{"ChannelName": "a", "DataSource": {"FileSystemDataSource": {}}}]},
            "FileSystem",
        ),
        ({"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}, "unique"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(members: dict[str, Any], says: str) -> None:
    """Nothing is dropped in silence: the message names the member and what is valid."""
    with pytest.raises(ValidationFailed, match=None) as error:
        validate({**request(), **members})
    assert says in str(error.value)
