"""The arguments of `deploy` after its first two, and those of SDK v2 that are not supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel.errors import UnsupportedArgument, did_you_mean

DEPLOY_ARGUMENTS = (
    "serializer", "deserializer", "endpoint_name", "tags", "kms_key", "wait", "volume_size",
    "model_data_download_timeout", "container_startup_health_check_timeout", "async_inference_config",
    "max_cost", "max_hours",
)  # fmt: skip
"""Arguments of `Model.deploy` after number and type of its instances."""
_REFUSED: Mapping[str, str] = {
    "accelerator_type": "Elastic Inference has ended: choose an instance_type= with a chip of its own",
    "data_capture_config": "create the configuration with boto3",
    "serverless_inference_config": "name an instance_type=",
    "update_endpoint": "deploy to another name, or call update_endpoint with boto3",
    "explainer_config": "create the configuration with boto3",
    "git_config": "clone the repository and give source_dir= its path",
    "image_config": "create the model with boto3",
}


def refuse(given: Mapping[str, Any]) -> None:
    """Raise `UnsupportedArgument` for the first argument with a value, TypeError for one that SDK v2 does not have."""
    for name, value in given.items():
        if name not in _REFUSED:
            raise TypeError(f"deploy() has no argument {name!r}.{did_you_mean(name, DEPLOY_ARGUMENTS)}")
        if value is not None and value is not False:
            raise UnsupportedArgument(f"{name}= is not supported: {_REFUSED[name]}.")
