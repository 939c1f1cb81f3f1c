"""What every runner's package says of itself, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from windtunnel_local.service.ground.ports import Progress, Runner


class RunnerSettings(Protocol):
    """What the server tells any runner. What one runner alone needs, it reads from ``environment`` itself."""

    @property
    def home(self) -> Path:
        """WINDTUNNEL_HOME: jobs are told apart by it."""

    @property
    def image(self) -> str:
        """WINDTUNNEL_IMAGE: the tag of the training image."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The server's environment."""


@dataclass(frozen=True)
class Check:
    """One finding of `windtunnel doctor`. ``fix``: what to do, when it is not ok and ``detail`` does not say it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class ImageStatus:
    """What the engine has under our tag."""

    image: str
    state: Literal["missing", "stale", "current"]
    """``stale``: built from other sources than those that are installed."""
    content: str | None
    """Content hash of the sources it was built from."""
    expected: str
    """Content hash of the sources that are installed."""
    id: str | None = None
    size_bytes: int | None = None
    created: str | None = None
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class TrainingImage:
    """The training image of a runner whose jobs run in it."""

    build: Callable[[RunnerSettings, Progress], ImageStatus]
    """Unless it is current. Blocks: minutes. Raises ``RunnerError``."""
    status: Callable[[RunnerSettings], ImageStatus]
    """Asks the engine once. Raises ``RunnerError``."""


@dataclass(frozen=True)
class RunnerKind:
    """A runner that can be asked for by name: its package has one of these, called ``KIND``."""

    make: Callable[[RunnerSettings], Runner]
    """Connects to nothing yet."""
    checks: Callable[[RunnerSettings], Sequence[Check]]
    """What jobs need of this machine besides room. Blocks for seconds at most."""
    image: TrainingImage | None = None
    """None: jobs run without the training image."""
    elsewhere: bool = False
    """Whether jobs run on other machines: what this one has is no limit then."""
