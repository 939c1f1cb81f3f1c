"""Checks of LocalPath: the folder in the container at which checkpoints or TensorBoard event files are mounted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from windtunnel_local.service.ground import job_paths
from windtunnel_local.service.ground.errors import ValidationFailed

_ML = job_paths.ML
_KERNELS = ("/dev", "/proc", "/sys")
"""The kernel's file systems: nothing can be mounted in them."""
_PROGRAMS = (
    "/bin",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/sbin",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/var",
)
"""Folders of the image; a mount on one of them would hide the image's own files."""
_JOBS = (_ML, f"{_ML}/input", f"{_ML}/model", f"{_ML}/output", "/opt/windtunnel")
"""Folders that every job has. A LocalPath may be none of them, and may not be inside those of `_CLOSED`."""
_CLOSED = (f"{_ML}/input", "/opt/windtunnel")
_OUTPUTS = (f"{_ML}/output/data", f"{_ML}/output/failure", f"{_ML}/output/success")


def check_local_paths(request: Mapping[str, Any]) -> None:
    """Check the LocalPath of CheckpointConfig and TensorBoardOutputConfig.

    Raises:
        ValidationFailed: names the member, what was given and what is valid.
    """
    places = {}
    for config, default, closed in (
        ("CheckpointConfig", job_paths.CHECKPOINTS, (*_CLOSED, f"{_ML}/model", f"{_ML}/output")),
        ("TensorBoardOutputConfig", job_paths.TENSORBOARD, _CLOSED),
    ):
        if config in request:
            given = request[config].get("LocalPath", default)
            _check(f"{config}.LocalPath", given, default, closed)
            places[config] = given.rstrip("/")
    if len(places) > len(set(places.values())):
        raise ValidationFailed(
            "CheckpointConfig.LocalPath and TensorBoardOutputConfig.LocalPath must differ, for each is a folder that"
            f" is stored elsewhere; given: {places['CheckpointConfig']} for both. The defaults are"
            f" {job_paths.CHECKPOINTS} and {job_paths.TENSORBOARD}."
        )


def _check(where: str, given: str, default: str, closed: tuple[str, ...]) -> None:
    local = given.rstrip("/")
    proper = re.fullmatch(r"(/[^/]+)+", local) and not {".", ".."} & set(local.split("/"))
    inside = any(f"{local}/".startswith(f"{folder}/") for folder in (*closed, *_KERNELS))
    if not proper or inside or local in (*_JOBS, *_OUTPUTS, *_PROGRAMS):
        raise ValidationFailed(
            f"{where} must be an absolute directory of its own, not in {', '.join((*closed, *_KERNELS))}, and not one"
            f" that the job or its image has, as {_ML} and /usr; given: {given}. The default is {default}."
        )
