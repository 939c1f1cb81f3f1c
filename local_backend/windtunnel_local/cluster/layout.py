"""Paths in a cluster's folder, besides its record, and where its nodes have them mounted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.cluster.configuration import ClusterConfiguration

KEYS = "/opt/windtunnel/keys"
JOBS = "/opt/windtunnel/jobs"
ORDERS = "/opt/windtunnel/orders"
SLURM_CONF = "/etc/slurm"
SLURM_STATE = "/var/spool/slurmctld"
PROGRAMS = "/opt/windtunnel/cluster/node"
"""Folder in the image with the programs that Slurm calls."""


@dataclass(frozen=True)
class Layout:
    """The paths below a cluster's folder."""

    folder: Path

    @property
    def settings(self) -> Path:
        """The settings of this machine and its user with which the cluster was made."""
        return self.folder / "fleet.json"

    @property
    def socket(self) -> Path:
        """The socket at which commands reach the background process."""
        return self.folder / "fleet.sock"

    @property
    def lock(self) -> Path:
        """Held by the background process while it lives."""
        return self.folder / "fleet.lock"

    @property
    def log(self) -> Path:
        """The background process's own log."""
        return self.folder / "fleet.log"

    @property
    def orders(self) -> Path:
        """The folder with the socket that Slurm's power saving reaches, and nothing else."""
        return self.folder / "orders"

    @property
    def keys(self) -> Path:
        """Keys of munge and ssh, readable by the owner only."""
        return self.folder / "keys"

    @property
    def slurm_conf(self) -> Path:
        """The folder with slurm.conf."""
        return self.folder / "slurm" / "conf"

    @property
    def slurm_state(self) -> Path:
        """slurmctld's state, and the file of completed jobs (jobcomp/filetxt)."""
        return self.folder / "slurm" / "state"

    @property
    def completed_jobs(self) -> Path:
        """The file with a line for each completed job, as Slurm's jobcomp/filetxt writes it."""
        return self.slurm_state / "completed_jobs"

    @property
    def jobs(self) -> Path:
        """The simulator's counters, in folders ``JOB/NODE``."""
        return self.folder / "jobs"

    @property
    def home(self) -> Path:
        """The nodes' /home."""
        return self.folder / "home"

    def shared(self, name: str) -> Path:
        """The folder of a shared file system of the configuration."""
        return self.folder / "shared" / name

    def mounts(self, configuration: ClusterConfiguration, *, head: bool) -> dict[str, tuple[Path, bool]]:
        """By path in a node: the folder that is mounted there, and whether the node may write."""
        mounts = {
            KEYS: (self.keys, head),
            SLURM_CONF: (self.slurm_conf, False),
            JOBS: (self.jobs, True),
            "/home": (self.home, True),
        }
        if head:
            mounts |= {SLURM_STATE: (self.slurm_state, True), ORDERS: (self.orders, True)}
        for shared in configuration.shared_storage:
            mounts[shared.mount_dir] = (self.shared(shared.name), True)
        return mounts
