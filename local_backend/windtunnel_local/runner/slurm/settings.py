"""Settings of the `slurm` runner from the environment, besides those of every runner.

WINDTUNNEL_SIM_PYTHON       the interpreter that jobs run in, at the same path on all nodes (the server's own)
WINDTUNNEL_SLURM_PARTITION  where jobs are submitted to (the cluster's default)
WINDTUNNEL_SLURM_ACCOUNT    what they are charged to (the user's default)
WINDTUNNEL_SLURM_TIME       how long one may run, as sbatch's --time takes it (the partition's default)
WINDTUNNEL_SLURM_ARGUMENTS  more arguments of sbatch, as in a shell (none)
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.runner.runner_kind import RunnerSettings
from windtunnel_local.runner.variables import SettingsError, Variables
from windtunnel_local.runner.without_container.interpreter import Interpreter, interpreter_of


@dataclass(frozen=True)
class SlurmSettings:
    """Home of the backend, the interpreter of its jobs, and sbatch's arguments."""

    home: Path
    interpreter: Interpreter
    arguments: tuple[str, ...] = ()
    """Arguments of sbatch, for every job."""


def slurm_settings(settings: RunnerSettings) -> SlurmSettings:
    """The settings of a backend. Raises ``SettingsError``."""
    given = Variables(settings.environment)
    named = {
        "--partition": given.text("WINDTUNNEL_SLURM_PARTITION"),
        "--account": given.text("WINDTUNNEL_SLURM_ACCOUNT"),
        "--time": given.text("WINDTUNNEL_SLURM_TIME"),
    }
    more = given.text("WINDTUNNEL_SLURM_ARGUMENTS") or ""
    try:
        words = shlex.split(more)
    except ValueError as error:
        raise SettingsError(
            f"WINDTUNNEL_SLURM_ARGUMENTS is {more!r} ({error}); it must be arguments of sbatch as in a shell,"
            " such as --cpus-per-task=4 --mem=16G."
        ) from error
    arguments = (*(f"{name}={value}" for name, value in named.items() if value), *words)
    return SlurmSettings(settings.home, interpreter_of(settings.environment), arguments)
