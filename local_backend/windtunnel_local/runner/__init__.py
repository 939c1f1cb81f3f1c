"""What runs the containers of a job: the `Runner` port, once for each of the names in `RUNNERS`.

A runner is a package of its name in this folder, whose ``KIND`` says how it is made, what it needs of the
machine and how it gets the training image. A new one is such a package, and its name here.
"""

from __future__ import annotations

from importlib import import_module

from windtunnel_local.runner.runner_kind import RunnerKind

RUNNERS = ("docker", "process", "slurm")
"""What WINDTUNNEL_RUNNER may be; the first is the default."""


def runner_kind(name: str) -> RunnerKind:
    """The kind of this name, one of `RUNNERS`. Its package is imported by this call, and no other."""
    kind: RunnerKind = import_module(f"{__name__}.{name}").KIND
    return kind
