"""Where a client runs: an empty home, leftovers of a real account around it, and no network but loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
_PATIENCE_S = 1200
_ENGINE = ("DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "WINDTUNNEL_IMAGE")
# What a shell may hold; none of it may be asked, or signed with.
_REAL_ACCOUNT = {
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREALREALREALREAL",
    "AWS_SECRET_ACCESS_KEY": "of-a-real-account",
    "AWS_SESSION_TOKEN": "of-a-real-account",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ENDPOINT_URL_S3": "https://s3.eu-central-1.amazonaws.com",
}
# Brings loopback up in a new network namespace, says so, and stays to keep the namespace.
_HOLDER = """
import fcntl, os, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
print("up", flush=True)
sys.stdin.read()
"""


# Imports an SDK once, which takes longer than what most scripts do with it, then runs each script in a process of its
# own. Output and exit code of each are in files beside it.
_FORKS = """
import importlib, os, runpy, sys
from pathlib import Path

importlib.import_module(sys.argv[1])
scripts = {}
for script in sys.argv[2:]:
    child = os.fork()
    if not child:
        output = os.open(f"{script}.output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = [script]
        runpy.run_path(script, run_name="__main__")
        sys.exit()
    scripts[child] = script
while scripts:
    child, status = os.wait()
    Path(f"{scripts.pop(child)}.code").write_text(str(os.waitstatus_to_exitcode(status)))
"""


@contextmanager
def loopback_only() -> Iterator[list[str]]:
    """A prefix that runs a command where no network leads out; empty where this user may not make such a place.

    The Docker engine must be reached by its unix socket.
    """
    engine_by_tcp = not os.environ.get("DOCKER_HOST", "unix://").startswith("unix://")
    if os.geteuid() != 0 or engine_by_tcp or not (shutil.which("unshare") and shutil.which("nsenter")):
        yield []
        return
    holder = subprocess.Popen(
        ["unshare", "--net", "--", sys.executable, "-c", _HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin
    assert holder.stdout
    try:
        permitted = holder.stdout.readline() == "up\n"
        yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net", "--"] if permitted else []
    finally:
        holder.communicate()  # the end of its input


@dataclass
class Run:
    """A client under way; its output is in a file, so that nobody need read it meanwhile."""

    process: subprocess.Popen[bytes]
    output: Path
    parent: Run | None = None
    """What started this script and others, and wrote its exit code to a file."""

    def ended(self) -> tuple[int, str]:
        """Its exit code and all it printed; waits."""
        code = self.process.wait(_PATIENCE_S)
        if self.parent is not None:
            assert code == 0, self.parent.output.read_text()
            code = int(self.output.with_suffix(".code").read_text())
        return code, self.output.read_text(errors="replace")

    def killed(self) -> None:
        """End it, and wait for its end."""
        self.process.kill()
        self.process.wait()


@dataclass
class Place:
    """An empty home with a working directory: the scripts, and data for them."""

    home: Path
    client: Path
    prefix: Sequence[str]

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.home / "work"

    @property
    def environment(self) -> Mapping[str, str]:
        """All that the client inherits."""
        tools = [self.client / "bin", Path(sys.executable).parent]
        return {
            **_REAL_ACCOUNT,
            **{name: os.environ[name] for name in _ENGINE if name in os.environ},
            "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "250",
            "PYTHONUNBUFFERED": "1",
            # Where the network cannot be taken away, nothing that asks for TLS gets through.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "WINDTUNNEL_MEMORY_GIB": "4",
        }

    def started(self, *command: str, enter: bool = True) -> Run:
        """Start a command where ``enter.sh`` was sourced, as in a user's shell."""
        if not self.work.exists():
            shutil.copytree(SCRIPTS, self.work)
        output = self.home / f"output-{len(list(self.home.glob('output-*')))}"
        words = ["sh", "-ec", '. ./enter.sh; "$@"', "sh", *command] if enter else list(command)
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*self.prefix, *words],
                cwd=self.work,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        return Run(process, output)

    def started_together(self, sdk: str, *scripts: str) -> dict[str, Run]:
        """Start scripts that use one SDK, by their names. All of them are under way at once."""
        parent = self.started("python", "-c", _FORKS, sdk, *scripts)
        return {script: Run(parent.process, self.work / f"{script}.output", parent) for script in scripts}

    def run(self, *command: str) -> str:
        """What a command prints, which must succeed."""
        code, output = self.started(*command).ended()
        assert code == 0, output[-3000:]
        return output

    def left(self) -> None:
        """End the backend, if one runs."""
        self.started("windtunnel", "down", enter=False).ended()
