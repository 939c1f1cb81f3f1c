"""A request as Python code that sends it: as a call of boto3, and as an Estimator of the SDK. Pure.

Members that an Estimator cannot express are named in comments above it; none is left out silently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windtunnel.priceperf.instances import NEURON_TYPES

_WIDTH = 92
SDK_PREFIX = "sagemaker_"
"""Prefix of the hyperparameters that an SDK adds for AWS's toolkit."""
_TORCHRUN = "sagemaker_torch_distributed_enabled"
_GROUPS = "sagemaker_distribution_instance_groups"
_OF_CODE = {
    "sagemaker_submit_directory",
    "sagemaker_program",
    "sagemaker_container_log_level",
    "sagemaker_job_name",
    "sagemaker_region",
}
_OWN = {*_OF_CODE, "sagemaker_instance_type", _TORCHRUN, _GROUPS}
"""The hyperparameters that an Estimator adds by itself."""
_CODE_IN_CONTAINER = "/opt/ml/input/data/code/"
_LOG_LEVEL = 20
_DEFAULT_MAX_RUN_S = 86_400
_DEFAULT_VOLUME_GB = 30
_PYTORCH = "pytorch-training"
_HUGGING_FACE = "huggingface-pytorch-training"


@dataclass(frozen=True)
class _Name:
    """A value that is written as code: ``TrainingInput(...)``."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass
class _Call:
    """The code in parts: arguments of the Estimator and of fit(), names to import, and members that are lost."""

    arguments: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)


def boto3_text(request: Mapping[str, Any]) -> str:
    """The request as ``boto3.client("sagemaker").create_training_job(...)``."""
    members = [f"    {name}={_python(value, 4)},\n" for name, value in request.items()]
    return f'import boto3\n\nboto3.client("sagemaker").create_training_job(\n{"".join(members)})\n'


def estimator_text(request: Mapping[str, Any]) -> str:
    """The Estimator whose ``fit()`` sends this request."""
    call, kind = _Call(), "Estimator"
    call.arguments["image_uri"] = request["AlgorithmSpecification"].get("TrainingImage")
    values = _decoded(request.get("HyperParameters", {}))
    if values is not None and _of_script(request, values):
        kind = _kind(request, values)
        _script(call, request, values)
    else:
        call.arguments["hyperparameters"] = dict(request.get("HyperParameters", {})) or None
    call.imports.add(kind)
    _resources(call, request["ResourceConfig"])
    _limits(call, request)
    _places(call, request)
    _switches(call, request)
    _observation(call, request)
    _channels(call, request)
    if "ExperimentConfig" in request:
        call.fit["experiment_config"] = request["ExperimentConfig"]
    return _written(call, kind, request["TrainingJobName"])


def _written(call: _Call, kind: str, name: str) -> str:
    lost = "".join(f"# An Estimator cannot say: {what}.\n" for what in call.lost)
    arguments = [
        f"    {key}={_python(value, 4)},\n" for key, value in call.arguments.items() if value is not None
    ]
    inputs = [f"    {_python(call.inputs, 4)},\n"] if call.inputs else []
    fit = [f"    {key}={_python(value, 4)},\n" for key, value in {"job_name": name, **call.fit}.items()]
    return (
        f"from windtunnel import {', '.join(sorted(call.imports))}\n\n{lost}"
        f"estimator = {kind}(\n{''.join(arguments)})\n"
        f"job = estimator.fit(\n{''.join(inputs)}{''.join(fit)})\n"
    )


def _python(value: Any, indent: int) -> str:
    """The value as a Python literal, with one item on a line if it is long."""
    text = repr(value)
    if indent + len(text) <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return text
    margin, inner = " " * indent, indent + 4
    if isinstance(value, dict):
        items = [f"{key!r}: {_python(item, inner)}" for key, item in value.items()]
        return "{\n" + "".join(f"{margin}    {item},\n" for item in items) + margin + "}"
    return "[\n" + "".join(f"{margin}    {_python(item, inner)},\n" for item in value) + margin + "]"


def _decoded(values: Mapping[str, str]) -> dict[str, Any] | None:
    """The hyperparameters as the SDK was given them; None if they are not all JSON as the SDK writes it."""
    try:
        found = {key: json.loads(value, parse_constant=_no_python) for key, value in values.items()}
    except (ValueError, RecursionError):
        return None
    return found if all(json.dumps(found[key]) == value for key, value in values.items()) else None


def _no_python(constant: str) -> None:
    raise ValueError(f"{constant} has no name in Python.")


def _of_script(request: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether the hyperparameters for code and job are exactly those that the SDK adds to such a request."""
    directory, distributed = str(values.get("sagemaker_submit_directory")), _TORCHRUN in values
    kind = request["ResourceConfig"].get("InstanceType")
    return (
        values.keys() >= _OF_CODE
        and directory.startswith(("s3://", _CODE_IN_CONTAINER))
        and values["sagemaker_job_name"] == request["TrainingJobName"]
        and values.get(_TORCHRUN, True) is True
        and values.get("sagemaker_instance_type") == (kind if distributed else None)
        and (distributed or _GROUPS not in values)
    )


