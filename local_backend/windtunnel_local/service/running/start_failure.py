"""Explains why the container of a user's own image did not start its program, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.printable import printable
from windtunnel_local.service.request.plan import local_image

TAIL_LINES = 50
"""How many lines at the end of a log are searched."""

_INIT = re.compile(r"\[FATAL tini \(\d+\)\] exec (?P<program>.+) failed: (?P<why>.+)")
"""The error of tini, the container's first process, if it cannot start the program."""
_NO_SCRIPT = re.compile(r"can't open file '/opt/ml/code/(?P<script>[^']{1,200})': \[Errno 2\]")
"""Python's error if the entry point is not there."""
_NOT_STARTED = (126, 127)
_FORBIDDEN = re.compile(r"Permission denied|PermissionError|EACCES", re.IGNORECASE)


def start_failure(job: Job, exit_code: int | None, tail: Sequence[str], config: ServiceConfig) -> str | None:
    """A text for the FailureReason that explains a failed start; None if the log shows no known reason.

    Args:
        job: the job.
        exit_code: the container's exit code.
        tail: the last lines of the container's output.
        config: the backend's settings, with the image that ran and its user.
    """
    algorithm = job.request["AlgorithmSpecification"]
    image = local_image(algorithm["TrainingImage"], config)
    found = next((match for line in tail if (match := _INIT.fullmatch(line.strip()))), None)
    if exit_code in _NOT_STARTED and found is not None:
        return _not_started(image, found["program"], found["why"], job, config)
    if image != config.image and any(_FORBIDDEN.search(line) for line in tail):
        return f"Exit Code: {exit_code}\nThe log speaks of missing permissions. {_other_user(config)}"
    return None


def missing_script(tail: Sequence[str]) -> str | None:
    """What to do about an entry point that is not there, which AWS's toolkit does not say; None if it is."""
    found = next((match for line in tail if (match := _NO_SCRIPT.search(line))), None)
    if found is None:
        return None
    return (
        f"The source archive has no {printable(found['script'])}. Name a file that it has, by its path in the archive,"
        " as the entry point (hyperparameter sagemaker_program)."
    )


def _not_started(image: str, program: str, why: str, job: Job, config: ServiceConfig) -> str:
    algorithm = job.request["AlgorithmSpecification"]
    path = job.request.get("Environment", {}).get("PATH")
    if algorithm.get("ContainerEntrypoint"):
        named = f"AlgorithmSpecification.ContainerEntrypoint names {program!r}"
        fix = f"Name a program of the image, with its path (`docker run --rm -it {image} sh` shows them)."
    elif algorithm.get("ContainerArguments"):
        named = f"AlgorithmSpecification.ContainerArguments begin with {program!r}, and the image has no entry point"
        fix = "Name the program as ContainerEntrypoint, and only its arguments as ContainerArguments."
    else:
        named = f"SageMaker runs `docker run IMAGE train`, and the program is {program!r}"
        fix = (
            "Put an executable `train` on the image's PATH (`pip install sagemaker-training` does, or COPY a"
            " script to /usr/local/bin/train), or name another program as ContainerEntrypoint."
        )
    if "denied" in why:
        problem = f"The image {image} has it, but it cannot be executed ({why})"
        fix = f"Make it executable for all (chmod a+rx). {_other_user(config)}"
    elif path is not None and "/" not in program:
        problem = f"The job's own Environment has set PATH to {path!r}, where it is not ({why})"
        fix = "Leave PATH out of Environment, or add the folders of the image's own PATH to it."
    else:
        problem = f"The image {image} does not have it, or not the interpreter of its first line ({why})"
    return f"{named}. {problem}. {fix}"


def _other_user(config: ServiceConfig) -> str:
    return (
        f"The container runs as the user of the backend ({config.user or 'root'}), who owns /opt/ml, and not as"
        " a USER of the image: what the image keeps for that user alone is out of reach; open it for all in the"
        " Dockerfile (chmod -R a+rX)."
    )
