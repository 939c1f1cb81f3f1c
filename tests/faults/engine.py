"""A Docker engine of a test's own, which may be killed: the machine's engine is never touched.

It runs in namespaces of its own (processes, mounts, network), so that it cannot meet another
engine's bridge, firewall rules or shims, and so that one SIGKILL to the first process of its
process namespace ends the engine, its containerd, every shim and every container; the kernel
then takes back the mounts and the network. What is left is a folder, which is removed.

Needs root, `dockerd` and `unshare`. The only import of docker in this folder.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import docker
import requests
from docker.errors import DockerException

BASE = "windtunnel-base:bookworm"
_TAKEN = ("bin", "etc", "lib", "lib64", "sbin", "tmp", "usr", "var/tmp")
_LEFT_OUT = (
    "gcc*",
    "include",
    "share",
    "config-*",
    "*.a",
    "perl*",
    "*-linux-gnu-*",
    "lib?san.*",
    "gconv",
    "gprofng",
)
_PATIENCE_S = 180.0
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
_HOLDER = ("docker-init", "--", "sleep", "infinity")
_CLONE_NEWNET = 0x40000000
_CGROUPS = Path("/sys/fs/cgroup")


def can_run() -> bool:
    """Whether this machine can have a second engine: root, and the programs for it."""
    programs = ("dockerd", "unshare", "nsenter", "docker-init")
    return os.geteuid() == 0 and all(shutil.which(name) for name in programs)


class HeldLogs:
    """The engine's log files of some containers, open. `close` them."""

    def __init__(self, files: Sequence[tuple[str, BinaryIO]]) -> None:
        """``files``: with their containers' names."""
        self._files = files

    def lines(self, job: str) -> list[str]:
        """What is in them now, of the containers whose names have ``job`` in them. May be asked again."""
        found: list[str] = []
        for name, file in self._files:
            if f"-{job}-" in name:
                file.seek(0)
                for record in file:
                    with suppress(ValueError):  # written by half
                        found.append(json.loads(record)["log"].removesuffix("\n"))
        return found

    def close(self) -> None:
        """Let go of them."""
        for _, file in self._files:
            file.close()


