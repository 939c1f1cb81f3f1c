"""A port in a container's own loopback that leads to the backend's socket, for the code of a job.

The backend listens on this machine's loopback, which no container reaches. So a folder with its Unix
socket is mounted, and a small program in the container passes bytes on. Nothing listens on any
network, and no other container sees port or socket.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from docker.errors import APIError

from windtunnel_local.runner.docker import forwarder
from windtunnel_local.runner.docker.client import Engine, engine_errors, is_conflict, run_in
from windtunnel_local.runner.docker.create_arguments import FORWARD_TARGET
from windtunnel_local.service.ground.containers import ContainerPlan
from windtunnel_local.service.ground.errors import RunnerError

_PROGRAM = Path(forwarder.__file__)


def forward(engine: Engine, container: str, plan: ContainerPlan) -> None:
    """Open the port in a running container, if its plan asks for it; one that has ended is no error. Idempotent.

    Raises:
        RunnerError: the container has no python3, or its engine does not carry sockets.
    """
    if plan.forward is None:
        return
    target = PurePosixPath(FORWARD_TARGET, Path(plan.forward.socket).name)
    command = ["python3", "-IS", "-c", _PROGRAM.read_text(), str(plan.forward.port), str(target)]
    with engine_errors(f"open the way to S3 in {plan.host} of job {plan.job}"):
        try:
            code, said = run_in(engine.client().api, container, command)
        except APIError as error:
            if is_conflict(error):  # it does not run any more
                return
            raise
    if code:
        raise RunnerError(
            f"The code of job {plan.job} cannot reach the backend from {plan.host}: {said.strip()} (exit code {code})."
            " WINDTUNNEL_AWS_IN_JOBS=1 needs python3 in the image, and an engine on this"
            " machine itself, not in a virtual machine. Else unset it."
        )
