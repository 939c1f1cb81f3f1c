"""Build a `TrainingRequest` from arguments, channels and code. Pure: nothing is uploaded or sent."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.errors import ConfigurationError
from windtunnel.request import checks
from windtunnel.request.arguments import JobArguments, tag_list
from windtunnel.request.inputs import Channel, TrainingInput, local_path, split_s3
from windtunnel.request.instance_groups import to_request
from windtunnel.request.members import only_given
from windtunnel.request.source_archive import TARBALL_NAME, SourceTree
from windtunnel.request.training_request import PathUpload, SourceUpload, Target, TrainingRequest, Upload
from windtunnel.settings import LOCAL_CORES_VARIABLE

CODE_CHANNEL = "code"
CODE_IN_CONTAINER = f"/opt/ml/input/data/{CODE_CHANNEL}/{TARBALL_NAME}"


@dataclass(frozen=True)
class Code:
    """The code that a job runs: a tree to pack, or a tarball that is in S3 already."""

    script: str
    tree: SourceTree | None = None
    tarball_uri: str | None = None


def job_name_from_base(base: str, clock: Callable[[], float] = time.time) -> str:
    """``<base>-YYYY-MM-DD-HH-MM-SS-mmm`` in UTC, the base cut so that the name has at most 63 characters."""
    now = clock()
    stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime(now)) + f"-{int(now % 1 * 1000):03d}"
    return f"{base[: 63 - len(stamp) - 1].rstrip('-')}-{stamp}"


def base_from_job_name(name: str) -> str:
    """``base-2026-01-31-12-00-00-123`` -> ``base``; another name as it is."""
    parts = name.rsplit("-", 7)
    return parts[0] if len(parts) == 8 and all(part.isdigit() for part in parts[1:]) else name


def base_name_from_image(image_uri: str) -> str:
    """The repository's last part: ``.../pytorch-training:2.9.0`` -> ``pytorch-training``."""
    name = image_uri.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return re.sub(r"[^a-zA-Z0-9-]+", "-", name).strip("-") or "training-job"


def encode_hyperparameters(values: Mapping[str, Any]) -> dict[str, str]:
    """Every value as JSON text, as SDK v2 sends them: ``"train.py"`` with its quotes, ``3``, ``true``."""
    return {str(key): _encoded(str(key), value) for key, value in values.items()}


