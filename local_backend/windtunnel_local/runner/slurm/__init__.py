"""The `slurm` runner: jobs on the nodes of a Slurm cluster."""

from windtunnel_local.runner.runner_kind import RunnerKind
from windtunnel_local.runner.slurm.checks import slurm_checks
from windtunnel_local.runner.slurm.runner import SlurmRunner
from windtunnel_local.runner.slurm.settings import SlurmSettings, slurm_settings

__all__ = ["KIND", "SlurmRunner", "SlurmSettings"]

KIND = RunnerKind(
    make=lambda settings: SlurmRunner(slurm_settings(settings)),
    checks=lambda settings: slurm_checks(slurm_settings(settings)),
    elsewhere=True,
)
