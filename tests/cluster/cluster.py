"""A cluster as its user has it: through the command lines alone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import docker

from tests.waiting import wait_for
from windtunnel_local.cluster.nodes import FOLDER_LABEL

PATIENCE_S = 600.0
"""For what takes seconds: a busy machine is no failure."""
IDLE_S = 10
SHOW_NODES = "sinfo --noheader --Node --format='%N %T'"


class Cluster:
    """``folder``: of its home and its file, the test's own."""

    def __init__(self, folder: Path, name: str, configuration: str) -> None:
        """Nothing is made yet."""
        self.name = name
        self.file = folder / f"{name}.yaml"
        self.file.write_text(configuration)
        self.home = folder / "home"
        self.folder = self.home / "clusters" / name
        self.environment = {
            **os.environ,
            "WINDTUNNEL_HOME": str(self.home),
            "WINDTUNNEL_LOCAL_CORES": "2",
            "WINDTUNNEL_MEMORY_GIB": "4",
            "WINDTUNNEL_CLUSTER_IDLE_SECONDS": str(IDLE_S),
        }

    def pcluster(self, operation: str, *arguments: str) -> Any:
        """What one of pcluster's operations on this cluster prints."""
        program = "from windtunnel_local.__main__ import pcluster; raise SystemExit(pcluster())"
        command = [sys.executable, "-c", program, operation, "-n", self.name, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def create(self) -> None:
        """Until it takes jobs."""
        asked = self.pcluster("create-cluster", "-c", str(self.file))
        assert asked["cluster"]["clusterStatus"] == "CREATE_IN_PROGRESS", asked
        self.wait_for(clusterStatus="CREATE_COMPLETE")

    def wait_for(self, **wanted: str) -> None:
        """Until describe-cluster says so; a creation or update that failed ends the test."""

        def is_so() -> bool:
            found = self.described()
            assert "FAILED" not in found["clusterStatus"], (found, self.log())
            return all(found.get(name) == value for name, value in wanted.items())

        until(is_so, self.log)

    def described(self) -> Any:
        """What describe-cluster prints."""
        return self.pcluster("describe-cluster")

    def ssh(self, command: str, node: str | None = None) -> str:
        """What a command prints on the head node, or on another."""
        words = [self.name, *([node] if node else []), "--", command]
        enter = [sys.executable, "-m", "windtunnel_local", "cluster", "ssh", *words]
        done = subprocess.run(
            enter,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def ssh_until(self, condition: str) -> None:
        """Wait for a condition of the head node's shell."""
        waits = f"timeout {PATIENCE_S:.0f} bash -c {shlex.quote(f'until {condition}; do sleep 0.5; done')}"
        said = self.ssh(f"{waits} && echo so || {{ squeue; sinfo; tail -n 50 slurm-*.out; }}")
        assert said == "so\n", (condition, said, self.log())

    def nodes(self) -> dict[str, str]:
        """By node, its state as sinfo shows it."""
        pairs = (line.partition(" ") for line in self.ssh(SHOW_NODES).splitlines())
        return {name: state for name, _, state in pairs}

    def sbatch(self, arguments: str, folder: str = "~") -> str:
        """Submit a job from a folder of the head node, with the Neuron environment; its number."""
        enter = f"cd {folder} && source ~/aws_neuron_venv_pytorch/bin/activate"
        said = self.ssh(f"{enter} && sbatch {arguments}")
        assert said.startswith("Submitted batch job "), said
        return said.split()[-1]

    def wait_for_job(self, number: str) -> list[str]:
        """Until sacct knows its end; then its state, nodes and exit code."""
        asked = f"sacct -n -P -j {number} -o State,NNodes,ExitCode"
        self.ssh_until(f'[ -n "$({asked})" ]')
        return self.ssh(asked).strip().split("|")

    def report(self, number: str) -> Any:
        """What `windtunnel cluster report --json` prints of a job."""
        command = [
            sys.executable,
            "-m",
            "windtunnel.cli.main",
            "cluster",
            "report",
            self.name,
            number,
            "--json",
        ]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def log(self) -> str:
        """The background process's."""
        path = self.folder / "fleet.log"
        return path.read_text() if path.exists() else ""

    def fleet_process(self) -> int:
        """The number of the background process."""
        found = subprocess.run(
            ["pgrep", "-f", f"windtunnel_local.cluster.fleet {self.folder}"],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(found.stdout)

    def delete(self) -> None:
        """Until nothing is left."""
        if self.folder.exists():
            self.pcluster("delete-cluster")
            until(lambda: not self.folder.exists(), self.log)

    def leftovers(self) -> list[str]:
        """Containers, networks and files of it."""
        client = docker.from_env()
        try:
            filters = {"label": f"{FOLDER_LABEL}={self.folder}"}
            listed = client.api.containers(all=True, filters=filters) + client.api.networks(filters=filters)
        finally:
            client.close()
        files = [str(path) for path in self.folder.parent.iterdir() if self.name in path.name]
        return [str(each["Id"]) for each in listed] + files


until = partial(wait_for, patience_s=PATIENCE_S, pause_s=1.0)  # a question takes half a second of a processor
