"""What the service is told by whoever wires it: plain, frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.data.paths import JobPaths


@dataclass(frozen=True)
class ServiceConfig:
    """One backend's identity, places and limits."""

    home: Path
    """WINDTUNNEL_HOME, absolute."""
    account_id: str
    region: str
    image: str
    """The local training image that stands in for AWS's Neuron images."""
    user: str | None = None
    """``uid:gid`` of everything a job writes; None leaves it to the image."""
    memory_cap_bytes: int | None = None
    """Most memory of one container; the instance's own memory where that is smaller."""
    stop_grace_s: float = 120.0
    """From SIGTERM to SIGKILL."""

    @property
    def jobs(self) -> Path:
        """The folder of all job folders."""
        return self.home / "jobs"

    def paths(self, job: str) -> JobPaths:
        """The folders of one job."""
        return JobPaths(self.jobs / job)

    def job_arn(self, name: str) -> str:
        """The ARN of a job of this backend."""
        return f"arn:aws:sagemaker:{self.region}:{self.account_id}:training-job/{name}"
