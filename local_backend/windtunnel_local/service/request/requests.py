"""Reads from an accepted request the values that several parts of the service need."""

from __future__ import annotations

import json
import shlex
from typing import Any

from windtunnel.priceperf.instances import NEURON_TYPES, InstanceType
from windtunnel_local.service.ground import job_paths
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.uris import is_file

DEFAULT_MAX_RUNTIME_S = 86_400
AWS_IN_JOBS = "WINDTUNNEL_AWS_IN_JOBS"
SUBMIT_DIRECTORY = "sagemaker_submit_directory"


def instance(job: Job) -> InstanceType:
    """The job's instance type; with instance groups, that of the first group."""
    resources = job.request["ResourceConfig"]
    first = (resources.get("InstanceGroups") or [resources])[0]
    return NEURON_TYPES[first["InstanceType"]]


def max_runtime_s(job: Job) -> int:
    """MaxRuntimeInSeconds, or its default."""
    return int(job.request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_S))


def channels(job: Job) -> list[dict[str, Any]]:
    """The channels of InputDataConfig; empty if there are none."""
    return list(job.request.get("InputDataConfig", []))


def channel_uri(channel: dict[str, Any]) -> str:
    """The S3Uri of a channel: an s3:// URI, or a file:// URI, which only this backend knows."""
    return str(channel["DataSource"]["S3DataSource"]["S3Uri"])


def input_mode(job: Job, channel: dict[str, Any]) -> str:
    """File or FastFile: the channel's InputMode, or else the job's TrainingInputMode."""
    return str(channel.get("InputMode") or job.request["AlgorithmSpecification"]["TrainingInputMode"])


def checkpoint_path(job: Job) -> str:
    """The checkpoint folder inside the container."""
    given = str(job.request.get("CheckpointConfig", {}).get("LocalPath") or job_paths.CHECKPOINTS)
    return given.rstrip("/")


def tensorboard_path(job: Job) -> str:
    """The folder of TensorBoard event files inside the container."""
    given = str(job.request.get("TensorBoardOutputConfig", {}).get("LocalPath") or job_paths.TENSORBOARD)
    return given.rstrip("/")


def source_uri(job: Job) -> str | None:
    """The URI of the source tarball; None if there is none that the backend must fetch."""
    value = job.request.get("HyperParameters", {}).get(SUBMIT_DIRECTORY)
    if value is None:
        return None
    uri = plain(value)
    return uri if uri.startswith("s3://") or is_file(uri) else None


def reaches_aws(job: Job, default: bool) -> bool:
    """Whether the job's code may call this backend as its AWS: as its Environment says, or else ``default``."""
    said = job.request.get("Environment", {}).get(AWS_IN_JOBS)
    return (default if said is None else said == "1") and not job.request.get("EnableNetworkIsolation")


def is_short_rehearsal(job: Job) -> bool:
    """Whether the job is a rehearsal of a few steps: the simulator ends passes over data loaders early."""
    return bool(job.request.get("Environment", {}).get("WINDTUNNEL_REHEARSE_STEPS"))


def cache_uri(job: Job) -> str | None:
    """The S3 URI of the job's Neuron compile cache, or None. NEURON_CC_FLAGS override NEURON_COMPILE_CACHE_URL."""
    environment = job.request.get("Environment", {})
    try:
        words = shlex.split(str(environment.get("NEURON_CC_FLAGS", "")))
    except ValueError:  # the container reports this error to the user
        words = []
    uri = str(environment.get("NEURON_COMPILE_CACHE_URL", "")).strip()
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("-", "_") == "__cache_dir":
            uri = value if equals else "".join(words[position + 1 : position + 2])
    return uri if uri.startswith("s3://") else None


def plain(value: str) -> str:
    """A hyperparameter's text: JSON is decoded, as SDKs send strings; a plain string stays as it is."""
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, str) else value
