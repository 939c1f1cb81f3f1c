"""The service's settings, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.service.ground.containers import Forward
from windtunnel_local.service.ground.job import SpotTerms
from windtunnel_local.service.ground.job_paths import JobPaths


@dataclass(frozen=True)
class Pace:
    """How long the service's threads wait. Tests wait less."""

    tick_s: float = 0.25
    """Between two looks at the clock and the record."""
    retry_s: float = 0.5
    """Before a job goes on whose record could not be read or written; longer each time."""
    stalled_s: float = 0.5
    """Before output is followed again that the store could not take, or that the engine was not there for."""
    checkpoints_s: float = 1.0
    """Between two looks at a job's checkpoints: one that has not changed meanwhile is stored."""
    clean_up_s: float = 20.0
    """For a job that has ended to be cleaned up, before DeleteTrainingJob is refused."""


@dataclass(frozen=True)
class ServiceConfig:
    """One backend's identity, places and limits."""

    home: Path
    """WINDTUNNEL_HOME, absolute."""
    account_id: str
    region: str
    image: str
    """The local training image that stands in for AWS's Neuron images."""
    stop_grace_s: float
    """From SIGTERM to SIGKILL."""
    image_contents: str | None = None
    """The versions in it, as text for a job's log; None: they are not known, and nothing is said."""
    user: str | None = None
    """``uid:gid`` of everything a job writes; None leaves it to the image."""
    memory_cap_bytes: int | None = None
    """Most memory of one container; the instance's own memory where that is smaller."""
    api: Forward | None = None
    """Where this backend listens; None: no job's code can reach it."""
    aws_in_jobs: bool = False
    """Whether a job's code reaches this backend as its AWS, unless the job says so itself."""
    strict_requirements: bool = False
    """Whether pip fails a job whose pins it cannot install, unless the job says so itself."""
    forward_sigterm: bool = False
    """Whether the script gets the SIGTERM of a stop or an interruption, unless the job says so itself."""
    max_cores: int = 2**31
    """Most simulated cores of all jobs that run at once; further jobs wait."""
    max_memory_bytes: int = 2**63
    """Most memory that is reserved for all jobs that run at once; further jobs wait."""
    spot: SpotTerms = field(default_factory=SpotTerms)
    """How managed spot jobs are simulated that do not say so themselves."""
    pace: Pace = Pace()

    @property
    def jobs(self) -> Path:
        """The folder of all job folders."""
        return self.home / "jobs"

    def paths(self, job: str) -> JobPaths:
        """The folders of one job."""
        return JobPaths(self.jobs / job)

    def arn(self, kind: str, name: str) -> str:
        """The ARN of something of this backend's SageMaker; ``kind``: as ARNs have it."""
        return f"arn:aws:sagemaker:{self.region}:{self.account_id}:{kind}/{name}"

    def job_arn(self, name: str) -> str:
        """The ARN of a job of this backend."""
        return self.arn("training-job", name)
