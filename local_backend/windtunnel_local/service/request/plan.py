"""Makes the plan of a job's containers from its request: pure functions without side effects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.ground import job_paths
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import ContainerPlan, JobPlan, Keeper, LogLine, Mount
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request import requests
from windtunnel_local.service.request.cluster import channel_hosts, group_of, groups
from windtunnel_local.service.request.images import framework_version, is_neuron_image, substitution

_MIN_SHM_BYTES = GIB // 2
# AWS's containers run jobs as root, and the SDK's @remote calls sudo if the user has another name.
_USER_NAME = "root"
_KEYS = (("OutputDataConfig", "KmsKeyId"), ("ResourceConfig", "VolumeKmsKeyId"))

Mounts = tuple[Mount, ...]
_NOTHING: Mapping[str, Mounts] = {}
_NO_KEYS: Mapping[str, str] = {}


def plan_job(
    job: Job,
    config: ServiceConfig,
    input_mounts: Mapping[str, Mounts] = _NOTHING,
    keys: Mapping[str, str] = _NO_KEYS,
) -> JobPlan:
    """The plan of all containers of a job.

    Args:
        job: the job.
        config: the backend's settings.
        input_mounts: by host, the mounts of channels that are mounted instead of copied.
        keys: variables with the AWS keys of the job's role, if its code may call this backend.
    """
    plans = (_plan_host(job, host, config, input_mounts.get(host, ())) for host in job.hosts)
    return JobPlan(job.slot, tuple(replace(p, environment={**p.environment, **keys}) for p in plans))


def local_image(training_image: str, config: ServiceConfig) -> str:
    """The image that runs: ours for one of AWS's Neuron images, otherwise the image that the request names."""
    return config.image if is_neuron_image(training_image) else training_image


def log_preface(job: Job, host: str, config: ServiceConfig) -> tuple[LogLine, ...]:
    """The backend's own lines at the start of the first host's log: what differs from AWS. Other hosts: none."""
    if host != job.hosts[0]:
        return ()
    texts = [
        f"Windtunnel: {kind.name} is rehearsed here, but SageMaker takes no training job on it."
        for kind in dict.fromkeys(group.instance for group in groups(job))
        if "training" not in kind.sagemaker
    ]
    if "VpcConfig" in job.request:
        texts.append(
            "Windtunnel: VpcConfig has no effect here: the job has this machine's network. On AWS it reaches S3 and"
            " package indexes only as its subnets do: by an endpoint of the VPC, or a NAT gateway."
        )
    if keys := [f"{part}.{name}" for part, name in _KEYS if job.request[part].get(name)]:
        texts.append(
            f"Windtunnel: {' and '.join(keys)}: without effect here, where nothing is encrypted. On AWS the job's role"
            " needs the right to use the key."
        )
    if config.image_contents is not None:
        named = job.request["AlgorithmSpecification"]["TrainingImage"]
        texts += substitution(named, config.image, config.image_contents)
    begun_ms = int(job.lifecycle.attempt_start.timestamp() * 1000)
    return tuple(LogLine(begun_ms, text) for text in texts)


def memory_limit_bytes(job: Job, config: ServiceConfig, host: str | None = None) -> int:
    """Memory limit of one container: the instance's host memory, or the backend's cap if that is smaller.

    ``host``: the container's host; None: the host with the most memory.
    """
    hosts = job.hosts if host is None else (host,)
    instance_bytes = max(group_of(job, each).instance.host_memory_bytes for each in hosts)
    return min(instance_bytes, config.memory_cap_bytes or instance_bytes)