class PrivateEngine:
    """`start`, `kill`, `start` again, ..., `close`. Not for several threads."""

    def __init__(self, *, live_restore: bool, runtime: str | None = None) -> None:
        """Makes the namespaces; no engine runs yet.

        Args:
            live_restore: dockerd's flag of that name.
            runtime: a shell script to call instead of ``runc``; it runs in ``folder``.
        """
        # Short, because a socket's path may have 108 bytes; on the disk, because /tmp may be in memory.
        self.folder = Path(tempfile.mkdtemp(prefix="windtunnel-engine-", dir="/var/tmp"))
        self.host = f"unix://{self.folder / 'socket'}"
        self._live_restore = live_restore
        self._runtime = self.folder / "runtime" if runtime is not None else None
        if self._runtime is not None:
            self._runtime.write_text(f"#!/bin/sh\ncd {self.folder}\n{runtime}")
            self._runtime.chmod(0o755)
        self._daemon: subprocess.Popen[bytes] | None = None
        self._log = (self.folder / "dockerd.log").open("ab")
        self._cgroup = self.folder.name
        self._client: docker.DockerClient | None = None
        # The first process must reap: a containerd that stays a zombie would look alive to the next engine.
        self._holder = subprocess.Popen(
            ["unshare", *_NAMESPACES, *_HOLDER],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._init = _child(self._holder.pid, "docker-init")
            _child(self._init, "sleep")  # as process 2, which `power_cut` spares
            # Shims have their sockets below /run, whatever dockerd is told.
            self.inside("sh", "-ec", "mount -t tmpfs run /run && mkdir /run/lock && ip link set lo up")
        except BaseException:
            self.close()
            raise

    def inside(self, *command: str) -> str:
        """Run a command in the engine's namespaces and return what it prints. Blocks."""
        done = subprocess.run(
            [*self._enter(), *command], check=True, stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S
        )
        return done.stdout

    @contextmanager
    def network(self) -> Iterator[None]:
        """Put this thread, and what it starts, into the engine's network, where containers' ports are."""
        theirs = Path(f"/proc/{self._init}/ns/net")
        with Path("/proc/thread-self/ns/net").open("rb") as ours, theirs.open("rb") as its:
            _set_network(its.fileno())
            try:
                yield
            finally:
                _set_network(ours.fileno())

    def layer_mounts(self) -> list[str]:
        """Where containers' layers are mounted."""
        points = [line.split()[1] for line in self.inside("cat", "/proc/mounts").splitlines()]
        return [point for point in points if "/data/overlay2/" in point]

    def hold_logs(self) -> HeldLogs:
        """The engine's own logs of all containers that it has now, also for when it has removed them."""
        held: list[tuple[str, BinaryIO]] = []
        for path in (self.folder / "data" / "containers").glob("*/*-json.log"):
            with suppress(OSError, ValueError):  # a killed engine may not have come to writing this
                config = json.loads((path.parent / "config.v2.json").read_text())
                held.append((config["Name"], path.open("rb")))
        return HeldLogs(held)

    def start(self, *, live_restore: bool | None = None) -> None:
        """Start dockerd and wait until it answers. Blocks: half a second, longer with much to restore.

        ``live_restore``: from now on; None leaves it.
        """
        self._live_restore = self._live_restore if live_restore is None else live_restore
        (self.folder / "pid").unlink(missing_ok=True)  # a killed one's, and the number may be taken again
        (self.folder / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)
        (self.folder / "daemon.json").write_text("{}")
        self._daemon = subprocess.Popen(
            [*self._enter(), "dockerd", *self._options()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self.await_answer()

    def await_answer(self) -> None:
        """Wait until the engine answers."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as knock:  # docker-py would leak its own
                    knock.connect(self.host.removeprefix("unix://"))
                self.client().ping()
                return
            except (DockerException, requests.RequestException, OSError):
                ended = self._daemon.poll() if self._daemon is not None else None
                if ended is not None or time.monotonic() > deadline:
                    log = (self.folder / "dockerd.log").read_text()[-4000:]
                    raise AssertionError(f"dockerd does not answer; exit code: {ended}; {log}") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to dockerd, as the kernel does when memory is short; its containerd goes with it."""
        assert self._daemon is not None
        with suppress(ProcessLookupError):
            os.kill(_child(self._daemon.pid, "dockerd"), signal.SIGKILL)
        self._daemon.wait()
        self._daemon = None

    def power_cut(self) -> None:
        """SIGKILL to the engine and to all that it runs, as when the machine goes down."""
        self.kill()
        # All but the first process of the namespace, its sleep, and the shell itself.
        self.inside("sh", "-c", 'kill -9 $(ls /proc | grep -x "[0-9]*" | grep -vxE "1|2|$$") 2>/dev/null; :')

    def client(self) -> docker.DockerClient:
        """A client of this engine."""
        if self._client is None:
            self._client = docker.DockerClient(base_url=self.host, timeout=60, version="1.41")
        return self._client

    def load_base(self) -> None:
        """Give it the machine's base image, without compilers and their like: 126 of 446 MB to unpack."""
        left_out = (f"--exclude={pattern}" for pattern in _LEFT_OUT)
        pack = ["docker", "run", "--rm", "--network", "none", BASE, "tar", "-cC", "/", *left_out, *_TAKEN]
        files = subprocess.run(pack, check=True, stdout=subprocess.PIPE, timeout=_PATIENCE_S).stdout
        name, tag = BASE.split(":")
        self.client().api.import_image_from_data(files, repository=name, tag=tag)

    def make_image(self, name: str, files: dict[str, str]) -> None:
        """An image of the base image with executable files on top: ``files`` by absolute path."""
        pack = io.BytesIO()
        with tarfile.open(fileobj=pack, mode="w") as tar:
            recipe = f"FROM {BASE}\n" + "".join(f"COPY {_flat(path)} {path}\n" for path in files)
            for path, text in [("/Dockerfile", recipe), *files.items()]:
                info = tarfile.TarInfo(_flat(path))
                info.mode, info.size = 0o755, len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
        pack.seek(0)
        self.client().images.build(fileobj=pack, custom_context=True, tag=name, rm=True)

    def close(self) -> None:
        """End all that runs in the namespaces and remove what they left. Idempotent."""
        if self._client is not None:
            self._client.close()
        with suppress(ProcessLookupError):
            os.kill(getattr(self, "_init", self._holder.pid), signal.SIGKILL)
        self._holder.wait()
        if self._daemon is not None:
            self._daemon.wait()
        self._log.close()
        _remove_cgroups(_CGROUPS.glob(f"*/{self._cgroup}"))
        _remove_cgroups(_CGROUPS.glob(self._cgroup))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", str(self._init), "--net", "--mount", "--pid"]

    def _options(self) -> list[str]:
        folder = self.folder
        options = {
            "config-file": folder / "daemon.json",
            "data-root": folder / "data",
            "exec-root": folder / "exec",
            "pidfile": folder / "pid",
            "host": self.host,
            "cgroup-parent": f"/{self._cgroup}",
        }
        flags = ["--live-restore"] if self._live_restore else []
        if self._runtime is not None:
            flags += [f"--add-runtime=test={self._runtime}", "--default-runtime=test"]
        return [*(f"--{name}={value}" for name, value in options.items()), *flags]


def _set_network(descriptor: int) -> None:
    """As `os.setns` of Python 3.12."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _child(pid: int, name: str) -> int:
    """The child of that name; `unshare` and `nsenter` fork, and wait for it."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == name:
                return int(child)
        assert time.monotonic() < deadline, f"process {pid} never started {name}"
        time.sleep(0.005)


def _remove_cgroups(tops: Iterable[Path]) -> None:
    """Control groups go from below to above, once their last process is reaped."""
    for top in tops:
        for folder in sorted((top, *top.rglob("*/")), key=lambda path: -len(path.parts)):
            with suppress(OSError):
                folder.rmdir()


def _flat(path: str) -> str:
    return path.strip("/").replace("/", "_")
