"""A job as the containers that run it: pure data, made without touching anything."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windtunnel_local.service.config import ServiceConfig
from windtunnel_local.service.data import paths
from windtunnel_local.service.data.compile_cache import cache_uri
from windtunnel_local.service.model import Job
from windtunnel_local.service.ports import ContainerPlan, JobPlan, Mount
from windtunnel_local.service.request import requests
from windtunnel_local.service.request.instances import GIB

_NEURON_IMAGE = re.compile(r"(?:^|/)(?:huggingface-)?pytorch-training-neuronx?:(?P<tag>[^/]+)$")
_VERSION = re.compile(r"\d+\.\d+")
_MIN_SHM_BYTES = GIB // 2
_DEFAULT_USER_NAME = "sagemaker"


def plan_job(job: Job, config: ServiceConfig, input_mounts: tuple[Mount, ...] = ()) -> JobPlan:
    """All containers of a job. ``input_mounts``: channels that are mounted instead of copied."""
    return JobPlan(job.name, tuple(_plan_host(job, host, config, input_mounts) for host in job.hosts))


def local_image(training_image: str, config: ServiceConfig) -> str:
    """The image that runs: ours in the place of AWS's Neuron images, any other as it is named."""
    return config.image if _NEURON_IMAGE.search(training_image) else training_image


def framework_version(training_image: str) -> str | None:
    """PyTorch's major.minor from the tag of an AWS Neuron image; None for other images."""
    image = _NEURON_IMAGE.search(training_image)
    version = _VERSION.match(image["tag"]) if image else None
    return version[0] if version else None


def memory_limit_bytes(job: Job, config: ServiceConfig) -> int:
    """Memory of one container: the instance's host memory, or the cap where that is smaller."""
    instance_bytes = requests.instance(job).host_memory_gib * GIB
    return min(instance_bytes, config.memory_cap_bytes or instance_bytes)


def _plan_host(job: Job, host: str, config: ServiceConfig, input_mounts: tuple[Mount, ...]) -> ContainerPlan:
    algorithm = job.request["AlgorithmSpecification"]
    entrypoint = tuple(algorithm.get("ContainerEntrypoint") or ())
    arguments = tuple(algorithm.get("ContainerArguments") or ())
    memory = memory_limit_bytes(job, config)
    plan = ContainerPlan(
        job=job.name,
        host=host,
        image=local_image(algorithm["TrainingImage"], config),
        # SageMaker runs `docker run IMAGE train` unless the request says otherwise.
        command=arguments or (() if entrypoint else ("train",)),
        environment=_environment(job, config),
        mounts=_mounts(job, host, config) + input_mounts,
        user=config.user,
        network=_network(job, config),
        memory_bytes=memory,
        # On an instance /dev/shm is half of the memory. The file system takes only what is used.
        shm_bytes=max(_MIN_SHM_BYTES, memory // 2),
        labels={
            "windtunnel.job": job.name,
            "windtunnel.host": host,
            "windtunnel.home": str(config.home),
        },
    )
    return replace(plan, entrypoint=entrypoint) if entrypoint else plan


def _environment(job: Job, config: ServiceConfig) -> dict[str, str]:
    """Defaults that the job may change, its own Environment, and what nobody may change."""
    defaults = {
        "AWS_REGION": config.region,
        "AWS_DEFAULT_REGION": config.region,
        "HOME": paths.HOME,
        "USER": _DEFAULT_USER_NAME,
        "LOGNAME": _DEFAULT_USER_NAME,
        # AWS's training images set it too; without it a script's prints wait in a buffer.
        "PYTHONUNBUFFERED": "1",
    }
    fixed = {
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        "WINDTUNNEL_INSTANCE_TYPE": requests.instance(job).name,
        "WINDTUNNEL_COUNTERS_DIR": paths.COUNTERS,
        "WINDTUNNEL_TENSORBOARD_DIR": requests.tensorboard_path(job),
    }
    if cache_uri(job) is not None:
        fixed["WINDTUNNEL_S3_CACHE_DIR"] = paths.NEURON_CACHE
    version = framework_version(job.request["AlgorithmSpecification"]["TrainingImage"])
    if version is not None:
        fixed["WINDTUNNEL_FRAMEWORK_VERSION"] = version
    return {**defaults, **job.request.get("Environment", {}), **fixed}


def _mounts(job: Job, host: str, config: ServiceConfig) -> tuple[Mount, ...]:
    folders = config.paths(job.name)
    mounts = [
        Mount(str(folders.ml(host)), paths.ML),
        Mount(str(folders.counters(host)), paths.COUNTERS),
        Mount(str(folders.home(host)), paths.HOME),
    ]
    if cache_uri(job) is not None:
        mounts.append(Mount(str(folders.neuron_cache(host)), paths.NEURON_CACHE))
    if requests.source_uri(job) is not None:
        mounts.append(Mount(str(folders.source), paths.SOURCE, read_only=True))
    checkpoints = requests.checkpoint_path(job)
    if checkpoints != paths.CHECKPOINTS:
        mounts.append(Mount(str(folders.checkpoints(host)), checkpoints))
    tensorboard = requests.tensorboard_path(job)
    if tensorboard != paths.TENSORBOARD:
        mounts.append(Mount(str(folders.tensorboard(host)), tensorboard))
    return tuple(mounts)


def _network(job: Job, config: ServiceConfig) -> str | None:
    """Several hosts get a network of their own. Its name tells apart equal jobs of two homes."""
    if job.request.get("EnableNetworkIsolation"):
        return "none"
    if len(job.hosts) == 1:
        return None
    home = hashlib.sha256(str(config.home).encode()).hexdigest()[:8]
    return f"windtunnel-{home}-{job.name}"


# --- /opt/ml/input/config ---------------------------------------------------


def config_files(job: Job, host: str) -> dict[str, Mapping[str, Any]]:
    """The files of ``/opt/ml/input/config`` as one host sees them, by name."""
    return {
        "hyperparameters.json": _hyperparameters(job),
        "resourceconfig.json": _resource_config(job, host),
        "inputdataconfig.json": _input_data_config(job),
    }


def _hyperparameters(job: Job) -> dict[str, str]:
    """As sent; the code's address becomes the path at which the container finds it."""
    values = dict(job.request.get("HyperParameters", {}))
    if requests.source_uri(job) is not None:
        encoded = values[requests.SUBMIT_DIRECTORY].lstrip().startswith('"')
        values[requests.SUBMIT_DIRECTORY] = json.dumps(paths.SOURCE) if encoded else paths.SOURCE
    return values


def _resource_config(job: Job, host: str) -> dict[str, Any]:
    group, instance_type = "homogeneousCluster", requests.instance(job).name
    hosts = list(job.hosts)
    return {
        "current_host": host,
        "current_instance_type": instance_type,
        "current_group_name": group,
        "hosts": hosts,
        "instance_groups": [
            {"instance_group_name": group, "instance_type": instance_type, "hosts": hosts},
        ],
        "network_interface_name": "eth0",
    }


def _input_data_config(job: Job) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for channel in requests.channels(job):
        settings = {
            "TrainingInputMode": "File",
            "S3DistributionType": "FullyReplicated",
            "RecordWrapperType": "None",
        }
        if channel.get("ContentType"):
            settings["ContentType"] = channel["ContentType"]
        described[channel["ChannelName"]] = settings
    return described
