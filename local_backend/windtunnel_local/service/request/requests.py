"""Reading an accepted request: the few values that several parts of the service need."""

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
    """The instance type that the job asked for; of its first group, if it has instance groups."""
    resources = job.request["ResourceConfig"]
    first = (resources.get("InstanceGroups") or [resources])[0]
    return NEURON_TYPES[first["InstanceType"]]


def max_runtime_s(job: Job) -> int:
    """MaxRuntimeInSeconds, or its default."""
    return int(job.request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_S))


def channels(job: Job) -> list[dict[str, Any]]:
    """InputDataConfig, empty when there is none."""
    return list(job.request.get("InputDataConfig", []))


def channel_uri(channel: dict[str, Any]) -> str:
    """The S3Uri of a channel: s3://, or file:// in this backend."""
    return str(channel["DataSource"]["S3DataSource"]["S3Uri"])


def input_mode(job: Job, channel: dict[str, Any]) -> str:
    """File or FastFile: the channel's own, or the job's."""
    return str(channel.get("InputMode") or job.request["AlgorithmSpecification"]["TrainingInputMode"])


def checkpoint_path(job: Job) -> str:
    """Where the container sees its checkpoints."""
    given = str(job.request.get("CheckpointConfig", {}).get("LocalPath") or job_paths.CHECKPOINTS)
    return given.rstrip("/")


def tensorboard_path(job: Job) -> str:
    """Where the container writes event files for TensorBoard."""
    given = str(job.request.get("TensorBoardOutputConfig", {}).get("LocalPath") or job_paths.TENSORBOARD)
    return given.rstrip("/")


def source_uri(job: Job) -> str | None:
    """The address of the source tarball, when the code comes as one that the backend must fetch."""
    value = job.request.get("HyperParameters", {}).get(SUBMIT_DIRECTORY)
    if value is None:
        return None
    uri = plain(value)
    return uri if uri.startswith("s3://") or is_file(uri) else None


def reaches_aws(job: Job, default: bool) -> bool:
    """Whether the job's code may call this backend as its AWS: what the job says itself, else the default."""
    said = job.request.get("Environment", {}).get(AWS_IN_JOBS)
    return (default if said is None else said == "1") and not job.request.get("EnableNetworkIsolation")


def is_short_rehearsal(job: Job) -> bool:
    """Whether the simulator ends passes over loaders early."""
    return bool(job.request.get("Environment", {}).get("WINDTUNNEL_REHEARSE_STEPS"))


def cache_uri(job: Job) -> str | None:
    """The S3 cache that the environment of a job names, or None: NEURON_CC_FLAGS come before the variable."""
    environment = job.request.get("Environment", {})
    try:
        words = shlex.split(str(environment.get("NEURON_CC_FLAGS", "")))
    except ValueError:  # the container says what is wrong with them
        words = []
    uri = str(environment.get("NEURON_COMPILE_CACHE_URL", "")).strip()
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("-", "_") == "__cache_dir":
            uri = value if equals else "".join(words[position + 1 : position + 2])
    return uri if uri.startswith("s3://") else None


def plain(value: str) -> str:
    """A hyperparameter's text: SDKs send strings JSON-encoded, other clients as they are."""
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, str) else value
