"""The SDK's settings from environment variables: the only file that reads them."""

from __future__ import annotations

import os
from pathlib import Path

from windtunnel.errors import ConfigurationError
from windtunnel.local_paths import absolute

HOME_VARIABLE = "WINDTUNNEL_HOME"
IDLE_VARIABLE = "WINDTUNNEL_IDLE_SECONDS"
LOCAL_CORES_VARIABLE = "WINDTUNNEL_LOCAL_CORES"
REHEARSE_VARIABLE = "WINDTUNNEL_REHEARSE_STEPS"
"""Set in a job's environment, not read here: the batches of each pass in a short rehearsal."""
MAX_COST_VARIABLE = "WINDTUNNEL_MAX_COST"


def home() -> Path:
    """``WINDTUNNEL_HOME``, or ``~/.windtunnel``: where the local backend keeps its state."""
    return absolute(os.environ.get(HOME_VARIABLE) or "~/.windtunnel")


def local_cores() -> int | None:
    """``WINDTUNNEL_LOCAL_CORES``: the default of ``local_cores=``, or None.

    Raises:
        ConfigurationError: the variable is not a whole number.
    """
    text = os.environ.get(LOCAL_CORES_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise ConfigurationError(f"{LOCAL_CORES_VARIABLE}={text!r}: a whole number is needed.")
    return int(text)


def max_cost() -> float | None:
    """``WINDTUNNEL_MAX_COST``: the default of ``max_cost=`` in US dollars, or None.

    Raises:
        ConfigurationError: the variable is not a number.
    """
    text = os.environ.get(MAX_COST_VARIABLE)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            f"{MAX_COST_VARIABLE}={text!r}: a number of US dollars is needed, e.g. 50."
        ) from None


def environment() -> dict[str, str]:
    """A copy of this process's variables."""
    return dict(os.environ)


def backend_environment(home_directory: Path) -> dict[str, str]:
    """The environment of a backend that the SDK starts: this process's variables and ``home_directory``."""
    return {**os.environ, HOME_VARIABLE: str(home_directory)}
