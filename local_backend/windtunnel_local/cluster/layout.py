"""Paths in a cluster's folder, besides its record, and where its nodes have them mounted."""

from __future__ import annotations

from pathlib import Path

from windtunnel_local.cluster.configuration import ClusterConfiguration

KEYS = "/opt/windtunnel/keys"
JOBS = "/opt/windtunnel/jobs"
ORDERS = "/opt/windtunnel/orders"
SLURM_CONF = "/etc/slurm"
SLURM_STATE = "/var/spool/slurmctld"
PROGRAMS = "/opt/windtunnel/cluster/node"
"""Folder in the image with the programs that Slurm calls."""


class Layout:
    """The paths below a cluster's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "fleet.json"
        """The settings of this machine and its user with which the cluster was made."""
        self.socket = folder / "fleet.sock"
        """The socket at which commands reach the background process."""
        self.lock = folder / "fleet.lock"
        """Held by the background process while it lives."""
        self.log = folder / "fleet.log"
        """The background process's own log."""
        self.orders = folder / "orders"
        """The folder with the socket that Slurm's power saving reaches, and nothing else."""
        self.keys = folder / "keys"
        """Keys of munge and ssh, readable by the owner only."""
        self.slurm_conf = folder / "slurm" / "conf"
        """The folder with slurm.conf."""
        self.slurm_state = folder / "slurm" / "state"
        """slurmctld's state, and the file of completed jobs (jobcomp/filetxt)."""
        self.completed_jobs = self.slurm_state / "completed_jobs"
        """The file with a line for each completed job, as Slurm's jobcomp/filetxt writes it."""
        self.jobs = folder / "jobs"
        """The simulator's counters, in folders ``JOB/NODE``."""
        self.home = folder / "home"
        """The nodes' /home."""

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
