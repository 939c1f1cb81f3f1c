"""The `docker` runner and the image it runs; the only package that imports `docker`."""

from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.docker.containers import DockerRunner
from windtunnel_local.runner.docker.image import ImageStatus, build_image, image_status, image_tag
from windtunnel_local.runner.docker.runner import KeepingRunner

__all__ = [
    "DockerRunner",
    "Engine",
    "ImageStatus",
    "KeepingRunner",
    "build_image",
    "image_status",
    "image_tag",
]
