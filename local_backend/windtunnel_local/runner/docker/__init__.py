"""The `docker` runner and the image it runs."""

from windtunnel_local.runner.docker.checks import docker_checks
from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.docker.image import build_image, image_status, image_tag
from windtunnel_local.runner.docker.runner import DockerRunner
from windtunnel_local.runner.docker.settings import DockerSettings, docker_settings
from windtunnel_local.runner.runner_kind import ImageStatus, RunnerKind, RunnerSettings, TrainingImage
from windtunnel_local.service.ground.ports import Progress

__all__ = [
    "KIND",
    "DockerRunner",
    "DockerSettings",
    "Engine",
    "build_image",
    "docker_settings",
    "image_status",
    "image_tag",
]


def _build(settings: RunnerSettings, progress: Progress) -> ImageStatus:
    docker = docker_settings(settings)
    return build_image(docker, progress, docker.network)


KIND = RunnerKind(
    make=lambda settings: DockerRunner(docker_settings(settings)),
    checks=lambda settings: docker_checks(docker_settings(settings)),
    image=TrainingImage(build=_build, status=lambda settings: image_status(docker_settings(settings))),
)
