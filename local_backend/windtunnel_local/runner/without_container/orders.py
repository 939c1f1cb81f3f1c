"""Turn a host's plan into orders for its supervisor: a container's paths, variables and commands, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from windtunnel_local.runner.mounts import host_path, nested_mountpoints
from windtunnel_local.runner.sources import containers_folder
from windtunnel_local.runner.without_container import supervise
from windtunnel_local.runner.without_container.interpreter import Interpreter
from windtunnel_local.runner.without_container.simulator import install_commands
from windtunnel_local.service.ground.containers import ContainerPlan, Mount
from windtunnel_local.service.ground.errors import RunnerError

_ML = "/opt/ml"


def prepare(folder: Path, plan: ContainerPlan, interpreter: Interpreter, banner: str) -> dict[str, Any]:
    """Make the host's folder and the files that the job expects; returns the orders of `supervise`. Idempotent.

    ``banner``: the first line of its output.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _link_mounts(plan.mounts)
    _map_hyperparameters(plan.mounts)
    install_commands(containers_folder() / "neuron_sim", interpreter.python, folder / "bin")
    (folder / "home").mkdir(exist_ok=True)
    token = folder / "token"
    if not token.exists():
        token.write_text(uuid.uuid4().hex)
    environment = _job_environment(folder, plan, interpreter)
    words = (*(plan.entrypoint or ()), *plan.command)
    program = shutil.which(words[0], path=environment["PATH"]) or words[0]
    return {
        "command": [program, *(host_path(word, plan.mounts) for word in words[1:])],
        "environment": environment,
        "banner": f"Windtunnel: {banner}",
    }


def _job_environment(folder: Path, plan: ContainerPlan, interpreter: Interpreter) -> dict[str, str]:
    mapped = {name: host_path(value, plan.mounts) for name, value in plan.environment.items()}
    home = mapped.get("HOME", "")
    simulator = containers_folder() / "neuron_sim"
    path = f"{folder / 'bin'}:{interpreter.python.parent}:{interpreter.environment.get('PATH', os.defpath)}"
    return {
        **interpreter.inherited(),
        # A container begins with an empty /var/tmp; this machine's outlives the job.
        "WINDTUNNEL_COMPILE_CACHE_DIR": str(folder / "neuron-compile-cache"),
        "SAGEMAKER_TRAINING_MODULE": "sagemaker_pytorch_container.training:main",
        "PYTHONUNBUFFERED": "1",
        **mapped,
        "HOME": home if Path(home).is_dir() else str(folder / "home"),
        "PATH": f"{path}:{mapped['PATH']}" if "PATH" in mapped else path,
        "PYTHONPATH": f"{simulator}:{mapped['PYTHONPATH']}" if "PYTHONPATH" in mapped else str(simulator),
        "SAGEMAKER_BASE_DIR": host_path(_ML, plan.mounts),
        # The toolkit would look algo-1 up in DNS for a quarter of an hour.
        "SM_STUDIO_LOCAL_MODE": "true",
        supervise.TOKEN_VARIABLE: (folder / "token").read_text(),
    }


def _link_mounts(mounts: tuple[Mount, ...]) -> None:
    """Make a link where a container would have a mount inside another mount. Idempotent."""
    for point, mount in nested_mountpoints(mounts):
        if point.is_symlink():
            continue
        point.parent.mkdir(parents=True, exist_ok=True)
        if point.is_dir():
            try:
                point.rmdir()
            except OSError as error:
                raise RunnerError(f"{mount.target} cannot be provided: {point} is not empty.") from error
        point.symlink_to(mount.source)


def _map_hyperparameters(mounts: tuple[Mount, ...]) -> None:
    """Paths in hyperparameters - the code's address, a script's ``/opt/ml/...`` - as paths of this host."""
    file = Path(host_path(f"{_ML}/input/config/hyperparameters.json", mounts))
    if not file.is_file():
        return
    values: dict[str, Any] = json.loads(file.read_text())
    file.write_text(json.dumps({name: _map_value(value, mounts) for name, value in values.items()}))


def _map_value(value: Any, mounts: tuple[Mount, ...]) -> Any:
    """The same for one value: JSON in a string, as the SDK sends it, or a bare string."""
    if not isinstance(value, str):
        return value
    try:
        inner = json.loads(value)
    except ValueError:
        return host_path(value, mounts)
    return json.dumps(host_path(inner, mounts)) if isinstance(inner, str) else value
