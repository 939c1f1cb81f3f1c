"""What every runner's package declares (`RunnerKind`), and the settings that it gets (`RunnerSettings`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from windtunnel_local.service.ground.ports import Progress, Runner


class RunnerSettings(Protocol):
    """The settings that every runner gets. A runner reads its own settings from ``environment``."""

    @property
    def home(self) -> Path:
        """WINDTUNNEL_HOME. Part of all names, so that jobs of two homes never clash."""

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
    """The image that the engine has under the training image's tag."""

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
    """Build the image, unless it is current. Blocks for minutes. Raises ``RunnerError``."""
    status: Callable[[RunnerSettings], ImageStatus]
    """The image's state. Asks the engine once. Raises ``RunnerError``."""


@dataclass(frozen=True)
class RunnerKind:
    """A runner that can be asked for by name: its package has one of these, called ``KIND``."""

    make: Callable[[RunnerSettings], Runner]
    """Make the runner. Does not connect yet."""
    checks: Callable[[RunnerSettings], Sequence[Check]]
    """The checks of `windtunnel doctor`: what jobs need besides disk and memory. Blocks for seconds at most."""
    image: TrainingImage | None = None
    """The training image; None if jobs run without it."""
    elsewhere: bool = False
    """Whether jobs run on other machines. If so, this machine's cores and memory do not limit them."""
