"""The estimator's keyword arguments, recovered from the description of an existing job. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from windtunnel.request.build import base_from_job_name, decoded_hyperparameter
from windtunnel.request.checks import SDK_PREFIX
from windtunnel.request.instance_groups import from_request


def arguments_of(described: Mapping[str, Any], model_channel_name: str) -> dict[str, Any]:
    """Keyword arguments of an estimator that would start this job again, as far as its description has them."""
    resources, stopping = described["ResourceConfig"], described["StoppingCondition"]
    algorithm, output = described["AlgorithmSpecification"], described["OutputDataConfig"]
    checkpoint, vpc = described.get("CheckpointConfig", {}), described.get("VpcConfig", {})
    model = [
        channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in described.get("InputDataConfig", [])
        if channel["ChannelName"] == model_channel_name and "S3DataSource" in channel["DataSource"]
    ]
    found = {
        "role": described["RoleArn"],
        "instance_count": resources.get("InstanceCount"),
        "instance_type": resources.get("InstanceType"),
        "instance_groups": from_request(resources) or None,
        "volume_size": resources.get("VolumeSizeInGB"),
        "volume_kms_key": resources.get("VolumeKmsKeyId"),
        "keep_alive_period_in_seconds": resources.get("KeepAlivePeriodInSeconds"),
        "max_run": stopping["MaxRuntimeInSeconds"],
        "max_wait": stopping.get("MaxWaitTimeInSeconds"),
        "use_spot_instances": described.get("EnableManagedSpotTraining") or None,
        "input_mode": algorithm["TrainingInputMode"],
        "metric_definitions": algorithm.get("MetricDefinitions"),
        "container_entry_point": algorithm.get("ContainerEntrypoint"),
        "container_arguments": algorithm.get("ContainerArguments"),
        "output_path": output["S3OutputPath"],
        "output_kms_key": output.get("KmsKeyId") or None,
        "disable_output_compression": output.get("CompressionType") == "NONE" or None,
        "base_job_name": base_from_job_name(described["TrainingJobName"]),
        "environment": described.get("Environment") or None,
        "checkpoint_s3_uri": checkpoint.get("S3Uri"),
        "checkpoint_local_path": checkpoint.get("LocalPath"),
        "subnets": vpc.get("Subnets"),
        "security_group_ids": vpc.get("SecurityGroupIds"),
        "enable_network_isolation": described.get("EnableNetworkIsolation") or None,
        "encrypt_inter_container_traffic": described.get("EnableInterContainerTrafficEncryption") or None,
        "max_retry_attempts": described.get("RetryStrategy", {}).get("MaximumRetryAttempts"),
        "model_uri": model[0] if model else None,
        "hyperparameters": dict(described.get("HyperParameters", {})),
    }
    return {name: value for name, value in found.items() if value is not None}


def code_arguments(hyperparameters: Mapping[str, str]) -> dict[str, Any]:
    """Entry point, source tarball, distribution and the user's own values, decoded from a job's record."""
    values = {key: decoded_hyperparameter(value) for key, value in hyperparameters.items()}
    enabled = bool(values.get("sagemaker_torch_distributed_enabled"))
    distribution: dict[str, Any] = {"torch_distributed": {"enabled": True}}
    if values.get("sagemaker_distribution_instance_groups"):
        distribution["instance_groups"] = values["sagemaker_distribution_instance_groups"]
    return {
        "entry_point": values.get("sagemaker_program"),
        "source_dir": values.get("sagemaker_submit_directory"),
        "container_log_level": values.get("sagemaker_container_log_level", logging.INFO),
        "distribution": distribution if enabled else None,
        "hyperparameters": {key: value for key, value in values.items() if not key.startswith(SDK_PREFIX)},
    }
