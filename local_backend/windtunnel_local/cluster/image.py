"""The image of a cluster's nodes: the training image with Slurm, ssh, sudo, and programs of AWS's machine image."""

from __future__ import annotations

from windtunnel_local.runner.docker import build_image, docker_settings
from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.docker.image import build_lock, connected, image_status, run_build, status_of
from windtunnel_local.runner.runner_kind import ImageStatus, RunnerSettings
from windtunnel_local.runner.sources import containers_folder, context_of, hash_of, source_files
from windtunnel_local.service.ground.ports import Progress

_REPOSITORY = "windtunnel-cluster"


def cluster_image_tag(training_image: str) -> str:
    """The tag of the nodes' image: that of the training image it is made of."""
    _, separator, tag = training_image.rpartition(":")
    return f"{_REPOSITORY}:{tag}" if separator and "/" not in tag else _REPOSITORY


def cluster_image_status(settings: RunnerSettings, engine: Engine | None = None) -> ImageStatus:
    """Compare the image with its sources and with the training image's. Takes milliseconds.

    Raises:
        RunnerUnavailable: no engine.
    """
    return status_of(cluster_image_tag(settings.image), _expected(), engine)


def ensure_cluster_image(
    settings: RunnerSettings, progress: Progress, engine: Engine | None = None
) -> ImageStatus:
    """Build the image unless it is current; the training image first, if that is not. Idempotent.

    Blocks: a minute the first time, minutes where the training image is missing too.

    Raises:
        RunnerUnavailable: no engine.
        RunnerError: a step failed; carries its last lines and the next step.
    """
    status = cluster_image_status(settings, engine)
    if status.state == "current":
        return status
    docker = docker_settings(settings)
    if image_status(docker, engine=engine).state != "current":
        build_image(docker, progress, engine=engine)
    arguments = {**docker.network.build_arguments(), "TRAINING_IMAGE": settings.image}
    with connected(engine) as client, build_lock(progress):
        status = cluster_image_status(settings, engine)
        if status.state == "current":
            return status
        progress(f"Building {status.image} on {settings.image}")
        context = context_of(source_files(containers_folder() / "cluster"))
        return run_build(client, status, arguments, context, progress)


def _expected() -> str:
    """The hash of the image's sources and of those of the training image."""
    containers = containers_folder()
    roots = (("training", ""), ("neuron_sim", "neuron_sim/"), ("cluster", "cluster/"))
    return hash_of(file for name, prefix in roots for file in source_files(containers / name, prefix))
