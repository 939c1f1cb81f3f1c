"""A Slurm cluster of four nodes on this machine: Debian's daemons in the foreground, on loopback."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel")
INSTALL = "apt-get install -y slurmctld slurmd slurm-client munge (scripts/setup.sh slurm does)"
NODES = ("node1", "node2", "node3", "node4")
CPUS = 16
"""That each node says it has."""
_PATIENCE_S = 180.0

_CONFIGURATION = """
ClusterName=windtunnel
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=30
KillWait=2
MessageTimeout=30
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE
PartitionName=small Nodes={first} Default=NO State=UP MaxTime=1
"""


class Cluster:
    """Its daemons, which may be killed one by one. ``configuration``: what SLURM_CONF names."""

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet."""
        self._folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.configuration = folder / "slurm.conf"

    def start(self) -> None:
        """Start all daemons, and wait until the nodes take jobs."""
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        assert not missing, f"{', '.join(missing)} is missing; as root: {INSTALL}"
        assert os.getuid() == 0, (
            "slurmd starts jobs as their users, which only root can: run these tests as root"
        )
        self._folder.chmod(0o755)
        (self._folder / "state").mkdir()
        key = self._folder / "munge.key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        ports = _free_ports(1 + len(NODES))
        self._ports = dict(zip(NODES, ports[1:], strict=True))
        nodes = (
            f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS}"
            for node, port in self._ports.items()
        )
        self.configuration.write_text(
            _CONFIGURATION.format(
                host=socket.gethostname(),
                controller=ports[0],
                folder=self._folder,
                nodes="\n".join(nodes),
                first=NODES[0],
            )
        )
        (self._folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        files = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "munge.seed"}
        files |= {"pid-file": "munge.pid", "log-file": "munge.log"}
        options = [f"--{option}={self._folder / name}" for option, name in files.items()]
        self._run("munged", "munged", "--foreground", "--force", *options)
        self._wait(lambda: _listens(self._folder / "munge.socket"))
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.wait_until_idle()

    def start_controller(self) -> None:
        """Start slurmctld, with the state that an earlier one has left. Returns when it answers."""
        self._run("slurmctld", "slurmctld", "-D")
        self._wait(lambda: "is UP" in self.call("scontrol", "ping"))

    def start_node(self, node: str, hidden: Path | None = None) -> None:
        """Start a node's slurmd. ``hidden``: a folder that this node does not share with the others.

        Returns when it answers.
        """
        daemon = ("slurmd", "-D", "-N", node)
        if hidden is None:
            self._run(node, *daemon)
        else:
            mount = f'mount -t tmpfs none "{hidden}" && exec "$@"'
            self._run(node, "unshare", "--mount", "sh", "-c", mount, "sh", *daemon)
        self._wait(lambda: _listens(("127.0.0.1", self._ports[node])))

    def kill(self, name: str) -> None:
        """SIGKILL for a daemon: a node's name, or slurmctld. What slurmd has started runs on."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def lose(self, node: str) -> None:
        """Kill a node, and let Slurm know that it is down, which it would find out by itself after a while.

        Half a minute: sooner, each node that a busy machine lets wait would be down.
        """
        self.kill(node)
        self.call("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def call(self, *command: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    @property
    def saved_at(self) -> float:
        """When the controller last wrote down all jobs; seconds since the epoch."""
        return (self._folder / "state" / "job_state").stat().st_mtime

    @property
    def environment(self) -> dict[str, str]:
        """In which Slurm's commands find the cluster."""
        return {**os.environ, "SLURM_CONF": str(self.configuration)}

    def wait_until_idle(self) -> None:
        """Until all nodes are up and have no job."""

        def idle() -> bool:
            states = self.call("sinfo", "--noheader", "--Node", "--partition=main", "--format=%T").split()
            return states == ["idle"] * len(NODES)

        self._wait(idle)

    def said(self) -> str:
        """The ends of the daemons' output."""
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in self._folder.glob("*.out"))

    def stop(self) -> None:
        """End all daemons. Idempotent."""
        for name in list(self._daemons):
            daemon = self._daemons[name]
            daemon.send_signal(signal.SIGTERM)
        for daemon in self._daemons.values():
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(60)
            daemon.kill()
            daemon.wait()
        self._daemons.clear()

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Until it holds. One that cannot be asked does not hold."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            with suppress(AssertionError):
                if condition():
                    return
            assert time.monotonic() < deadline, (self.call("sinfo", "-N"), self.call("squeue"), self.said())
            time.sleep(0.1)

    def _run(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                command, env=self.environment, cwd=self._folder, stdout=output, stderr=output
            )


def _listens(address: tuple[str, int] | Path) -> bool:
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    with socket.socket(family) as knock:
        return knock.connect_ex(str(address) if isinstance(address, Path) else address) == 0


def _free_ports(count: int) -> list[int]:
    """Not of those that the kernel hands out: daemons that are killed and started again come back to them."""
    found: list[int] = []
    for port in random.sample(range(20_000, 32_000), 12_000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found
