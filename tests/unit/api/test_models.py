"""Promises of the codec: botocore's models decide what comes in and what goes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.wire import create_request as request
from windtunnel_local.api import codec
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.patterns import compiled


def create(**members: Any) -> dict[str, Any]:
    shape = codec.operation("sagemaker", "CreateTrainingJob")
    assert shape is not None
    return codec.decoded(shape.input_shape, json.dumps(request(**members)).encode())


def refusal(**members: Any) -> str:
    with pytest.raises(ApiError) as error:
        create(**members)
    assert error.value.code == "ValidationException"
    return str(error.value)


def test_a_valid_request_passes_unchanged() -> None:
    """What botocore would send is what the service gets."""
    assert create() == request()


NAME_PATTERN = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
NO_INSTANCES = {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": -1, "VolumeSizeInGB": 1}


@pytest.mark.parametrize(
    ("members", "path", "constraint"),
    [
        (
            {"TrainingJobName": "a_b"},
            "trainingJobName",
            f"satisfy regular expression pattern: {NAME_PATTERN}",
        ),
        ({"TrainingJobName": None}, "trainingJobName", "not be null"),
        ({"TrainingJobName": 7}, "trainingJobName", "be a string"),
        (
            {"HyperParameters": {"k": "x" * 3000}},
            "hyperParameters.k.value",
            "have length less than or equal to 2500",
        ),
        (
            {"ResourceConfig": {"InstanceType": "ml.nope", "VolumeSizeInGB": 1}},
            "resourceConfig.instanceType",
            "satisfy enum value set: [",
        ),
        (
            {"ResourceConfig": NO_INSTANCES},
            "resourceConfig.instanceCount",
            "have value greater than or equal to 0",
        ),
        (
            {"InputDataConfig": [{"ChannelName": "a b"}]},
            "inputDataConfig.1.member.channelName",
            "satisfy regular expression pattern",
        ),
        ({"Nonsense": 1}, "nonsense", "be known; valid members: [AlgorithmSpecification,"),
        ({"Tags": [{"Key": "k;", "Value": "v"}]}, "tags.1.member.key", "satisfy regular expression"),
        ({"EnableNetworkIsolation": "yes"}, "enableNetworkIsolation", "be a boolean"),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 2**40}},
            "stoppingCondition.maxRuntimeInSeconds",
            "be of type integer",
        ),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 1.5}},
            "stoppingCondition.maxRuntimeInSeconds",
            "be of type integer",
        ),
        ({"Environment": []}, "environment", "be a map"),
        (
            {"HyperParameters": {str(i): "1" for i in range(101)}},
            "hyperParameters",
            "have length less than or equal to 100",
        ),
        (
            {"HyperParameters": {"k" * 257: "1"}},
            f"hyperParameters.{'k' * 256}.key",
            "have length less than or equal to 256",
        ),
        (
            {"Environment": {f"V{i}": "1" for i in range(101)}},
            "environment",
            "have length less than or equal to 100",
        ),
        (
            {"Environment": {"KEY": "v" * 513}},
            "environment.KEY.value",
            "have length less than or equal to 512",
        ),
        (
            {"Environment": {"K" * 513: "v"}},
            f"environment.{'K' * 256}.key",
            "have length less than or equal to 512",
        ),
        ({"RoleArn": "\ud800" * 30}, "roleArn", "be valid Unicode"),
        ({"Environment": {"A": "a\0b"}}, "environment.A.value", "be text without NUL characters"),
        ({"HyperParameters": {"a\0": "1"}}, "hyperParameters.a\0.key", "be text without NUL characters"),
    ],
)
def test_violations_are_worded_like_aws(members: dict[str, Any], path: str, constraint: str) -> None:
    """Value, path and constraint."""
    assert f" at '{path}' failed to satisfy constraint: Member must {constraint}" in refusal(**members)


def test_all_violations_are_counted() -> None:
    """One answer names them all."""
    assert refusal(TrainingJobName="a_b", RoleArn="x").startswith("3 validation errors detected: ")


def test_a_huge_name_does_not_echo_whole() -> None:
    """The answer stays small, and the pattern never sees it."""
    message = refusal(TrainingJobName="a-" * 500_000)
    assert "less than or equal to 63" in message
    assert len(message) < 1000


def test_a_channel_may_be_a_directory_of_this_machine() -> None:
    """The one documented extension, and only for absolute paths."""

    def source(uri: str) -> list[dict[str, Any]]:
        return [
            {"ChannelName": "c", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}
        ]

    assert create(InputDataConfig=source("file:///data"))
    for uri in ("file://data", "ftp://x/y"):
        assert "regular expression" in refusal(InputDataConfig=source(uri))


def test_tags_take_letters_of_all_alphabets() -> None:
    """Java's character classes are kept."""
    assert create(Tags=[{"Key": "größe 例", "Value": "٣ ok"}])["Tags"]


@pytest.mark.parametrize("service", ["sagemaker", "logs"])
def test_every_pattern_of_a_served_operation_is_checked(service: str) -> None:
    """None of them is one that Python cannot express."""
    served = {
        "sagemaker": [
            "CreateTrainingJob",
            "DescribeTrainingJob",
            "ListTrainingJobs",
            "AddTags",
            "ListTags",
            "DeleteTags",
        ],
        "logs": ["DescribeLogStreams", "GetLogEvents", "FilterLogEvents"],
    }[service]
    for name in served:
        model = codec.operation(service, name)
        assert model is not None
        for pattern in patterns(model.input_shape, set()):
            assert compiled(pattern) is not None, pattern


def patterns(shape: Any, seen: set[str]) -> Iterator[str]:
    """All patterns below a shape."""
    if shape.name in seen:
        return
    seen.add(shape.name)
    if "pattern" in shape.metadata:
        yield shape.metadata["pattern"]
    children: list[Any] = []
    if shape.type_name == "structure":
        children = list(shape.members.values())
    elif shape.type_name == "list":
        children = [shape.member]
    elif shape.type_name == "map":
        children = [shape.key, shape.value]
    for child in children:
        yield from patterns(child, seen)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["TrainingJobName", "ResourceConfig", "Tags", "Environment", "InputDataConfig", "x"]),
        json_values,
    )
)
def test_any_json_is_accepted_or_refused(document: dict[str, Any]) -> None:
    """Never anything but an error of AWS's."""
    shape = codec.operation("sagemaker", "CreateTrainingJob")
    assert shape is not None
    with pytest.raises(ApiError) as error:
        codec.decoded(shape.input_shape, json.dumps(document).encode())
    assert error.value.code in ("ValidationException", "SerializationException")


@pytest.mark.parametrize("body", [b"{", b"[]", b"NaN", b'"x"', b"\xff", b"[" * 100_000, b'{"a": Infinity}'])
def test_what_is_no_json_object_is_a_serialization_error(body: bytes) -> None:
    """However it is broken."""
    shape = codec.operation("sagemaker", "ListTrainingJobs")
    assert shape is not None
    with pytest.raises(ApiError) as error:
        codec.decoded(shape.input_shape, body)
    assert error.value.code == "SerializationException"


def test_timestamps_come_in_as_datetimes() -> None:
    """In both of JSON 1.1's forms."""
    shape = codec.operation("sagemaker", "ListTrainingJobs")
    assert shape is not None
    for text in (b"1700000000.5", b'"2023-11-14T22:13:20.500Z"'):
        values = codec.decoded(shape.input_shape, b'{"CreationTimeAfter": ' + text + b"}")
        assert values["CreationTimeAfter"] == datetime(2023, 11, 14, 22, 13, 20, 500000, timezone.utc)
