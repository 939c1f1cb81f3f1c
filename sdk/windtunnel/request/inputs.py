"""Channels: the data that ``fit(inputs)`` takes, and their form in the request.

A channel is a local path, a ``file://`` or ``s3://`` URI, a `TrainingInput` or a `FileSystemInput`; a dict
names several; a single one is the channel ``training``, as in the SageMaker SDK.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.errors import InputError
from windtunnel.local_paths import absolute, reading
from windtunnel.request.members import only_given

DEFAULT_CHANNEL = "training"
_CHANNEL_NAME = re.compile(r"[A-Za-z0-9.\-_]{1,64}")
_FILE_SYSTEM_TYPES = ("FSxLustre", "EFS")
_ACCESS_MODES = ("ro", "rw")
_VALUES = {
    "distribution": ("FullyReplicated", "ShardedByS3Key"),
    "compression": ("None", "Gzip"),
    "record_wrapping": ("None", "RecordIO"),
    "s3_data_type": ("S3Prefix", "ManifestFile", "AugmentedManifestFile"),
    "input_mode": ("File", "FastFile", "Pipe"),
}


@dataclass(frozen=True)
class ShuffleConfig:
    """Seed of a shuffle: with ShardedByS3Key, of which host gets which objects; in Pipe mode, of their order."""

    seed: int


@dataclass(frozen=True)
class TrainingInput:
    """A channel with options besides the place of its data. Arguments and meanings are SDK v2's.

    Attributes:
        s3_data: an ``s3://`` URI; here also ``file://`` or a plain local path.
        distribution: ``FullyReplicated`` (default) or ``ShardedByS3Key``: each host gets a part.
        compression: ``Gzip`` or None; Gzip only in Pipe mode, so on AWS only.
        content_type: MIME type handed to the container in inputdataconfig.json.
        record_wrapping: ``RecordIO`` or None; RecordIO only in Pipe mode, so on AWS only.
        s3_data_type: ``S3Prefix`` or ``ManifestFile``; on AWS also ``AugmentedManifestFile``.
        instance_groups: names of the instance groups that get the channel; default: all.
        input_mode: ``File``, ``FastFile`` or, on AWS, ``Pipe``; overrides the estimator's for this channel.
        attribute_names: attributes of an augmented manifest.
        target_attribute_name: the attribute that holds the labels.
        shuffle_config: see `ShuffleConfig`.
        hub_access_config, model_access_config: refused; JumpStart hubs are not offered.
    """

    s3_data: str
    distribution: str | None = None
    compression: str | None = None
    content_type: str | None = None
    record_wrapping: str | None = None
    s3_data_type: str = "S3Prefix"
    instance_groups: list[str] | None = None
    input_mode: str | None = None
    attribute_names: list[str] | None = None
    target_attribute_name: str | None = None
    shuffle_config: ShuffleConfig | None = None
    hub_access_config: Mapping[str, Any] | None = None
    model_access_config: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse, before data is uploaded, arguments that would be ignored and values that do not exist."""
        for name in ("hub_access_config", "model_access_config"):
            if getattr(self, name) is not None:
                raise InputError(f"TrainingInput({name}=...) has no meaning here. Leave it out.")
        for name, valid in _VALUES.items():
            given = getattr(self, name)
            if given is not None and given not in valid:
                raise InputError(f"TrainingInput({name}={given!r}): one of {', '.join(valid)}.")
        if not isinstance(self.shuffle_config, (ShuffleConfig, type(None))):
            raise InputError(
                f"TrainingInput(shuffle_config={self.shuffle_config!r}): ShuffleConfig(seed=...)."
            )

    def to_channel(self, name: str) -> dict[str, Any]:
        """The channel as CreateTrainingJob's InputDataConfig states it."""
        source: dict[str, Any] = {"S3DataType": self.s3_data_type, "S3Uri": self.s3_data}
        distribution = self.distribution
        if not (self.target_attribute_name or distribution):
            distribution = "FullyReplicated"
        source.update(
            only_given(
                S3DataDistributionType=distribution,
                AttributeNames=self.attribute_names,
                InstanceGroupNames=None if self.instance_groups is None else list(self.instance_groups),
            )
        )
        return {
            "ChannelName": name,
            "DataSource": {"S3DataSource": source},
            **only_given(
                CompressionType=self.compression,
                ContentType=self.content_type,
                RecordWrapperType=self.record_wrapping,
                InputMode=self.input_mode,
                TargetAttributeName=self.target_attribute_name,
                ShuffleConfig={"Seed": self.shuffle_config.seed} if self.shuffle_config else None,
            ),
        }


