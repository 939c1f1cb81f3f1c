"""The `process` runner: jobs without containers, for machines without Docker."""

from windtunnel_local.runner.kind import RunnerKind
from windtunnel_local.runner.process.runner import ProcessRunner, process_checks
from windtunnel_local.runner.process.settings import ProcessSettings, process_settings

__all__ = ["KIND", "ProcessRunner", "ProcessSettings"]

KIND = RunnerKind(
    make=lambda settings: ProcessRunner(process_settings(settings)),
    checks=lambda settings: process_checks(process_settings(settings)),
)
