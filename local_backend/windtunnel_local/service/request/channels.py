"""Checks of InputDataConfig's channels, beyond those of botocore's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.uris import is_file, member_s3

_PIPE = (
    "Pipe mode streams objects through named pipes, which this backend does not simulate; use FastFile,"
    " which streams too and shows the objects as files, or File"
)
_ONLY_IN_PIPE = "SageMaker uses it only in Pipe input mode, and in File mode it must be left out or None"


def check_channels(
    channels: Sequence[Mapping[str, Any]], job_mode: str, group_names: Sequence[str] | None
) -> None:
    """Check InputDataConfig.

    Args:
        channels: the value of InputDataConfig.
        job_mode: AlgorithmSpecification.TrainingInputMode.
        group_names: the names of ResourceConfig.InstanceGroups; None without such groups.

    Raises:
        ValidationFailed: names the channel, what was given and what is valid.
    """
    if job_mode == "Pipe":
        raise ValidationFailed(f"AlgorithmSpecification.TrainingInputMode 'Pipe' is not supported: {_PIPE}.")
    names = [channel["ChannelName"] for channel in channels]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValidationFailed(
            f"InputDataConfig: channel names must be unique; given more than once: {', '.join(duplicates)}."
        )
    for channel in channels:
        _check_channel(channel, f"InputDataConfig[{channel['ChannelName']}]", group_names)


def _check_channel(channel: Mapping[str, Any], where: str, group_names: Sequence[str] | None) -> None:
    if channel["ChannelName"] in {".", ".."}:
        raise ValidationFailed(
            f"{where}: a channel is a folder; {channel['ChannelName']!r} cannot be its name."
        )
    source = channel["DataSource"].get("S3DataSource")
    if not source:
        given = ", ".join(channel["DataSource"]) or "nothing"
        raise ValidationFailed(f"{where}: DataSource must be an S3DataSource; given: {given}.")
    if channel.get("InputMode") == "Pipe":
        _refuse(f"{where}.InputMode 'Pipe'", _PIPE)
    if channel.get("CompressionType", "None") != "None":
        _refuse(
            f"{where}.CompressionType {channel['CompressionType']!r}",
            f"{_ONLY_IN_PIPE}; leave it out and decompress in the script, as with gzip.open",
        )
    if channel.get("RecordWrapperType", "None") != "None":
        _refuse(
            f"{where}.RecordWrapperType {channel['RecordWrapperType']!r}",
            f"{_ONLY_IN_PIPE}; leave it out and upload the records as they are to be read",
        )
    _check_source(source, where, group_names)


def _check_source(source: Mapping[str, Any], where: str, group_names: Sequence[str] | None) -> None:
    kind = source["S3DataType"]
    if kind == "AugmentedManifestFile":
        _refuse(
            f"{where}.S3DataType 'AugmentedManifestFile'",
            "SageMaker reads it only in Pipe input mode, which this backend does not simulate; list the objects"
            " in a ManifestFile, and give the labels as a channel of their own",
        )
    if kind not in {"S3Prefix", "ManifestFile"}:
        _refuse(
            f"{where}.S3DataType {kind!r}",
            "it belongs to serverless model customization; valid here: 'S3Prefix', 'ManifestFile'",
        )
    wanted = source.get("InstanceGroupNames") or []
    unknown = [name for name in wanted if name not in (group_names or ())]
    if unknown:
        known = ", ".join(group_names) if group_names else "none, ResourceConfig has no InstanceGroups"
        raise ValidationFailed(
            f"{where}.InstanceGroupNames: there is no instance group {', '.join(unknown)}. Groups: {known}."
        )
    uri = source["S3Uri"]
    if is_file(uri):
        if not uri.startswith("file:///"):
            raise ValidationFailed(
                f"{where}.S3Uri: a file:// URI must be absolute, like file:///home/me/data; given: {uri}."
            )
    else:
        member_s3(f"{where}.S3Uri", uri)


def _refuse(what: str, reason: str) -> None:
    raise ValidationFailed(f"{what} is not supported: {reason}.")