@dataclass(frozen=True)
class FileSystemInput:
    """A channel on Amazon EFS or FSx for Lustre; only on AWS. Arguments and meanings are SDK v2's."""

    file_system_id: str
    file_system_type: str
    directory_path: str
    file_system_access_mode: str = "ro"
    content_type: str | None = None

    def __post_init__(self) -> None:
        """Check the two arguments that have a fixed set of values."""
        for name, valid in (
            ("file_system_type", _FILE_SYSTEM_TYPES),
            ("file_system_access_mode", _ACCESS_MODES),
        ):
            if getattr(self, name) not in valid:
                raise InputError(f"{name}={getattr(self, name)!r}: one of {', '.join(valid)}.")

    def to_channel(self, name: str) -> dict[str, Any]:
        """The channel as CreateTrainingJob's InputDataConfig states it."""
        source = {
            "FileSystemId": self.file_system_id,
            "FileSystemType": self.file_system_type,
            "DirectoryPath": self.directory_path,
            "FileSystemAccessMode": self.file_system_access_mode,
        }
        return {
            "ChannelName": name,
            "DataSource": {"FileSystemDataSource": source},
            **only_given(ContentType=self.content_type),
        }


ChannelInput = str | os.PathLike[str] | TrainingInput | FileSystemInput
Inputs = ChannelInput | Mapping[str, ChannelInput] | None
Channel = TrainingInput | FileSystemInput


def channels(inputs: Inputs) -> dict[str, Channel]:
    """All channels by name. Local data becomes an absolute ``file://`` URI and must exist.

    Reads the file system (does each local path exist?), nothing else.

    Raises:
        InputError: names the channel, what was given and what is valid.
    """
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        inputs = {DEFAULT_CHANNEL: inputs}
    found: dict[str, Channel] = {}
    for name, given in inputs.items():
        if not isinstance(name, str) or not _CHANNEL_NAME.fullmatch(name) or name in (".", ".."):
            raise InputError(
                f"channel name {name!r}: 1 to 64 of A-Z a-z 0-9 . _ - are valid, not '.' or '..'."
            )
        found[name] = _channel(name, given)
    return found


def _channel(name: str, given: object) -> Channel:
    if isinstance(given, FileSystemInput):
        return given
    if isinstance(given, TrainingInput):
        return replace(given, s3_data=_location(name, given.s3_data))
    if isinstance(given, (str, os.PathLike)):
        return TrainingInput(_location(name, given))
    kind = type(given)
    named = (
        f"{kind.__module__}.{kind.__name__}"
        if kind.__module__ != "builtins"
        else f"{kind.__name__} {given!r}"
    )
    raise InputError(
        f"channel {name!r}: cannot use {named}. Give a path, 'file://...', 's3://...', or windtunnel's own "
        "TrainingInput or FileSystemInput (from windtunnel import TrainingInput), which take SDK v2's arguments."
    )


def _location(name: str, given: object) -> str:
    """The S3 URI as it is, or the local path as ``file://`` URI."""
    if not isinstance(given, (str, os.PathLike)) or not str(given):
        raise InputError(f"channel {name!r}: {given!r} is no path. Give a path, 'file://...' or 's3://...'.")
    text = str(given)
    scheme, separator, rest = text.partition("://")
    if separator and scheme == "s3":
        if not rest.strip("/"):
            raise InputError(f"channel {name!r}: {text!r} names no bucket. Give s3://<bucket>/<prefix>.")
        return text
    if separator and scheme != "file":
        raise InputError(
            f"channel {name!r}: {text!r} has the scheme {scheme!r}. "
            "Give a path, 'file://...' or 's3://...'; fetch other data first."
        )
    path = absolute(rest if separator else text, InputError)
    with reading(path, InputError):
        _check_data(name, path)
    return f"file://{path}"


def _check_data(name: str, path: Path) -> None:
    """Check that the data exists, and that a directory is not empty."""
    if not path.exists():
        parent = next(folder for folder in path.parents if folder.is_dir())
        entries = ", ".join(sorted(entry.name for entry in parent.iterdir())[:8]) or "nothing"
        raise InputError(
            f"channel {name!r}: {path} does not exist. {parent} has: {entries}. Correct the path."
        )
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(f"channel {name!r}: {path} is an empty directory. Put the data there first.")
    odd = _no_data(path)
    if odd is not None:
        raise InputError(
            f"channel {name!r}: {odd} is a socket, pipe or device: to read it would wait for ever. Move it away."
        )


def _no_data(path: Path) -> Path | None:
    """A socket, pipe or device at the path or below it, which cannot be read to an end; None if there is none."""
    if not path.is_dir():
        return None if path.is_file() else path
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found = _no_data(Path(entry.path))
            else:
                plain = entry.is_file() or entry.is_dir() or not Path(entry.path).exists()
                found = None if plain else Path(entry.path)
            if found is not None:
                return found
    return None


def local_path(uri: str) -> Path | None:
    """The path of a ``file://`` URI; None for any other URI."""
    if not uri.startswith("file://"):
        return None
    return Path(uri.removeprefix("file://"))


def split_s3(uri: str) -> tuple[str, str]:
    """``s3://bucket/a/b`` -> ``("bucket", "a/b")``."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not bucket:
        raise InputError(f"{uri!r} is no S3 URI. Give s3://<bucket>/<prefix>.")
    return bucket, key
