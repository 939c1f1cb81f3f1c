"""The server's settings, read from environment variables once, when a command starts. Defaults in parentheses.

    WINDTUNNEL_HOME                state directory (~/.windtunnel)
    WINDTUNNEL_RUNNER              what runs jobs: one of `runner.RUNNERS` (the first)
    WINDTUNNEL_PORT                TCP port on loopback (0: a free one)
    WINDTUNNEL_IDLE_SECONDS        the server exits after so long without a job or a request (900)
    WINDTUNNEL_IMAGE               the training image's tag (windtunnel-training:<version>)
    WINDTUNNEL_MEMORY_GIB          most memory of one container (the instance's, at most 90 % of this machine's)
    WINDTUNNEL_AWS_IN_JOBS         1: calls of AWS in a job's code reach this backend, with keys of the job's role (0)
    WINDTUNNEL_STRICT_REQUIREMENTS  1: a job's requirements.txt is installed unchanged, or the job fails (0)
    WINDTUNNEL_STOP_GRACE_SECONDS  seconds from SIGTERM to SIGKILL when a job is stopped (120)
    WINDTUNNEL_FORWARD_SIGTERM     1: a job's script gets SIGTERM too (0)
    WINDTUNNEL_MAX_CORES           most simulated cores of all jobs at once (4 a processor, at least 8)
    WINDTUNNEL_MAX_MEMORY_GIB      most memory reserved for all jobs at once (90 % of this machine's)
    WINDTUNNEL_SPOT_INTERRUPTIONS  simulated interruptions of each managed spot job (0)
    WINDTUNNEL_SPOT_SEED           seed of the random times of these interruptions (0)
    WINDTUNNEL_SPOT_MEAN_SECONDS   mean seconds of training between two of them (60)
    WINDTUNNEL_SPOT_AFTER          start | checkpoint: from when these seconds count in each attempt (start)
    WINDTUNNEL_SPOT_DISCOUNT       share of the on-demand price that spot capacity is assumed to save (0.7)

Variables of one runner only are read by the runner's package: `runner/<name>/settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from windtunnel._version import __version__
from windtunnel_local.runner import RUNNERS
from windtunnel_local.runner.variables import Variables
from windtunnel_local.service.ground.job import MOST_INTERRUPTIONS, SpotClock, SpotTerms

_DEFAULT_IDLE_S = 900.0
_DEFAULT_STOP_GRACE_S = 120.0
_MAX_PORT = 65535


@dataclass(frozen=True)
class Settings:
    """The server's settings. Times are in seconds (``_s``), memory in GiB (``_gib``)."""

    home: Path
    image: str
    runner: str = RUNNERS[0]
    port: int = 0
    idle_s: float = _DEFAULT_IDLE_S
    memory_gib: float | None = None
    stop_grace_s: float = _DEFAULT_STOP_GRACE_S
    aws_in_jobs: bool = False
    strict_requirements: bool = False
    forward_sigterm: bool = False
    max_cores: int | None = None
    max_memory_gib: float | None = None
    spot: SpotTerms = field(default_factory=SpotTerms)
    """For jobs that do not set their own in their environment."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The server's environment variables: runners read their settings from them, and pass some on to jobs."""


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read all settings. An empty variable counts as not set.

    Raises:
        SettingsError: a value cannot be used.
    """
    given = Variables(environment)
    return Settings(
        home=given.path("WINDTUNNEL_HOME", "~/.windtunnel"),
        image=given.text("WINDTUNNEL_IMAGE") or f"windtunnel-training:{__version__}",
        runner=given.choice("WINDTUNNEL_RUNNER", *RUNNERS),
        port=int(given.number("WINDTUNNEL_PORT", 0, most=_MAX_PORT)),
        idle_s=given.number("WINDTUNNEL_IDLE_SECONDS", _DEFAULT_IDLE_S),
        memory_gib=given.number("WINDTUNNEL_MEMORY_GIB", 0) or None,
        stop_grace_s=given.number("WINDTUNNEL_STOP_GRACE_SECONDS", _DEFAULT_STOP_GRACE_S),
        aws_in_jobs=given.choice("WINDTUNNEL_AWS_IN_JOBS", "0", "1") == "1",
        strict_requirements=given.choice("WINDTUNNEL_STRICT_REQUIREMENTS", "0", "1") == "1",
        forward_sigterm=given.choice("WINDTUNNEL_FORWARD_SIGTERM", "0", "1") == "1",
        max_cores=int(given.number("WINDTUNNEL_MAX_CORES", 0)) or None,
        max_memory_gib=given.number("WINDTUNNEL_MAX_MEMORY_GIB", 0) or None,
        spot=SpotTerms(
            interruptions=int(given.number("WINDTUNNEL_SPOT_INTERRUPTIONS", 0, most=MOST_INTERRUPTIONS)),
            seed=int(given.number("WINDTUNNEL_SPOT_SEED", 0)),
            mean_s=given.number("WINDTUNNEL_SPOT_MEAN_SECONDS", SpotTerms.mean_s),
            after=cast(SpotClock, given.choice("WINDTUNNEL_SPOT_AFTER", *get_args(SpotClock))),
            discount=given.number("WINDTUNNEL_SPOT_DISCOUNT", SpotTerms.discount, most=1),
        ),
        environment=dict(environment),
    )
