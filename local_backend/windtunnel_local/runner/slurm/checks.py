"""What `windtunnel doctor` looks at for the `slurm` runner."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Sequence

from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.runner.slurm.commands import Slurm
from windtunnel_local.runner.slurm.settings import SlurmSettings
from windtunnel_local.service.ground.errors import RunnerError

_PATIENCE_S = 30.0
_POLL_S = 0.1
_WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('seen')"


def slurm_checks(settings: SlurmSettings) -> Sequence[Check]:
    """The interpreter, the controller, and whether a job's files are seen here. Blocks for half a minute at most."""
    slurm = Slurm(settings.interpreter)
    interpreter = settings.interpreter.check("slurm")
    try:
        slurm.jobs()
    except RunnerError as error:
        return [interpreter, Check("slurm", False, str(error))]
    return [interpreter, Check("slurm", True, "the controller answers"), _shared_folder(settings, slurm)]


def _shared_folder(settings: SlurmSettings, slurm: Slurm) -> Check:
    """Submit a job that writes a file of the home with the jobs' interpreter."""
    name = "shared folder"
    seen = settings.home / f"seen-{uuid.uuid4().hex}"
    settings.home.mkdir(parents=True, exist_ok=True)
    write = shlex.join([str(settings.interpreter.python), "-I", "-c", _WRITE, str(seen)])
    script = f"#!/bin/sh\nexec {write}\n"
    arguments = [*settings.arguments, "--job-name=windtunnel-doctor", "--output=/dev/null", "--chdir=/"]
    try:
        number = slurm.submit(arguments, script)
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            if seen.name in {path.name for path in settings.home.iterdir()}:
                return Check(name, True, f"a job writes to {settings.home}, and it is seen here")
            time.sleep(_POLL_S)
        found = next((job for job in slurm.jobs() if job.number == number), None)
        state = f"{found.state}, {found.reason}" if found else "gone"
        slurm.cancel(number)
    except RunnerError as error:
        return Check(name, False, str(error))
    finally:
        seen.unlink(missing_ok=True)
    return Check(
        name,
        False,
        f"Slurm job {number} is {state}, and nothing that it writes to {settings.home} is seen here",
        "Set WINDTUNNEL_HOME to a folder that all nodes mount at the same path, and WINDTUNNEL_SIM_PYTHON to an"
        " interpreter that runs on them. A job that is PENDING waits for the cluster: try again later.",
    )