def _plan_host(job: Job, host: str, config: ServiceConfig, input_mounts: Mounts) -> ContainerPlan:
    algorithm = job.request["AlgorithmSpecification"]
    entrypoint = tuple(algorithm.get("ContainerEntrypoint") or ())
    arguments = tuple(algorithm.get("ContainerArguments") or ())
    memory = memory_limit_bytes(job, config, host)
    plan = ContainerPlan(
        job=job.slot,
        host=host,
        image=local_image(algorithm["TrainingImage"], config),
        # SageMaker runs `docker run IMAGE train` unless the request says otherwise.
        command=arguments or (() if entrypoint else ("train",)),
        environment=_environment(job, host, config),
        mounts=_mounts(job, host, config) + input_mounts,
        user=config.user,
        network=_network(job, config),
        isolated=bool(job.request.get("EnableNetworkIsolation")),
        memory_bytes=memory,
        # As on an instance, where /dev/shm is half of the memory. It takes only the memory that is used.
        shm_bytes=max(_MIN_SHM_BYTES, memory // 2),
        forward=config.api if requests.reaches_aws(job, config.aws_in_jobs) else None,
        labels={
            "windtunnel.job": job.slot,
            "windtunnel.host": host,
            "windtunnel.home": str(config.home),
        },
    )
    if is_kept(job):
        target, folder = job_paths.KEEPER, config.paths(job.slot).keeper(host)
        plan = replace(plan, keeper=Keeper(str(folder), target, shared_environment(config)))
    return replace(plan, entrypoint=entrypoint) if entrypoint else plan


def is_kept(job: Job) -> bool:
    """Whether the job's containers can be kept for another job, or come from a warm pool. No update changes this."""
    return bool(job.request["ResourceConfig"].get("KeepAlivePeriodInSeconds")) or has_taken_over(job)


def has_taken_over(job: Job) -> bool:
    """Whether the job runs in another job's containers: its slot then begins with that other job's name."""
    return job.slot.partition(".")[0] != job.name


def shared_environment(config: ServiceConfig) -> dict[str, str]:
    """Environment variables of all jobs of a backend; a job's own Environment overrides them."""
    return {
        "AWS_REGION": config.region,
        "AWS_DEFAULT_REGION": config.region,
        # Otherwise, on EC2, an AWS SDK without keys would use this machine's instance role.
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": job_paths.HOME,
        "USER": _USER_NAME,
        "LOGNAME": _USER_NAME,
        # AWS's training images set it too; without it a script's prints wait in a buffer.
        "PYTHONUNBUFFERED": "1",
        **({"WINDTUNNEL_STRICT_REQUIREMENTS": "1"} if config.strict_requirements else {}),
        **({"WINDTUNNEL_FORWARD_SIGTERM": "1"} if config.forward_sigterm else {}),
    }


def _environment(job: Job, host: str, config: ServiceConfig) -> dict[str, str]:
    """The defaults, overridden by the job's Environment, overridden by the variables that no job may change."""
    fixed = {
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        "WINDTUNNEL_INSTANCE_TYPE": group_of(job, host).instance.name,
        "WINDTUNNEL_COUNTERS_DIR": job_paths.COUNTERS,
        "WINDTUNNEL_TENSORBOARD_DIR": requests.tensorboard_path(job),
    }
    if config.api is not None and requests.reaches_aws(job, config.aws_in_jobs):
        fixed["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{config.api.port}"
        fixed["S3_ENDPOINT_URL"] = fixed["AWS_ENDPOINT_URL"]  # s5cmd reads this one only
        fixed["AWS_ALLOW_HTTP"] = "true"  # Rust's object_store refuses an endpoint without TLS otherwise
    if requests.cache_uri(job) is not None:
        fixed["WINDTUNNEL_S3_CACHE_DIR"] = job_paths.NEURON_CACHE
    if job.request.get("EnableNetworkIsolation"):
        fixed["WINDTUNNEL_STRICT_REQUIREMENTS"] = "1"  # pip reaches no package index, as on AWS
    version = framework_version(job.request["AlgorithmSpecification"]["TrainingImage"])
    if version is not None:
        fixed["WINDTUNNEL_FRAMEWORK_VERSION"] = version
    if is_kept(job):
        fixed["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"] = job_paths.WARM_POOL_CACHE
    return {**shared_environment(config), **job.request.get("Environment", {}), **fixed}


def _mounts(job: Job, host: str, config: ServiceConfig) -> tuple[Mount, ...]:
    folders = config.paths(job.slot)
    mounts = [
        Mount(str(folders.ml(host)), job_paths.ML),
        Mount(str(folders.counters(host)), job_paths.COUNTERS),
        Mount(str(folders.home(host)), job_paths.HOME),
    ]
    if is_kept(job):
        # Mounted even if this job needs none of them: the next one may. The source is mounted by its folder, so
        # that the file in it can be replaced.
        mounts += [
            Mount(str(folders.neuron_cache(host)), job_paths.NEURON_CACHE),
            Mount(str(folders.source.parent), str(PurePosixPath(job_paths.SOURCE).parent), read_only=True),
            Mount(str(folders.views(host)), job_paths.VIEWS, read_only=True),
            Mount(str(folders.keeper(host)), job_paths.KEEPER),
        ]
    else:
        if requests.cache_uri(job) is not None:
            mounts.append(Mount(str(folders.neuron_cache(host)), job_paths.NEURON_CACHE))
        if requests.source_uri(job) is not None:
            mounts.append(Mount(str(folders.source), job_paths.SOURCE, read_only=True))
    checkpoints = requests.checkpoint_path(job)
    if checkpoints != job_paths.CHECKPOINTS:
        mounts.append(Mount(str(folders.checkpoints(host)), checkpoints))
    tensorboard = requests.tensorboard_path(job)
    if tensorboard != job_paths.TENSORBOARD:
        mounts.append(Mount(str(folders.tensorboard(host)), tensorboard))
    return tuple(mounts)


def _network(job: Job, config: ServiceConfig) -> str | None:
    """The network of a job (see `ContainerPlan.network`): its own if it has several hosts.

    Isolated jobs have their own too, as on SageMaker: their hosts reach each other, and nothing else. The name
    includes the home, so that jobs of the same name of two homes get different networks.
    """
    if len(job.hosts) == 1:
        return "none" if job.request.get("EnableNetworkIsolation") else None
    home = hashlib.sha256(str(config.home).encode()).hexdigest()[:8]
    return f"windtunnel-{home}-{job.slot}"


# --- /opt/ml/input/config ---------------------------------------------------


def config_files(job: Job, host: str) -> dict[str, Mapping[str, Any]]:
    """The files of ``/opt/ml/input/config`` as one host sees them, by name."""
    return {
        "hyperparameters.json": _hyperparameters(job),
        "resourceconfig.json": _resource_config(job, host),
        "inputdataconfig.json": _input_data_config(job, host),
    }


def _hyperparameters(job: Job) -> dict[str, str]:
    """The hyperparameters as sent, but sagemaker_submit_directory is the source's path in the container."""
    values = dict(job.request.get("HyperParameters", {}))
    if requests.source_uri(job) is not None:
        encoded = values[requests.SUBMIT_DIRECTORY].lstrip().startswith('"')
        values[requests.SUBMIT_DIRECTORY] = json.dumps(job_paths.SOURCE) if encoded else job_paths.SOURCE
    return values


def _resource_config(job: Job, host: str) -> dict[str, Any]:
    current = group_of(job, host)
    return {
        "current_host": host,
        "current_instance_type": current.instance.name,
        "current_group_name": current.name,
        "hosts": list(job.hosts),
        "instance_groups": [
            {
                "instance_group_name": group.name,
                "instance_type": group.instance.name,
                "hosts": list(group.hosts),
            }
            for group in groups(job)
        ],
        "network_interface_name": "eth0",
    }


def _input_data_config(job: Job, host: str) -> dict[str, Any]:
    """The channels that this host gets; a channel may be limited to some instance groups."""
    described: dict[str, Any] = {}
    for channel in requests.channels(job):
        if host not in channel_hosts(job, channel):
            continue
        source = channel["DataSource"]["S3DataSource"]
        settings = {
            "TrainingInputMode": requests.input_mode(job, channel),
            "S3DistributionType": source.get("S3DataDistributionType", "FullyReplicated"),
            "RecordWrapperType": "None",
        }
        if channel.get("ContentType"):
            settings["ContentType"] = channel["ContentType"]
        described[channel["ChannelName"]] = settings
    return described
