"""The requests that deploy a model: CreateModel, CreateEndpointConfig, CreateEndpoint. Pure.

Members and defaults are those that SageMaker SDK v2 sends; limits are those of botocore's service model (2017-07-24).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.request import checks
from windtunnel.request.arguments import Tags, tag_list
from windtunnel.request.members import only_given

CODE_IN_CONTAINER = "/opt/ml/model/code"
VARIANT = "AllTraffic"
LIMIT_TAG = "windtunnel:max-seconds"
"""Tag of a local endpoint: the backend deletes the endpoint that many seconds after its creation."""
MAX_ENVIRONMENT_TEXT = 1024
MAX_VOLUME_GB = 512
STARTUP_S = (60, 3600)


@dataclass(frozen=True)
class Hosting:
    """Where an endpoint runs. Names are `Model.deploy`'s; volume in GB, times in seconds, None: AWS's default."""

    instance_type: str | None
    initial_instance_count: int
    kms_key: str | None = None
    volume_size: int | None = None
    model_data_download_timeout: int | None = None
    container_startup_health_check_timeout: int | None = None
    async_inference: Mapping[str, Any] | None = None
    """AsyncInferenceConfig's members."""

    def check(self) -> None:
        """Check the values before AWS would refuse them.

        Raises:
            ConfigurationError: names the argument, the value and the limit.
        """
        checks.check_serving_instance(self.instance_type)
        checks.check_range("initial_instance_count", self.initial_instance_count, 1, None, "")
        if self.volume_size is not None:
            checks.check_range("volume_size", self.volume_size, 1, MAX_VOLUME_GB, "GB")
        for name in ("model_data_download_timeout", "container_startup_health_check_timeout"):
            if getattr(self, name) is not None:
                checks.check_range(name, getattr(self, name), *STARTUP_S, "s")


def model_request(
    name: str,
    role_arn: str,
    image_uri: str,
    model_data: str | None,
    environment: Mapping[str, str],
    *,
    tags: Tags | None,
    vpc_config: Mapping[str, Any] | None,
    enable_network_isolation: bool | None,
) -> dict[str, Any]:
    """CreateModel's members.

    Raises:
        ConfigurationError: what AWS would refuse.
    """
    checks.check_job_name(name, "name")
    checks.check_environment(environment, MAX_ENVIRONMENT_TEXT)
    container = only_given(Image=image_uri, Environment=dict(environment), ModelDataUrl=model_data)
    return {
        "ModelName": name,
        "PrimaryContainer": container,
        "ExecutionRoleArn": role_arn,
        **only_given(
            VpcConfig=dict(vpc_config) if vpc_config else None,
            EnableNetworkIsolation=enable_network_isolation or None,
            Tags=_tags(tags),
        ),
    }


def config_request(name: str, model: str, hosting: Hosting, tags: Tags | None) -> dict[str, Any]:
    """CreateEndpointConfig's members: one variant that gets all traffic.

    Raises:
        ConfigurationError: what AWS would refuse.
    """
    hosting.check()
    variant = {
        "VariantName": VARIANT,
        "ModelName": model,
        "InitialInstanceCount": hosting.initial_instance_count,
        "InstanceType": hosting.instance_type,
        "InitialVariantWeight": 1,
        **only_given(
            VolumeSizeInGB=hosting.volume_size,
            ModelDataDownloadTimeoutInSeconds=hosting.model_data_download_timeout,
            ContainerStartupHealthCheckTimeoutInSeconds=hosting.container_startup_health_check_timeout,
        ),
    }
    more = only_given(
        KmsKeyId=hosting.kms_key, Tags=_tags(tags), AsyncInferenceConfig=hosting.async_inference
    )
    return {"EndpointConfigName": name, "ProductionVariants": [variant], **more}


def endpoint_request(
    name: str, config: str, tags: Tags | None = None, limit_s: int | None = None
) -> dict[str, Any]:
    """CreateEndpoint's members. ``limit_s``: see `LIMIT_TAG`.

    Raises:
        ConfigurationError: what AWS would refuse.
    """
    checks.check_job_name(name, "endpoint_name")
    all_tags = list(tag_list(tags) or ()) + ([{"Key": LIMIT_TAG, "Value": str(limit_s)}] if limit_s else [])
    return {"EndpointName": name, "EndpointConfigName": config, **only_given(Tags=_tags(all_tags))}


def _tags(tags: Tags | None) -> list[dict[str, str]] | None:
    checks.check_tags(tags or [])
    return tag_list(tags) or None
