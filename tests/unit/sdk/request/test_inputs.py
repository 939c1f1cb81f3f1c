"""Channels: what fit() takes, and what it refuses by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windtunnel import FileSystemInput, ShuffleConfig, TrainingInput
from windtunnel.errors import InputError
from windtunnel.request.inputs import channels, local_path, split_s3


class OfAnotherSdk:
    """As ``sagemaker.inputs.TrainingInput``, which has the name of ours."""


def uri(channel: Any) -> str:
    return str(channel.s3_data)


def test_single_value_is_the_channel_training(project: Path) -> None:
    """As in SDK v2."""
    assert {name: uri(c) for name, c in channels("data").items()} == {"training": f"file://{project}/data"}
    assert list(channels(TrainingInput("s3://b/x"))) == ["training"]
    assert channels(None) == {}


def test_paths_and_uris(project: Path) -> None:
    """Relative and absolute paths, Path objects and file:// mean the same; s3:// stays as it is."""
    given: dict[str, Any] = {
        "a": "data",
        "b": project / "data",
        "c": f"file://{project}/data",
        "d": "file://data",
        "e": TrainingInput("data", content_type="text/csv"),
        "f": "s3://bucket/prefix",
    }
    found = channels(given)
    assert {uri(found[name]) for name in "abcde"} == {f"file://{project}/data"}
    assert uri(found["f"]) == "s3://bucket/prefix"
    assert local_path(uri(found["a"])) == project / "data"
    assert local_path("s3://x/y") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train": "dota"}, r"channel 'train': .*/dota does not exist. .* has: data, empty, src"),
        ({"train": "https://x/y"}, "has the scheme 'https'"),
        ({"train": "s3://"}, "names no bucket"),
        ({"my channel": "data"}, "channel name 'my channel'"),
        ({"train": "empty"}, "empty is an empty directory"),
        ({"train": 7}, "cannot use int 7"),
        (["data"], "cannot use list"),
        ({"train": OfAnotherSdk()}, r"cannot use \S+test_inputs\.OfAnotherSdk\. .*from windtunnel import"),
    ],
)
def test_what_is_refused(project: Path, given: Any, message: str) -> None:
    """Each message names the channel, what was given and what is valid."""
    (project / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        channels(given)


def test_training_input_says_everything() -> None:
    """All of SDK v2's arguments arrive where CreateTrainingJob expects them."""
    channel = TrainingInput(
        "s3://b/manifest",
        distribution="ShardedByS3Key",
        compression="Gzip",
        content_type="text/csv",
        record_wrapping="RecordIO",
        s3_data_type="AugmentedManifestFile",
        input_mode="FastFile",
        attribute_names=["a"],
        shuffle_config=ShuffleConfig(7),
    )
    assert channel.to_channel("train") == {
        "ChannelName": "train",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "AugmentedManifestFile",
                "S3Uri": "s3://b/manifest",
                "S3DataDistributionType": "ShardedByS3Key",
                "AttributeNames": ["a"],
            }
        },
        "CompressionType": "Gzip",
        "ContentType": "text/csv",
        "RecordWrapperType": "RecordIO",
        "InputMode": "FastFile",
        "ShuffleConfig": {"Seed": 7},
    }


def test_nothing_of_a_training_input_is_dropped() -> None:
    """What cannot be honoured is refused."""
    with pytest.raises(InputError, match="hub_access_config"):
        TrainingInput("s3://b/x", hub_access_config={"HubContentArn": "a"})


def test_file_system_input() -> None:
    """EFS and FSx channels, for AWS; their closed sets are checked."""
    channel = FileSystemInput("fs-1", "EFS", "/data", content_type="x").to_channel("train")
    assert channel["DataSource"]["FileSystemDataSource"]["FileSystemAccessMode"] == "ro"
    with pytest.raises(InputError, match="one of FSxLustre, EFS"):
        FileSystemInput("fs-1", "NFS", "/data")


def test_split_s3() -> None:
    """Bucket and key; anything else is refused."""
    assert split_s3("s3://b/a/c") == ("b", "a/c")
    assert split_s3("s3://b") == ("b", "")
    with pytest.raises(InputError, match="no S3 URI"):
        split_s3("file:///x")


@pytest.mark.parametrize(
    ("member", "wrong", "said"),
    [
        ("input_mode", "Fastfile", "one of File, FastFile, Pipe"),
        ("distribution", "Sharded", "one of FullyReplicated, ShardedByS3Key"),
        ("s3_data_type", "Manifest", "one of S3Prefix, ManifestFile, AugmentedManifestFile"),
        ("compression", "gzip", "one of None, Gzip"),
        ("record_wrapping", "recordio", "one of None, RecordIO"),
        ("shuffle_config", 7, r"ShuffleConfig\(seed=...\)"),
    ],
)
def test_a_value_that_no_service_knows_is_refused_before_anything_is_uploaded(
    member: str, wrong: object, said: str
) -> None:
    """With the argument, what was given, and what is valid."""
    with pytest.raises(InputError, match=rf"TrainingInput\({member}={wrong!r}\): {said}"):
        TrainingInput("s3://b/x", **{member: wrong})  # type: ignore[arg-type]
