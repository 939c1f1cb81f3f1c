"""The service's settings, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.service.ground.containers import Forward
from windtunnel_local.service.ground.job import SpotTerms
from windtunnel_local.service.ground.job_paths import JobPaths


@dataclass(frozen=True)
class Pace:
    """How long the service's threads wait, in seconds. Tests set shorter times."""

    tick_s: float = 0.25
    """Between two checks of the clock and of the job's record."""
    retry_s: float = 0.5
    """Before a job's record that could not be read or written is tried again; longer each time."""
    stalled_s: float = 0.5
    """Before a container's output is read again, after the store could not take it or the engine was away."""
    checkpoints_s: float = 1.0
    """Between two checks of a job's checkpoints: a file that has not changed in between is stored."""
    clean_up_s: float = 20.0
    """How long DeleteTrainingJob waits for the clean-up of a job that has ended, before it is refused."""


@dataclass(frozen=True)
class ServiceConfig:
    """One backend's identity, folders and limits."""

    home: Path
    """WINDTUNNEL_HOME, absolute."""
    account_id: str
    region: str
    image: str
    """The local training image that stands in for AWS's Neuron images."""
    stop_grace_s: float
    """Seconds from SIGTERM to SIGKILL when a job is stopped."""
    image_contents: str | None = None
    """The versions in the image, as text for a job's log; None: not known, and the log does not mention them."""
    user: str | None = None
    """``uid:gid`` of a job's processes and files; None leaves it to the image."""
    memory_cap_bytes: int | None = None
    """Most memory of one container; if the instance has less, the instance's memory counts."""
    api: Forward | None = None
    """Where a job's code can call this backend; None: it cannot."""
    aws_in_jobs: bool = False
    """Whether a job's code reaches this backend as its AWS, unless the job's Environment sets this."""
    strict_requirements: bool = False
    """Whether a job fails when pip cannot install its pinned versions, unless the job's Environment sets this."""
    forward_sigterm: bool = False
    """Whether the script gets the SIGTERM of a stop or an interruption, unless the job's Environment sets this."""
    max_cores: int = 2**31
    """Most simulated cores of all running jobs together; further jobs wait."""
    max_memory_bytes: int = 2**63
    """Most memory reserved for all running jobs together; further jobs wait."""
    spot: SpotTerms = field(default_factory=SpotTerms)
    """How managed spot jobs are simulated, unless the job's Environment sets this."""
    pace: Pace = Pace()

    @property
    def jobs(self) -> Path:
        """The folder that holds the folders of all jobs."""
        return self.home / "jobs"

    def paths(self, job: str) -> JobPaths:
        """The folders of one job; ``job``: its slot."""
        return JobPaths(self.jobs / job)

    def arn(self, kind: str, name: str) -> str:
        """The ARN of a SageMaker resource of this backend; ``kind``: as it stands in ARNs, like ``training-job``."""
        return f"arn:aws:sagemaker:{self.region}:{self.account_id}:{kind}/{name}"
