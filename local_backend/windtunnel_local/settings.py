"""The server's settings: the only reader of the environment, once, at the edge.

    WINDTUNNEL_HOME                state directory (~/.windtunnel)
    WINDTUNNEL_RUNNER              docker | process (docker)
    WINDTUNNEL_PORT                TCP port on loopback (0: a free one)
    WINDTUNNEL_IDLE_SECONDS        leave after so long without a job or a request (900)
    WINDTUNNEL_IMAGE               the training image's tag (windtunnel-training:<version>)
    WINDTUNNEL_BASE_IMAGE          what it is built on (chosen by what can be reached)
    WINDTUNNEL_TORCH_INDEX_URL     an index to prefer for torch when it answers (PyTorch's own, of CPU builds)
    WINDTUNNEL_MEMORY_GIB          most memory of one container (the instance's, at most 90 % of this machine's)
    WINDTUNNEL_STOP_GRACE_SECONDS  from SIGTERM to SIGKILL (120)
    WINDTUNNEL_MAX_CORES           most simulated cores of all jobs at once (4 a processor, at least 8)
    WINDTUNNEL_MAX_MEMORY_GIB      most memory reserved for all jobs at once (90 % of this machine's)
    WINDTUNNEL_SPOT_INTERRUPTIONS  simulated interruptions of each managed spot job (0)
    WINDTUNNEL_SPOT_SEED           what their moments follow from (0)
    WINDTUNNEL_SPOT_MEAN_SECONDS   seconds of training between two of them, on average (60)
    WINDTUNNEL_SPOT_AFTER          start | checkpoint: what these seconds count from in each attempt (start)
    WINDTUNNEL_SPOT_DISCOUNT       what spot capacity is assumed to save (0.7 of the on-demand price)
    WINDTUNNEL_SIM_PYTHON          the interpreter of the process runner (the server's own)

Besides these, docker-py reads DOCKER_HOST and its companions, and `runner.host_network` is
given the environment's proxies, CA bundle and pip options.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from windtunnel_local.runner.host_network import HostNetwork, host_network
from windtunnel_local.service.errors import WindtunnelError
from windtunnel_local.service.model import SpotClock

RunnerName = Literal["docker", "process"]
_DEFAULT_IDLE_S = 900.0
_DEFAULT_STOP_GRACE_S = 120.0
_DEFAULT_SPOT_MEAN_S = 60.0
_DEFAULT_SPOT_DISCOUNT = 0.7
_MAX_INTERRUPTIONS = 1000
_TORCH_INDEX_URL = "https://download.pytorch.org/whl/cpu"
_MAX_PORT = 65535


class SettingsError(WindtunnelError):
    """A variable has a value that cannot be used; the message says which and what is valid."""


@dataclass(frozen=True)
class SpotSettings:
    """How managed spot jobs are simulated that do not say so themselves."""

    interruptions: int = 0
    seed: int = 0
    mean_s: float = _DEFAULT_SPOT_MEAN_S
    after: SpotClock = "start"
    discount: float = _DEFAULT_SPOT_DISCOUNT


@dataclass(frozen=True)
class Settings:
    """What the server is told from outside. Seconds, GiB."""

    home: Path
    image: str
    runner: RunnerName = "docker"
    port: int = 0
    idle_s: float = _DEFAULT_IDLE_S
    base_image: str | None = None
    torch_index_url: str | None = field(default=None, repr=False)  # may carry a password
    memory_gib: float | None = None
    stop_grace_s: float = _DEFAULT_STOP_GRACE_S
    max_cores: int | None = None
    max_memory_gib: float | None = None
    spot: SpotSettings = field(default_factory=SpotSettings)
    sim_python: Path | None = None
    network: HostNetwork = field(default_factory=HostNetwork, repr=False)  # proxies and indexes may, too
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The server's own, of which the process runner hands a part to jobs."""


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read all settings. An empty variable counts as not set.

    Raises:
        SettingsError: a value that cannot be used.
    """
    given = {name: value for name, value in environment.items() if value}
    home = _path("WINDTUNNEL_HOME", given.get("WINDTUNNEL_HOME", "~/.windtunnel"))
    runner = given.get("WINDTUNNEL_RUNNER", "docker")
    if runner not in get_args(RunnerName):
        valid = " or ".join(get_args(RunnerName))
        raise SettingsError(f"WINDTUNNEL_RUNNER is {runner!r}; it must be {valid}.")
    port = _number(given, "WINDTUNNEL_PORT", 0, most=_MAX_PORT)
    sim_python = given.get("WINDTUNNEL_SIM_PYTHON")
    return Settings(
        home=home,
        image=given.get("WINDTUNNEL_IMAGE", f"windtunnel-training:{version()}"),
        runner=cast(RunnerName, runner),
        port=int(port),
        idle_s=_number(given, "WINDTUNNEL_IDLE_SECONDS", _DEFAULT_IDLE_S),
        base_image=given.get("WINDTUNNEL_BASE_IMAGE"),
        torch_index_url=given.get("WINDTUNNEL_TORCH_INDEX_URL", _TORCH_INDEX_URL),
        memory_gib=_number(given, "WINDTUNNEL_MEMORY_GIB", 0) or None,
        stop_grace_s=_number(given, "WINDTUNNEL_STOP_GRACE_SECONDS", _DEFAULT_STOP_GRACE_S),
        max_cores=int(_number(given, "WINDTUNNEL_MAX_CORES", 0)) or None,
        max_memory_gib=_number(given, "WINDTUNNEL_MAX_MEMORY_GIB", 0) or None,
        spot=SpotSettings(
            interruptions=int(_number(given, "WINDTUNNEL_SPOT_INTERRUPTIONS", 0, most=_MAX_INTERRUPTIONS)),
            seed=int(_number(given, "WINDTUNNEL_SPOT_SEED", 0)),
            mean_s=_number(given, "WINDTUNNEL_SPOT_MEAN_SECONDS", _DEFAULT_SPOT_MEAN_S),
            after=_spot_clock(given.get("WINDTUNNEL_SPOT_AFTER", "start")),
            discount=_number(given, "WINDTUNNEL_SPOT_DISCOUNT", _DEFAULT_SPOT_DISCOUNT, most=1),
        ),
        sim_python=_path("WINDTUNNEL_SIM_PYTHON", sim_python) if sim_python else None,
        network=host_network(environment),
        environment=dict(environment),
    )


def version() -> str:
    """The distribution's version, from the one file that states it; importing it would load the SDK.

    Raises:
        SettingsError: the distribution is not installed completely.
    """
    spec = importlib.util.find_spec("windtunnel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        source = Path(folder, "_version.py")
        if source.is_file() and (match := re.search(r'__version__ = "([^"]+)"', source.read_text())):
            return match[1]
    raise SettingsError("The package windtunnel is incomplete: install windtunnel again.")


def _spot_clock(text: str) -> SpotClock:
    if text not in get_args(SpotClock):
        raise SettingsError(
            f"WINDTUNNEL_SPOT_AFTER is {text!r}; it must be {' or '.join(get_args(SpotClock))}."
        )
    return cast(SpotClock, text)


def _path(name: str, text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError(
            f"{name} is {text!r}, and '~' is the home of nobody here; set it to an absolute path."
        ) from error


def _number(given: Mapping[str, str], name: str, default: float, most: float = float("inf")) -> float:
    text = given.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most or value == float("inf"):
        limit = "" if most == float("inf") else f" and at most {most:g}"
        raise SettingsError(f"{name} is {text!r}; it must be a number, at least 0{limit}.")
    return value
