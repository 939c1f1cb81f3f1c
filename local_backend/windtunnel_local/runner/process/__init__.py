"""The `process` runner: jobs without containers, for machines without Docker."""

from windtunnel_local.runner.process.runner import ProcessRunner
from windtunnel_local.runner.process.settings import ProcessSettings, process_settings
from windtunnel_local.runner.runner_kind import RunnerKind
from windtunnel_local.runner.without_container.interpreter import interpreter_of

__all__ = ["KIND", "ProcessRunner", "ProcessSettings"]

KIND = RunnerKind(
    make=lambda settings: ProcessRunner(process_settings(settings)),
    checks=lambda settings: [interpreter_of(settings.environment).check("process")],
)
