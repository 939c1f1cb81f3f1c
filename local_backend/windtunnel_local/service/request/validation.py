"""What a training job must be beyond the wire model.

Types, patterns, enums and ranges were checked against botocore's model before. Here is
what AWS checks besides, and what this backend does not honour: it is refused by name,
never dropped in silence. Members that cannot change what the script does are kept and
shown by Describe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from windtunnel_local.service.data import paths
from windtunnel_local.service.data.uris import is_file, parse_s3
from windtunnel_local.service.errors import ValidationFailed
from windtunnel_local.service.request.instances import INSTANCES

Request = Mapping[str, Any]

MAX_HYPERPARAMETERS = 100
MAX_HYPERPARAMETER_KEY = 256
MAX_HYPERPARAMETER_VALUE = 2_500
MAX_ENVIRONMENT = 100
MAX_ENVIRONMENT_TEXT = 512
MAX_RUNTIME_S = 28 * 86_400
MAX_TAGS = 50

_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_ONLY_ON_AWS = "this backend does not simulate it; leave it out, or send the request to AWS"

_HONOURED = {
    "TrainingJobName", "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig",
    "OutputDataConfig", "ResourceConfig", "StoppingCondition", "Tags", "EnableNetworkIsolation",
    "CheckpointConfig", "Environment", "TensorBoardOutputConfig",
}  # fmt: skip
_WITHOUT_EFFECT_HERE = {
    "ExperimentConfig",  # bookkeeping
    "InfraCheckConfig",  # health checks of AWS's machines
    "RetryStrategy",  # retries after faults of AWS's machines
    "ProfilerConfig",  # system metrics of the instance; SDK v2 sends it by default
    "EnableInterContainerTrafficEncryption",  # traffic never leaves this machine
}
_HINTS = {
    "EnableManagedSpotTraining": "spot instances are not simulated; set it to false to rehearse the job",
    "VpcConfig": "a local job is in no VPC; EnableNetworkIsolation rehearses a job without network",
    "DebugRuleConfigurations": "debugger rules are not simulated; remove them to rehearse the job",
    "ProfilerRuleConfigurations": "profiler rules are not simulated; remove them to rehearse the job",
}


def validate(request: Request) -> None:
    """Check a CreateTrainingJob request.

    Raises:
        ValidationFailed: says which member, what was given and what is valid.
    """
    _name(request["TrainingJobName"])
    _members(request)
    _algorithm(request.get("AlgorithmSpecification", {}))
    _resources(request.get("ResourceConfig", {}))
    _stopping_condition(request.get("StoppingCondition", {}))
    _hyperparameters(request.get("HyperParameters", {}))
    _environment(request.get("Environment", {}))
    _output(request["OutputDataConfig"])
    _checkpoints(request.get("CheckpointConfig"))
    _channels(request.get("InputDataConfig", []))
    tags(request.get("Tags", []))
    if request.get("EnableNetworkIsolation") and request["ResourceConfig"]["InstanceCount"] > 1:
        _refuse(
            "EnableNetworkIsolation with InstanceCount > 1",
            "an isolated network between several hosts is not simulated; rehearse with one instance",
        )


def tags(given: Sequence[Mapping[str, str]]) -> None:
    """At most 50 tags, each key once.

    Raises:
        ValidationFailed: otherwise.
    """
    keys = [tag["Key"] for tag in given]
    if len(keys) > MAX_TAGS:
        raise ValidationFailed(f"{len(keys)} tags were given; a resource has at most {MAX_TAGS}.")
    duplicates = sorted({key for key in keys if keys.count(key) > 1})
    if duplicates:
        raise ValidationFailed(f"Tag keys must be unique; given more than once: {', '.join(duplicates)}.")


def _name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"1 validation error detected: Value '{name}' at 'trainingJobName' failed to satisfy constraint:"
            f" Member must satisfy regular expression pattern: {_NAME.pattern}"
        )


def _members(request: Request) -> None:
    known = _HONOURED | _WITHOUT_EFFECT_HERE
    for member, value in request.items():
        if member == "DebugHookConfig":
            _only(value, {"S3OutputPath", "LocalPath"}, "DebugHookConfig")
        elif member not in known and _asks(value):
            _refuse(member, _HINTS.get(member, _ONLY_ON_AWS))


def _algorithm(algorithm: Request) -> None:
    if not algorithm.get("TrainingImage"):
        given = algorithm.get("AlgorithmName")
        raise ValidationFailed(
            "AlgorithmSpecification needs TrainingImage"
            + (f"; AlgorithmName ({given}) is not supported here." if given else ".")
        )
    _only(
        algorithm,
        {
            "TrainingImage",
            "TrainingInputMode",
            "MetricDefinitions",
            "EnableSageMakerMetricsTimeSeries",
            "ContainerEntrypoint",
            "ContainerArguments",
            "TrainingImageConfig",
        },
        "AlgorithmSpecification",
    )
    _one_of("AlgorithmSpecification.TrainingInputMode", algorithm["TrainingInputMode"], "File")
    access = algorithm.get("TrainingImageConfig", {}).get("TrainingRepositoryAccessMode", "Platform")
    _one_of("TrainingImageConfig.TrainingRepositoryAccessMode", access, "Platform")
    for metric in algorithm.get("MetricDefinitions", []):
        try:
            groups = re.compile(metric["Regex"]).groups
        except re.error as error:
            raise ValidationFailed(
                f"MetricDefinitions: the Regex of {metric['Name']!r} does not compile: {error}. Given:"
                f" {metric['Regex']}"
            ) from None
        if groups < 1:
            raise ValidationFailed(
                f"MetricDefinitions: the Regex of {metric['Name']!r} has no group to capture the value;"
                rf" write for example 'loss: ([0-9\.]+)'. Given: {metric['Regex']}"
            )


def _resources(resources: Request) -> None:
    given = resources.get("InstanceType")
    # The more telling complaint first: InstanceGroups take the place of InstanceType.
    _only(resources, {"InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId"}, "ResourceConfig")
    if given not in INSTANCES:
        raise ValidationFailed(
            f"ResourceConfig.InstanceType {given!r} is not simulated here. Valid: {', '.join(INSTANCES)}."
            " For other instance types, send the request to AWS."
        )
    if resources.get("InstanceCount", 0) < 1:
        raise ValidationFailed(
            f"ResourceConfig.InstanceCount must be at least 1; given: {resources.get('InstanceCount')}."
        )


def _stopping_condition(condition: Request) -> None:
    longest = condition.get("MaxRuntimeInSeconds", 1)
    if not 1 <= longest <= MAX_RUNTIME_S:
        raise ValidationFailed(
            f"StoppingCondition.MaxRuntimeInSeconds must be between 1 and {MAX_RUNTIME_S} (28 days);"
            f" given: {longest}."
        )
    if condition.get("MaxWaitTimeInSeconds"):
        _refuse(
            "StoppingCondition.MaxWaitTimeInSeconds",
            "it is valid only with EnableManagedSpotTraining, which is not simulated; leave it out",
        )
    _only(condition, {"MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"}, "StoppingCondition")


def _hyperparameters(values: Mapping[str, str]) -> None:
    if len(values) > MAX_HYPERPARAMETERS:
        raise ValidationFailed(
            f"{len(values)} HyperParameters were given; a job takes at most {MAX_HYPERPARAMETERS}."
            " Put the rest into a file of your source directory."
        )
    for key, value in values.items():
        if len(key) > MAX_HYPERPARAMETER_KEY:
            raise ValidationFailed(
                f"A key of HyperParameters has {len(key)} characters, at most {MAX_HYPERPARAMETER_KEY} are"
                f" valid: {key[:64]}..."
            )
        if len(value) > MAX_HYPERPARAMETER_VALUE:
            raise ValidationFailed(
                f"The value of hyperparameter {key!r} has {len(value)} characters, at most"
                f" {MAX_HYPERPARAMETER_VALUE} are valid. Put it into a file of your source directory or an"
                " input channel."
            )


def _environment(values: Mapping[str, str]) -> None:
    if len(values) > MAX_ENVIRONMENT:
        raise ValidationFailed(
            f"{len(values)} variables were given in Environment; a job takes at most {MAX_ENVIRONMENT}."
        )
    for key, value in values.items():
        if max(len(key), len(value)) > MAX_ENVIRONMENT_TEXT:
            raise ValidationFailed(
                f"Environment: name and value of {key[:64]!r} may have {MAX_ENVIRONMENT_TEXT} characters"
                f" each; given: {len(key)} and {len(value)}."
            )


def _output(output: Request) -> None:
    _s3("OutputDataConfig.S3OutputPath", output["S3OutputPath"])
    _one_of("OutputDataConfig.CompressionType", output.get("CompressionType", "GZIP"), "GZIP")
    _only(output, {"S3OutputPath", "CompressionType", "KmsKeyId"}, "OutputDataConfig")


def _checkpoints(checkpoints: Request | None) -> None:
    if checkpoints is None:
        return
    _s3("CheckpointConfig.S3Uri", checkpoints["S3Uri"])
    local = checkpoints.get("LocalPath", paths.CHECKPOINTS).rstrip("/")
    reserved = (paths.ML, f"{paths.ML}/input", f"{paths.ML}/model", f"{paths.ML}/output", "/opt/windtunnel")
    inside = any(local == folder or local.startswith(f"{folder}/") for folder in reserved[1:])
    if not re.fullmatch(r"(/[^/]+)+", local) or ".." in local.split("/") or local == paths.ML or inside:
        raise ValidationFailed(
            f"CheckpointConfig.LocalPath must be an absolute directory outside of {', '.join(reserved[1:])};"
            f" given: {local}. The default is {paths.CHECKPOINTS}."
        )


def _channels(channels: list[Mapping[str, Any]]) -> None:
    names = [channel["ChannelName"] for channel in channels]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValidationFailed(
            f"InputDataConfig: channel names must be unique; given more than once: {', '.join(duplicates)}."
        )
    for channel in channels:
        _channel(channel)


def _channel(channel: Mapping[str, Any]) -> None:
    name = channel["ChannelName"]
    where = f"InputDataConfig[{name}]"
    if name in {".", ".."}:
        raise ValidationFailed(f"{where}: a channel is a folder; {name!r} cannot be its name.")
    source = channel["DataSource"].get("S3DataSource")
    if not source:
        given = ", ".join(channel["DataSource"]) or "nothing"
        raise ValidationFailed(f"{where}: DataSource must be an S3DataSource; given: {given}.")
    _one_of(f"{where}.InputMode", channel.get("InputMode", "File"), "File")
    _one_of(f"{where}.CompressionType", channel.get("CompressionType", "None"), "None")
    _one_of(f"{where}.RecordWrapperType", channel.get("RecordWrapperType", "None"), "None")
    _one_of(f"{where}.S3DataType", source["S3DataType"], "S3Prefix")
    distribution = source.get("S3DataDistributionType", "FullyReplicated")
    _one_of(f"{where}.S3DataDistributionType", distribution, "FullyReplicated")
    _only(
        channel,
        {"ChannelName", "DataSource", "ContentType", "CompressionType", "RecordWrapperType", "InputMode"},
        where,
    )
    _only(channel["DataSource"], {"S3DataSource"}, where)
    _only(source, {"S3DataType", "S3Uri", "S3DataDistributionType"}, f"{where}.S3DataSource")
    if is_file(source["S3Uri"]):
        if not source["S3Uri"].startswith("file:///"):
            raise ValidationFailed(
                f"{where}.S3Uri: a file:// URI must be absolute, like file:///home/me/data; given:"
                f" {source['S3Uri']}."
            )
    else:
        _s3(f"{where}.S3Uri", source["S3Uri"])


# --- building blocks ----------------------------------------------------------


def _only(members: Mapping[str, Any], honoured: set[str], where: str) -> None:
    """Refuse the first member that asks for something beyond ``honoured``."""
    for member, value in members.items():
        if member not in honoured and _asks(value):
            _refuse(f"{where}.{member}", _ONLY_ON_AWS)


def _asks(value: Any) -> bool:
    """Whether a value asks for anything: `false`, 0, empty, and structures of such, do not."""
    children: dict[type, Callable[[Any], Any]] = {dict: lambda v: v.values(), list: iter}
    if type(value) in children:
        return any(_asks(child) for child in children[type(value)](value))
    return bool(value)


def _one_of(where: str, given: Any, *valid: str) -> None:
    if given not in valid:
        raise ValidationFailed(
            f"{where}: {given!r} is not supported by this backend. Valid: {', '.join(map(repr, valid))}."
        )


def _refuse(member: str, reason: str) -> None:
    raise ValidationFailed(f"{member} is not supported: {reason}.")


def _s3(where: str, uri: str) -> None:
    try:
        parse_s3(uri)
    except ValueError as error:
        raise ValidationFailed(f"{where}: {error}") from None
