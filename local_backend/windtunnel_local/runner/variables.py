"""Read environment variables as checked values; an error names the variable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from windtunnel_local.service.ground.errors import WindtunnelError


class SettingsError(WindtunnelError):
    """A variable has a value that cannot be used; the message says which and what is valid."""


class Variables:
    """The variables of an environment. An empty one counts as not set. All calls raise ``SettingsError``."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._given = {name: value for name, value in environment.items() if value}

    def text(self, name: str) -> str | None:
        """The value, or None."""
        return self._given.get(name)

    def choice(self, name: str, *valid: str) -> str:
        """One of the valid values; the first unless another is given."""
        given = self._given.get(name, valid[0])
        if given not in valid:
            raise SettingsError(f"{name} is {given!r}; it must be {' or '.join(valid)}.")
        return given

    def path(self, name: str, default: str) -> Path:
        """An absolute path; `~` is the home of the user. Links in it are kept."""
        given = self._given.get(name, default)
        try:
            return Path(given).expanduser().absolute()
        except RuntimeError as error:
            raise SettingsError(
                f"{name} is {given!r}, and '~' is the home of nobody here; set it to an absolute path."
            ) from error

    def number(self, name: str, default: float, most: float = float("inf")) -> float:
        """A finite number from 0 to ``most``."""
        given = self._given.get(name)
        if given is None:
            return default
        try:
            value = float(given)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most or value == float("inf"):
            limit = "" if most == float("inf") else f" and at most {most:g}"
            raise SettingsError(f"{name} is {given!r}; it must be a number, at least 0{limit}.")
        return value
