"""The arguments that all estimators share: names, order, defaults and meanings of SageMaker SDK v2.

This is the only list of them. The estimators inherit the arguments as attributes (``estimator.instance_type`` can be
read and changed, as in SDK v2), the request is built from them, and other keywords are refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from windtunnel.errors import ConfigurationError, UnsupportedArgument, did_you_mean

Tags = list[dict[str, str]] | dict[str, str]
AnyPath = str | os.PathLike[str]

RENAMED = {
    "train_instance_count": "instance_count",
    "train_instance_type": "instance_type",
    "train_max_run": "max_run",
    "train_max_wait": "max_wait",
    "train_use_spot_instances": "use_spot_instances",
    "train_volume_kms_key": "volume_kms_key",
    "train_volume_size": "volume_size",
    "distributions": "distribution",
    "image_name": "image_uri",
}
"""Argument names of SageMaker SDK v1, each with its name in v2."""


@dataclass
class JobArguments:
    """What a training job needs to know, apart from its code, image and hyperparameters.

    Attributes:
        role: IAM role, name or ARN. Optional locally, required on AWS.
        instance_count: Number of instances, >= 1. Not with ``instance_groups``.
        instance_type: E.g. ``ml.trn1.2xlarge`` or ``ml.trn1.32xlarge``; types without NeuronCores on AWS only.
            Not with ``instance_groups``.
        keep_alive_period_in_seconds: Warm pool: how long containers are kept for the next job, 0 to 21,600 s.
        volume_size: GB of storage.
        volume_kms_key: KMS key of that storage.
        max_run: Seconds after which the job is stopped, 1 to 28 days.
        input_mode: ``File`` or ``FastFile``; on AWS also ``Pipe``.
        output_path: ``s3://`` prefix of model.tar.gz; default: the session's bucket.
        output_kms_key: KMS key of the output and of the uploaded code.
        base_job_name: Start of generated job names; default: the image's repository.
        sagemaker_session: The same as ``session``; SDK v2's name.
        tags: ``{"key": "value"}`` or ``[{"Key": ..., "Value": ...}]``.
        subnets: With ``security_group_ids``: the VPC; without effect here.
        security_group_ids: With ``subnets``: the VPC; without effect here.
        model_uri: A model to start from, as one more channel.
        model_channel_name: Name of that channel.
        metric_definitions: ``[{"Name": ..., "Regex": ...}]`` applied to the log.
        encrypt_inter_container_traffic: Encrypt traffic between instances.
        use_spot_instances: Managed spot training; needs ``max_wait``. Interruptions are simulated here.
        max_wait: Seconds to wait for a spot job, >= ``max_run``.
        checkpoint_s3_uri: ``s3://`` prefix that is kept in sync with the checkpoint folder.
        checkpoint_local_path: Checkpoint folder in the container; default /opt/ml/checkpoints.
        rules: Debugger rules; refused unless empty.
        debugger_hook_config: Sent as DebugHookConfig if it is a mapping; None or True: SDK v2's default; False:
            not sent.
        tensorboard_output_config: Sent as TensorBoardOutputConfig: where event files go.
        enable_sagemaker_metrics: Metrics time series; on by default for PyTorch and HuggingFace.
        enable_network_isolation: The container reaches only the other hosts of the job.
        profiler_config: Sent as ProfilerConfig; refused on Trainium, which SageMaker's profiler does not
            support.
        disable_profiler: True on Trainium, whatever is given.
        environment: Environment variables of the container.
        max_retry_attempts: 1 to 30.
        source_dir: Directory with the code, or ``s3://.../sourcedir.tar.gz``. Caches, ``.git`` and virtual environments
            in it are left out.
        git_config: Refused: clone first, then give the directory.
        container_log_level: Log level of the training toolkit.
        code_location: ``s3://`` prefix of the uploaded code; default: the output bucket.
        entry_point: The script; inside ``source_dir`` if that is given.
        dependencies: Files and directories put next to the script.
        instance_groups: A list of `InstanceGroup`: a cluster of several instance types.
        training_repository_access_mode: ``Platform`` or ``Vpc``; AWS only.
        training_repository_credentials_provider_arn: AWS only.
        enable_infra_check: AWS only.
        container_entry_point: Replaces the image's entry point.
        container_arguments: Arguments of that entry point.
        disable_output_compression: Upload the model as files.
        enable_remote_debug: AWS only.
        enable_session_tag_chaining: AWS only.
        training_plan: ARN of a training plan; AWS only.
        instance_placement_config: UltraServer placement; AWS only.
        session: Where the job runs: None (the local backend), a `LocalSession`, an `AwsSession` or a
            boto3.Session.
        local_cores: Rehearse with this many NeuronCores a host instead of all; local sessions only. The
            environment variable WINDTUNNEL_LOCAL_CORES is its default.
        max_cost: US dollars that the job's instances may cost. On AWS ``max_run`` is lowered so that the bill
            stays within it; here nothing is charged, and a message says what AWS would do. The environment
            variable WINDTUNNEL_MAX_COST is its default.
    """

    role: str | None = None
    instance_count: int | None = None
    instance_type: str | None = None
    keep_alive_period_in_seconds: int | None = None
    volume_size: int = 30
    volume_kms_key: str | None = None
    max_run: int = 24 * 60 * 60
    input_mode: str = "File"
    output_path: str | None = None
    output_kms_key: str | None = None
    base_job_name: str | None = None
    sagemaker_session: Any = None
    tags: Tags | None = None
    subnets: list[str] | None = None
    security_group_ids: list[str] | None = None
    model_uri: AnyPath | None = None
    model_channel_name: str = "model"
    metric_definitions: list[dict[str, str]] | None = None
    encrypt_inter_container_traffic: bool | None = None
    use_spot_instances: bool = False
    max_wait: int | None = None
    checkpoint_s3_uri: str | None = None
    checkpoint_local_path: str | None = None
    rules: list[Any] | None = None
    debugger_hook_config: bool | Mapping[str, Any] | None = None
    tensorboard_output_config: Mapping[str, Any] | None = None
    enable_sagemaker_metrics: bool | None = None
    enable_network_isolation: bool | None = None
    profiler_config: Mapping[str, Any] | None = None
    disable_profiler: bool | None = None
    environment: Mapping[str, str] | None = None
    max_retry_attempts: int | None = None
    source_dir: AnyPath | None = None
    git_config: Mapping[str, str] | None = None
    container_log_level: int = logging.INFO
    code_location: str | None = None
    entry_point: AnyPath | None = None
    dependencies: list[AnyPath] | None = None
    instance_groups: list[Any] | None = None
    training_repository_access_mode: str | None = None
    training_repository_credentials_provider_arn: str | None = None
    enable_infra_check: bool | None = None
    container_entry_point: list[str] | None = None
    container_arguments: list[str] | None = None
    disable_output_compression: bool = False
    enable_remote_debug: bool | None = None
    enable_session_tag_chaining: bool | None = None
    training_plan: str | None = None
    instance_placement_config: Mapping[str, Any] | None = None
    session: Any = None
    local_cores: int | None = None
    max_cost: float | None = None


ARGUMENT_NAMES = tuple(field.name for field in fields(JobArguments))

_REFUSED: Mapping[str, str] = {
    "git_config": "clone the repository and give source_dir= its path: a job runs what is on disk",
    "rules": "SageMaker Debugger's rules need its service: check the metrics in the script or in the report",
    "compiler_config": "the SageMaker Training Compiler is for GPUs: on Trainium torch_xla compiles",
    "training_recipe": "recipes are fetched from a service: give entry_point= and source_dir=",
    "recipe_overrides": "recipes are fetched from a service: give hyperparameters=",
    "tensorflow_version": "only PyTorch runs on Trainium here: give pytorch_version=",
}

_AWS_ONLY: Sequence[str] = (
    "training_repository_access_mode",
    "training_repository_credentials_provider_arn",
    "enable_infra_check",
    "enable_remote_debug",
    "enable_session_tag_chaining",
    "training_plan",
    "instance_placement_config",
)


_INSTEAD: Mapping[str, str] = {
    "enable_remote_debug": "`docker exec -it` enters the container of a local job",
    "training_repository_access_mode": "images are the local Docker engine's",
}


def refuse_unknown(
    called: str, given: Mapping[str, Any], valid: Collection[str], named: Iterable[str]
) -> None:
    """Raise a TypeError for a keyword that ``called`` does not know, with similar names; ConfigurationError for v1's.

    ``named``: arguments in its own signature, to suggest too; they are never in ``given``.
    """
    for name in given:
        if name in RENAMED:
            raise ConfigurationError(
                f"{called}({name}=...): renamed in SageMaker SDK v2 to {RENAMED[name]}=."
            )
        if name not in valid:
            raise TypeError(f"{called}() has no argument {name!r}.{did_you_mean(name, (*valid, *named))}")


def refuse_unsupported(given: Mapping[str, Any], reasons: Mapping[str, str] = _REFUSED) -> None:
    """Raise `UnsupportedArgument` for arguments of SDK v2 that would otherwise be ignored silently."""
    for name, reason in reasons.items():
        if given.get(name):
            raise UnsupportedArgument(f"{name}= is not supported: {reason}.")


def refuse_aws_only(arguments: JobArguments) -> None:
    """Raise `UnsupportedArgument` for arguments that the local backend could only ignore."""
    for name in _AWS_ONLY:
        if getattr(arguments, name):
            instead = "; " + _INSTEAD[name] if name in _INSTEAD else ""
            raise UnsupportedArgument(
                f"{name}= has no meaning on the local backend{instead}. Leave it out, or run on AWS (session=)."
            )


def tag_list(tags: Tags | None) -> list[dict[str, str]] | None:
    """Tags as AWS's requests have them: a list of ``{"Key": ..., "Value": ...}``."""
    if tags is None:
        return None
    if isinstance(tags, Mapping):
        return [{"Key": str(key), "Value": str(value)} for key, value in tags.items()]
    return [dict(tag) for tag in tags]
