"""Checks of requests for models and endpoints, beyond those of botocore's model and of the tables of members."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from windtunnel_local.service.ground.errors import NoSuchBucket, NoSuchKey, ValidationFailed
from windtunnel_local.service.ground.hosting import LIMIT_TAG, STARTUP_S, AsyncInference, Resource, Variant
from windtunnel_local.service.ground.ports import ObjectStore, Runner
from windtunnel_local.service.ground.uris import member_s3
from windtunnel_local.service.hosting.hosting_members import ENDPOINT_CONFIG, MODEL
from windtunnel_local.service.request.images import check_reference

_MOST_INSTANCES = 32
_AT_ONCE = 4
"""The default of MaxConcurrentInvocationsPerInstance: asynchronous invocations that an instance gets at once. AWS does
not publish its own default."""


def check_model(request: Mapping[str, Any], objects: ObjectStore) -> None:
    """Check a CreateModel request; raises ``ValidationFailed``."""
    MODEL.check(request)
    container = container_of(request)
    if container.get("Mode", "SingleModel") != "SingleModel":
        raise ValidationFailed(
            "Windtunnel does not serve several models (Mode MultiModel); make an endpoint for each."
        )
    if "Image" not in container:
        raise ValidationFailed("The container needs an Image.")
    check_reference("Image", container["Image"])
    uri = model_uri(container)
    if uri is None:
        return
    bucket, key = member_s3("ModelDataUrl", uri)
    try:
        found = (
            bool(objects.list(bucket, key, limit=1))
            if uri.endswith("/")
            else objects.path(bucket, key).exists()
        )
    except (NoSuchBucket, NoSuchKey):
        found = False
    if not found:
        raise ValidationFailed(f"Could not find model data at {uri}.")


def container_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one container of a CreateModel request; raises ``ValidationFailed``."""
    containers: Sequence[Mapping[str, Any]] = request.get("Containers") or ()
    primary = request.get("PrimaryContainer")
    if (primary is None) == (len(containers) == 0):
        raise ValidationFailed("Give PrimaryContainer, or Containers with one container.")
    if len(containers) > 1:
        raise ValidationFailed(
            "Windtunnel does not serve inference pipelines (several Containers); put the steps into one container."
        )
    return containers[0] if primary is None else primary


def model_uri(container: Mapping[str, Any]) -> str | None:
    """The S3 URI of the model's data; None if it has none."""
    source = container.get("ModelDataSource", {}).get("S3DataSource")
    uri: str | None = container.get("ModelDataUrl") if source is None else source["S3Uri"]
    return uri


def check_config(request: Mapping[str, Any], objects: ObjectStore) -> None:
    """Check a CreateEndpointConfig request; raises ``ValidationFailed``."""
    ENDPOINT_CONFIG.check(request)
    wanted = async_inference(request)
    for uri in filter(None, (wanted.output, wanted.failure) if wanted is not None else ()):
        if not objects.has_bucket(member_s3("AsyncInferenceConfig", uri)[0]):
            raise ValidationFailed(
                f"AsyncInferenceConfig: the bucket of {uri} does not exist; create it first."
            )
    variants: Sequence[Mapping[str, Any]] = request["ProductionVariants"]
    for variant in variants:
        if "ModelName" not in variant:
            raise ValidationFailed(
                f"The variant {variant['VariantName']} needs a ModelName: inference components are not served."
            )
        if "InstanceType" not in variant:
            raise ValidationFailed(f"The variant {variant['VariantName']} needs an InstanceType.")
    names = [variant["VariantName"] for variant in variants]
    if len(set(names)) < len(names):
        raise ValidationFailed(f"Variant names must differ; given: {', '.join(names)}.")
    if not any(weight(variant) > 0 for variant in variants):
        raise ValidationFailed("The weights of all variants are 0: one at least must be more.")


def async_inference(config: Mapping[str, Any]) -> AsyncInference | None:
    """The AsyncInferenceConfig of an endpoint configuration; None if its endpoints answer in real time."""
    if "AsyncInferenceConfig" not in config:
        return None
    given = config["AsyncInferenceConfig"]
    where = given["OutputConfig"]
    if not where.get("S3OutputPath"):
        raise ValidationFailed(
            "AsyncInferenceConfig.OutputConfig needs an S3OutputPath: where answers are stored."
        )
    at_once = given.get("ClientConfig", {}).get("MaxConcurrentInvocationsPerInstance", _AT_ONCE)
    return AsyncInference(where["S3OutputPath"], where.get("S3FailurePath") or None, int(at_once))


def async_config(wanted: AsyncInference) -> dict[str, Any]:
    """AsyncInferenceConfig as DescribeEndpoint shows it."""
    where = {"S3OutputPath": wanted.output}
    if wanted.failure is not None:
        where["S3FailurePath"] = wanted.failure
    return {
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": wanted.at_once},
        "OutputConfig": where,
    }


def check_count(count: int) -> None:
    """Raise ``ValidationFailed`` if there would be more instances than one machine can run."""
    if count > _MOST_INSTANCES:
        raise ValidationFailed(
            f"There would be {count} instances. Each is a container of this machine: {_MOST_INSTANCES} are"
            " the most. Ask for fewer here."
        )


def check_runner(runner: Runner) -> None:
    """Raise ``ValidationFailed`` if the runner's containers cannot be called over the network."""
    if not runner.serves:
        raise ValidationFailed(
            f"The runner {runner.name} serves no models: that needs Docker. Start the backend with"
            " WINDTUNNEL_RUNNER=docker."
        )


def lifetime_s(tags: Mapping[str, str]) -> int | None:
    """Seconds from its creation after which an endpoint is deleted, by its `LIMIT_TAG`. Raises ``ValidationFailed``."""
    given = tags.get(LIMIT_TAG)
    if given is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,9}", given):
        raise ValidationFailed(
            f"The tag {LIMIT_TAG} is {given!r}; it must be a number of seconds, e.g. 3600."
        )
    return int(given)


def variant_of(described: Mapping[str, Any], model: Resource) -> Variant:
    """A production variant, with its model's current container."""
    return Variant(
        described["VariantName"],
        model.name,
        container_of(model.request),
        described["InstanceType"],
        int(described.get("InitialInstanceCount", 1)),
        weight(described),
        int(described.get("ContainerStartupHealthCheckTimeoutInSeconds", STARTUP_S)),
    )


def weight(variant: Mapping[str, Any]) -> float:
    """The weight of a production variant in a request."""
    return float(variant.get("InitialVariantWeight", 1.0))
