"""The `process` runner: jobs without containers, for machines without Docker.

WINDTUNNEL_SIM_PYTHON  the interpreter that jobs run in (the server's own)
"""

from windtunnel_local.runner.process.runner import ProcessRunner
from windtunnel_local.runner.runner_kind import RunnerKind
from windtunnel_local.runner.without_container.interpreter import interpreter_of

__all__ = ["KIND", "ProcessRunner"]

KIND = RunnerKind(
    make=lambda settings: ProcessRunner(settings.home, interpreter_of(settings.environment)),
    checks=lambda settings: [interpreter_of(settings.environment).check("process")],
)
