"""The runners: each implements the `Runner` port, which runs the containers of a job.

A runner is a package in this folder. Its ``KIND`` says how it is made, what it needs of the machine and how it
gets the training image. To add a runner, add such a package and its name in `RUNNERS`.
"""

from __future__ import annotations

from importlib import import_module

from windtunnel_local.runner.runner_kind import RunnerKind

RUNNERS = ("docker", "process", "slurm")
"""The values that WINDTUNNEL_RUNNER may have; the first is the default."""


def runner_kind(name: str) -> RunnerKind:
    """The kind of this name, one of `RUNNERS`. Imports the package of that runner and of no other."""
    kind: RunnerKind = import_module(f"{__name__}.{name}").KIND
    return kind
