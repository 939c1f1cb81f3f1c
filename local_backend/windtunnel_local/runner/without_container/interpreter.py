"""The interpreter that a job without an image runs in, and what it inherits of the server's environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.runner.host_network import past_proxies
from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.runner.variables import Variables
from windtunnel_local.service.ground.errors import RunnerUnavailable

REQUIRED_MODULES = ("sagemaker_training", "sagemaker_pytorch_container", "torch", "torch_xla")
"""Modules that the image would have."""

_INHERITED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INHERITED_PREFIXES = ("PIP_", "http_", "https_", "no_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter for jobs, and the environment of the server that starts them."""

    python: Path
    environment: Mapping[str, str] = field(repr=False)

    def inherited(self) -> dict[str, str]:
        """The part of the server's environment that a job and its supervisor may see: no credentials."""
        return past_proxies(
            {
                name: value
                for name, value in self.environment.items()
                if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
            }
        )

    def require(self, runner: str, modules: tuple[str, ...] = REQUIRED_MODULES) -> None:
        """Raise ``RunnerUnavailable`` if jobs of this runner cannot run in it. Blocks: a second."""
        check = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
        command = [str(self.python), "-c", check, *modules]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunnerUnavailable(
                f"The interpreter {self.python} does not run ({error}). Set WINDTUNNEL_SIM_PYTHON to one "
                "that has `pip install 'windtunnel[sim]'`."
            ) from error
        missing = answer.stdout.split() if answer.returncode == 0 else list(modules)
        if missing:
            raise RunnerUnavailable(
                f"The {runner} runner needs {', '.join(missing)} in {self.python}. Run "
                f"`{self.python} -m pip install 'windtunnel[sim]'`, set WINDTUNNEL_SIM_PYTHON to an "
                "interpreter that has it, or use containers with WINDTUNNEL_RUNNER=docker."
            )

    def check(self, runner: str) -> Check:
        """The finding of `windtunnel doctor`. Blocks: a second."""
        try:
            self.require(runner)
        except RunnerUnavailable as error:
            return Check("interpreter", False, str(error))
        return Check("interpreter", True, str(self.python))


def interpreter_of(environment: Mapping[str, str]) -> Interpreter:
    """The one that WINDTUNNEL_SIM_PYTHON names, or the server's own. Raises ``SettingsError``."""
    # Not resolved: a venv's python is a link, and where it points there is no venv.
    python = Variables(environment).path("WINDTUNNEL_SIM_PYTHON", sys.executable)
    return Interpreter(python, environment)
