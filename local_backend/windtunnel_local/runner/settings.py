"""What the runners need of the backend's settings: the narrow view of it that they declare themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class RunnerSettings(Protocol):
    """Read-only; `windtunnel_local.settings.Settings` has these and more."""

    @property
    def home(self) -> Path:
        """WINDTUNNEL_HOME: jobs are told apart by it."""
        ...

    @property
    def image(self) -> str:
        """WINDTUNNEL_IMAGE: the tag of the training image."""
        ...

    @property
    def base_image(self) -> str | None:
        """WINDTUNNEL_BASE_IMAGE, or None: choose one."""
        ...

    @property
    def torch_index_url(self) -> str | None:
        """WINDTUNNEL_TORCH_INDEX_URL: an index to prefer for torch when it answers, or None."""
        ...

    @property
    def sim_python(self) -> Path | None:
        """WINDTUNNEL_SIM_PYTHON: the interpreter of the `process` runner, or None: the server's own."""
        ...
