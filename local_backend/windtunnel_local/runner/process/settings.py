"""What the `process` runner is told by the environment, besides what every runner is told.

WINDTUNNEL_SIM_PYTHON  the interpreter that jobs run in (the server's own)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.runner.runner_kind import RunnerSettings
from windtunnel_local.runner.without_container.interpreter import interpreter_of


@dataclass(frozen=True)
class ProcessSettings:
    """Home of the backend, the interpreter of its jobs, and the server's environment."""

    home: Path
    python: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """PATH, locale, pip and proxy settings reach the job; credentials do not."""


def process_settings(settings: RunnerSettings) -> ProcessSettings:
    """The settings of a backend. Raises ``SettingsError``."""
    interpreter = interpreter_of(settings.environment)
    return ProcessSettings(settings.home, interpreter.python, settings.environment)
