"""What the `process` runner is told by the environment, besides what every runner is told.

WINDTUNNEL_SIM_PYTHON  the interpreter that jobs run in (the server's own)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.runner.kind import RunnerSettings
from windtunnel_local.runner.variables import Variables


@dataclass(frozen=True)
class ProcessSettings:
    """Home of the backend, the interpreter of its jobs, and the server's environment."""

    home: Path
    python: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """PATH, locale, pip and proxy settings reach the job; credentials do not."""


def process_settings(settings: RunnerSettings) -> ProcessSettings:
    """The settings of a backend. Raises ``SettingsError``."""
    # Not resolved: a venv's python is a link, and where it points there is no venv.
    python = Variables(settings.environment).path("WINDTUNNEL_SIM_PYTHON", sys.executable)
    return ProcessSettings(settings.home, python, settings.environment)
