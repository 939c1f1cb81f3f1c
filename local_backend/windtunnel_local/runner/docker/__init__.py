"""The `docker` runner and the image it runs."""

from windtunnel_local.runner.docker.checks import docker_checks
from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.docker.image import build_image, image_status, image_tag
from windtunnel_local.runner.docker.runner import DockerRunner
from windtunnel_local.runner.docker.settings import DockerSettings, docker_settings
from windtunnel_local.runner.runner_kind import RunnerKind, TrainingImage

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


KIND = RunnerKind(
    make=lambda settings: DockerRunner(docker_settings(settings)),
    checks=lambda settings: docker_checks(docker_settings(settings)),
    image=TrainingImage(
        build=lambda settings, progress: build_image(docker_settings(settings), progress),
        status=lambda settings: image_status(docker_settings(settings)),
    ),
)
