"""Checks whether a request that asks for a warm pool (KeepAlivePeriodInSeconds) can have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.ports import Runner
from windtunnel_local.service.request.plan import local_image


def check_keep_alive(request: Mapping[str, Any], runner: Runner, config: ServiceConfig) -> None:
    """Refuse KeepAlivePeriodInSeconds if the containers of the request cannot be kept.

    Raises:
        ValidationFailed: names the member, runner or image that excludes a warm pool.
    """
    resources = request.get("ResourceConfig", {})
    seconds = resources.get("KeepAlivePeriodInSeconds")
    if not seconds:
        return
    member = "ResourceConfig.KeepAlivePeriodInSeconds"
    if request.get("EnableManagedSpotTraining"):
        raise ValidationFailed(
            f"{member} cannot be used with EnableManagedSpotTraining: warm pools do not support spot"
            f" instances. Leave one of them out. Given: {seconds}."
        )
    if resources.get("InstanceGroups"):
        raise ValidationFailed(
            f"{member} cannot be used with ResourceConfig.InstanceGroups: warm pools do not support"
            f" heterogeneous clusters. Leave one of them out. Given: {seconds}."
        )
    if not runner.keeps_containers:
        raise ValidationFailed(
            f"{member} is not supported by the {runner.name} runner: it keeps no containers. Leave it"
            f" out, or set WINDTUNNEL_RUNNER to one that does. Given: {seconds}."
        )
    image = request["AlgorithmSpecification"]["TrainingImage"]
    if local_image(image, config) != config.image:
        raise ValidationFailed(
            f"{member} is supported for AWS's Neuron training images only, not for {image}: the container of"
            " another image ends with its program. Leave it out, or name one of AWS's"
            f" pytorch-training-neuronx images. Given: {seconds}."
        )
