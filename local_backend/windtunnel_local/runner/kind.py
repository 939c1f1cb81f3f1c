"""What every runner's package says of itself, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windtunnel_local.service.ground.ports import Runner


class RunnerSettings(Protocol):
    """What the server tells any runner. What one runner alone needs, it reads from ``environment`` itself."""

    @property
    def home(self) -> Path:
        """WINDTUNNEL_HOME: jobs are told apart by it."""
        ...

    @property
    def image(self) -> str:
        """WINDTUNNEL_IMAGE: the tag of the training image."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The server's environment."""
        ...


@dataclass(frozen=True)
class Check:
    """One finding of `windtunnel doctor`. ``fix``: what to do, when it is not ok and ``detail`` does not say it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class RunnerKind:
    """A runner that can be asked for by name: its package has one of these, called ``KIND``."""

    make: Callable[[RunnerSettings], Runner]
    """Connects to nothing yet."""
    checks: Callable[[RunnerSettings], Sequence[Check]]
    """What jobs need of this machine besides room. Blocks for seconds at most."""
    uses_image: bool
    """Whether jobs run in the training image."""