def decoded_hyperparameter(value: str) -> Any:
    """A value as the training toolkit reads it: JSON, else plain text (boto3's users send ``train.py`` unquoted)."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _encoded(key: str, value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"hyperparameter {key!r}={value!r:.80}: {error}. Text, numbers, True, False, None, and lists and "
            "dicts of these can be sent: convert it, e.g. with str()."
        ) from error


def build_request(
    arguments: JobArguments,
    *,
    target: Target,
    job_name: str,
    image_uri: str,
    hyperparameters: Mapping[str, str],
    channels: Mapping[str, Channel],
    code: Code | None,
    input_mode: str | None,
    experiment_config: Mapping[str, str] | None,
    checkpoints_exclude_debugger: bool,
) -> TrainingRequest:
    """The request for these arguments. ``hyperparameters`` are encoded; SageMaker's own are added here.

    ``input_mode`` replaces the arguments' (SDK v2: the mode of a `TrainingInput` given alone to ``fit``).

    Raises:
        ConfigurationError: AWS would refuse the request; raised before anything is uploaded.
    """
    checks.check_job_name(job_name)
    output_path = arguments.output_path or f"s3://{target.bucket}/"
    uploads: list[Upload] = []
    submit_directory = None
    code_uri = None
    if code is not None:
        code_uri = code.tarball_uri
        if code.tree is not None:
            upload = _source_upload(arguments, target, job_name, code.tree)
            uploads.append(upload)
            code_uri = f"s3://{upload.bucket}/{upload.key}"
        submit_directory = CODE_IN_CONTAINER if arguments.enable_network_isolation else code_uri
    data, data_uploads = _input_data(
        target, job_name, channels, code_uri if arguments.enable_network_isolation else None
    )
    uploads.extend(data_uploads)
    own = {} if code is None else _own_hyperparameters(arguments, target, job_name, code, submit_directory)
    all_hyperparameters = {**hyperparameters, **own}
    checks.check_hyperparameters(all_hyperparameters)
    parameters: dict[str, Any] = {
        "TrainingJobName": job_name,
        "AlgorithmSpecification": _algorithm(arguments, image_uri, input_mode or arguments.input_mode),
        "RoleArn": target.role_arn,
        "OutputDataConfig": only_given(
            S3OutputPath=output_path,
            KmsKeyId=arguments.output_kms_key,
            CompressionType="NONE" if arguments.disable_output_compression else None,
        ),
        "ResourceConfig": _resources(arguments),
        "StoppingCondition": only_given(
            MaxRuntimeInSeconds=arguments.max_run, MaxWaitTimeInSeconds=arguments.max_wait
        ),
        **only_given(
            InputDataConfig=data or None,
            HyperParameters=all_hyperparameters or None,
            Environment=_environment(arguments),
            Tags=tag_list(arguments.tags),
            ExperimentConfig=dict(experiment_config) if experiment_config else None,
        ),
        **_switches(arguments),
        **_observation(arguments, output_path, checkpoints_exclude_debugger),
    }
    return TrainingRequest(parameters, tuple(uploads))


def _source_upload(arguments: JobArguments, target: Target, job_name: str, tree: SourceTree) -> SourceUpload:
    output_bucket = split_s3(arguments.output_path)[0] if arguments.output_path else target.bucket
    bucket, prefix = split_s3(arguments.code_location) if arguments.code_location else (output_bucket, "")
    key = "/".join(part for part in (prefix.strip("/"), job_name, "source", TARBALL_NAME) if part)
    return SourceUpload(tree, bucket, key, arguments.output_kms_key if bucket == output_bucket else None)


def _input_data(
    target: Target,
    job_name: str,
    channels: Mapping[str, Channel],
    code_uri: str | None,
) -> tuple[list[dict[str, Any]], list[PathUpload]]:
    """InputDataConfig, and the uploads of local data that a job on AWS needs first."""
    wanted = dict(channels)
    if code_uri is not None:
        if CODE_CHANNEL in wanted:
            raise ConfigurationError(
                f"channel {CODE_CHANNEL!r} carries the code when enable_network_isolation=True. Rename yours."
            )
        wanted[CODE_CHANNEL] = TrainingInput(code_uri)
    checks.check_channel_count(len(wanted))
    data: list[dict[str, Any]] = []
    uploads: list[PathUpload] = []
    for name, channel in wanted.items():
        described = channel.to_channel(name)
        path = local_path(channel.s3_data) if isinstance(channel, TrainingInput) else None
        if path is not None and not target.local:
            upload = PathUpload(path, target.bucket, f"{job_name}/input/{name}")
            uploads.append(upload)
            described["DataSource"]["S3DataSource"]["S3Uri"] = f"s3://{upload.bucket}/{upload.prefix}/"
        data.append(described)
    return data, uploads


def _own_hyperparameters(
    arguments: JobArguments, target: Target, job_name: str, code: Code, submit_directory: str | None
) -> dict[str, str]:
    return encode_hyperparameters(
        {
            "sagemaker_submit_directory": submit_directory,
            "sagemaker_program": code.script,
            "sagemaker_container_log_level": arguments.container_log_level,
            "sagemaker_job_name": job_name,
            "sagemaker_region": target.region,
        }
    )


def _algorithm(arguments: JobArguments, image_uri: str, mode: str) -> dict[str, Any]:
    access = arguments.training_repository_access_mode
    provider = arguments.training_repository_credentials_provider_arn
    image_config = None
    if access is not None:
        image_config = only_given(
            TrainingRepositoryAccessMode=access,
            TrainingRepositoryAuthConfig=only_given(TrainingRepositoryCredentialsProviderArn=provider)
            or None,
        )
    return only_given(
        TrainingImage=image_uri,
        TrainingInputMode=mode,
        TrainingImageConfig=image_config,
        ContainerEntrypoint=arguments.container_entry_point,
        ContainerArguments=arguments.container_arguments,
        MetricDefinitions=arguments.metric_definitions,
        EnableSageMakerMetricsTimeSeries=arguments.enable_sagemaker_metrics,
    )


def _resources(arguments: JobArguments) -> dict[str, Any]:
    return only_given(
        InstanceCount=arguments.instance_count,
        InstanceType=arguments.instance_type,
        InstanceGroups=to_request(arguments.instance_groups),
        VolumeSizeInGB=arguments.volume_size,
        VolumeKmsKeyId=arguments.volume_kms_key,
        KeepAlivePeriodInSeconds=arguments.keep_alive_period_in_seconds,
        TrainingPlanArn=arguments.training_plan,
        InstancePlacementConfig=arguments.instance_placement_config,
    )


def _environment(arguments: JobArguments) -> Mapping[str, str] | None:
    if arguments.local_cores is None:
        return arguments.environment
    return {**(arguments.environment or {}), LOCAL_CORES_VARIABLE: str(arguments.local_cores)}


def _switches(arguments: JobArguments) -> dict[str, Any]:
    """Optional members of the request, each from one or two arguments."""
    checkpoint = None
    if arguments.checkpoint_s3_uri:
        checkpoint = only_given(S3Uri=arguments.checkpoint_s3_uri, LocalPath=arguments.checkpoint_local_path)
    vpc = None
    if arguments.subnets is not None:
        vpc = {"Subnets": arguments.subnets, "SecurityGroupIds": arguments.security_group_ids}
    retries = arguments.max_retry_attempts
    return only_given(
        CheckpointConfig=checkpoint,
        VpcConfig=vpc,
        EnableNetworkIsolation=arguments.enable_network_isolation or None,
        EnableInterContainerTrafficEncryption=arguments.encrypt_inter_container_traffic or None,
        EnableManagedSpotTraining=arguments.use_spot_instances or None,
        RetryStrategy=None if retries is None else {"MaximumRetryAttempts": retries},
        InfraCheckConfig=_flag("EnableInfraCheck", arguments.enable_infra_check),
        RemoteDebugConfig=_flag("EnableRemoteDebug", arguments.enable_remote_debug),
        SessionChainingConfig=_flag("EnableSessionTagChaining", arguments.enable_session_tag_chaining),
        TensorBoardOutputConfig=arguments.tensorboard_output_config,
    )


def _observation(
    arguments: JobArguments, output_path: str, checkpoints_exclude_debugger: bool
) -> dict[str, Any]:
    """DebugHookConfig and ProfilerConfig, with SDK v2's defaults."""
    hook: Any = arguments.debugger_hook_config
    if hook is None or hook is True or hook == {}:
        hook = {"S3OutputPath": output_path, "CollectionConfigurations": []}
    both = arguments.checkpoint_s3_uri and arguments.checkpoint_local_path
    if hook is False or (checkpoints_exclude_debugger and both):
        hook = None
    profiler: Any = arguments.profiler_config
    if profiler is None:
        off = bool(arguments.disable_profiler) or checks.is_trainium(arguments.instance_type)
        profiler = only_given(S3OutputPath=None if off else output_path, DisableProfiler=off)
    return only_given(DebugHookConfig=hook, ProfilerConfig=profiler)


def _flag(name: str, value: bool | None) -> dict[str, bool] | None:
    return None if value is None else {name: value}