def _kind(request: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """The Estimator's class: by the image, or PyTorch if torchrun is used, as only that class starts it."""
    repository = request["AlgorithmSpecification"].get("TrainingImage", "").rpartition("/")[2]
    if repository.startswith(_HUGGING_FACE):
        return "HuggingFace"
    return "PyTorch" if repository.startswith(_PYTORCH) or _TORCHRUN in values else "Estimator"


def _script(call: _Call, request: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    call.arguments["entry_point"] = values["sagemaker_program"]
    call.arguments["source_dir"] = _code_uri(call, request, values)
    level = values["sagemaker_container_log_level"]
    call.arguments["container_log_level"] = None if level == _LOG_LEVEL else level
    if _TORCHRUN in values:
        distribution: dict[str, Any] = {"torch_distributed": {"enabled": True}}
        if values.get(_GROUPS):
            distribution["instance_groups"] = values[_GROUPS]
        call.arguments["distribution"] = distribution
    own = {key: value for key, value in values.items() if key not in _OWN}
    call.arguments["hyperparameters"] = own or None


def _code_uri(call: _Call, request: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """The code's URI. A job with network isolation gets its code as a channel."""
    directory = str(values["sagemaker_submit_directory"])
    if directory.startswith("s3://"):
        return directory
    for channel in request.get("InputDataConfig", []):
        if channel["ChannelName"] == "code":
            return str(channel["DataSource"]["S3DataSource"]["S3Uri"])
    call.lost.append(f"where the code of {directory} came from")
    return directory


def _resources(call: _Call, resources: Mapping[str, Any]) -> None:
    groups = resources.get("InstanceGroups")
    call.arguments["instance_type"] = resources.get("InstanceType")
    call.arguments["instance_count"] = resources.get("InstanceCount")
    if groups:
        call.imports.add("InstanceGroup")
        call.arguments["instance_groups"] = [
            _Name(
                f"InstanceGroup({group['InstanceGroupName']!r}, {group['InstanceType']!r}, {group['InstanceCount']})"
            )
            for group in groups
        ]
    if "VolumeSizeInGB" not in resources:
        call.lost.append(f"a ResourceConfig without VolumeSizeInGB; it sends {_DEFAULT_VOLUME_GB}")
    size = resources.get("VolumeSizeInGB", _DEFAULT_VOLUME_GB)
    call.arguments["volume_size"] = None if size == _DEFAULT_VOLUME_GB else size
    call.arguments["volume_kms_key"] = resources.get("VolumeKmsKeyId")
    call.arguments["keep_alive_period_in_seconds"] = resources.get("KeepAlivePeriodInSeconds")


def _limits(call: _Call, request: Mapping[str, Any]) -> None:
    condition = request.get("StoppingCondition", {})
    most = condition.get("MaxRuntimeInSeconds", _DEFAULT_MAX_RUN_S)
    call.arguments["max_run"] = None if most == _DEFAULT_MAX_RUN_S else most
    call.arguments["max_wait"] = condition.get("MaxWaitTimeInSeconds")
    call.arguments["use_spot_instances"] = request.get("EnableManagedSpotTraining") or None
    call.arguments["max_retry_attempts"] = request.get("RetryStrategy", {}).get("MaximumRetryAttempts")
    if "MaxPendingTimeInSeconds" in condition:
        call.lost.append("StoppingCondition.MaxPendingTimeInSeconds")


def _places(call: _Call, request: Mapping[str, Any]) -> None:
    output, checkpoint = request["OutputDataConfig"], request.get("CheckpointConfig", {})
    call.arguments.update(
        role=request["RoleArn"],
        output_path=output["S3OutputPath"],
        output_kms_key=output.get("KmsKeyId"),
        disable_output_compression=output.get("CompressionType") == "NONE" or None,
        checkpoint_s3_uri=checkpoint.get("S3Uri"),
        checkpoint_local_path=checkpoint.get("LocalPath"),
        tensorboard_output_config=request.get("TensorBoardOutputConfig"),
        environment=request.get("Environment"),
        tags=request.get("Tags"),
    )


def _switches(call: _Call, request: Mapping[str, Any]) -> None:
    algorithm, vpc = request["AlgorithmSpecification"], request.get("VpcConfig", {})
    mode = algorithm.get("TrainingInputMode", "File")
    call.arguments.update(
        input_mode=None if mode == "File" else mode,
        metric_definitions=algorithm.get("MetricDefinitions"),
        enable_sagemaker_metrics=algorithm.get("EnableSageMakerMetricsTimeSeries"),
        container_entry_point=algorithm.get("ContainerEntrypoint"),
        container_arguments=algorithm.get("ContainerArguments"),
        enable_network_isolation=request.get("EnableNetworkIsolation") or None,
        encrypt_inter_container_traffic=request.get("EnableInterContainerTrafficEncryption") or None,
        subnets=vpc.get("Subnets"),
        security_group_ids=vpc.get("SecurityGroupIds"),
    )
    if algorithm.get("TrainingImageConfig"):
        call.lost.append("AlgorithmSpecification.TrainingImageConfig")


def _observation(call: _Call, request: Mapping[str, Any]) -> None:
    """Debugger and profiler. The SDK v2 sends both members by default."""
    path = request["OutputDataConfig"]["S3OutputPath"]
    hook = request.get("DebugHookConfig")
    if hook is None:
        call.arguments["debugger_hook_config"] = False
    elif hook != {"S3OutputPath": path, "CollectionConfigurations": []}:
        call.arguments["debugger_hook_config"] = hook
    profiler = request.get("ProfilerConfig")
    trainium = request["ResourceConfig"].get("InstanceType") in NEURON_TYPES
    if profiler is None:
        call.lost.append("a request without ProfilerConfig; it sends one that changes nothing here")
    elif profiler == {"DisableProfiler": True}:
        call.arguments["disable_profiler"] = None if trainium else True
    elif trainium:
        call.lost.append("ProfilerConfig, which SageMaker does not have for Trainium")
    elif profiler != {"S3OutputPath": path, "DisableProfiler": False}:
        call.arguments["profiler_config"] = profiler
    for member in (
        "DebugRuleConfigurations",
        "ProfilerRuleConfigurations",
        "InfraCheckConfig",
        "RemoteDebugConfig",
    ):
        if member in request:
            call.lost.append(member)


def _channels(call: _Call, request: Mapping[str, Any]) -> None:
    isolated = bool(request.get("EnableNetworkIsolation")) and call.arguments.get("source_dir")
    for channel in request.get("InputDataConfig", []):
        name = channel["ChannelName"]
        if not (isolated and name == "code"):  # the Estimator adds this channel
            call.inputs[name] = _channel(call, channel)


def _channel(call: _Call, channel: Mapping[str, Any]) -> Any:
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        call.lost.append(f"the source of channel {channel['ChannelName']}")
        return "s3://"
    distribution = source.get("S3DataDistributionType")
    shuffle, aims = channel.get("ShuffleConfig"), "TargetAttributeName" in channel
    if distribution is None and not aims:
        call.lost.append(
            f"channel {channel['ChannelName']} without S3DataDistributionType; it sends the default"
        )
    given = {
        "distribution": None if distribution == "FullyReplicated" and not aims else distribution,
        "compression": channel.get("CompressionType"),
        "content_type": channel.get("ContentType"),
        "record_wrapping": channel.get("RecordWrapperType"),
        "s3_data_type": None if source["S3DataType"] == "S3Prefix" else source["S3DataType"],
        "instance_groups": source.get("InstanceGroupNames"),
        "input_mode": channel.get("InputMode"),
        "attribute_names": source.get("AttributeNames"),
        "target_attribute_name": channel.get("TargetAttributeName"),
        "shuffle_config": None if shuffle is None else _Name(f"ShuffleConfig(seed={shuffle['Seed']})"),
    }
    more = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    if not more:
        return source["S3Uri"]
    call.imports.add("TrainingInput")
    if shuffle is not None:
        call.imports.add("ShuffleConfig")
    return _Name(f"TrainingInput({', '.join([repr(source['S3Uri']), *more])})")
