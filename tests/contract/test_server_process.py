"""The server as a process of its own: its files, its memory, its end."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3

from tests.contract.conftest import wait_for


class Process:
    """``python -m windtunnel_local serve`` in a home; ``prefix``: a program that runs it."""

    def __init__(self, home: Path, prefix: Sequence[str] = (), **environment: str) -> None:
        self.home = home
        # The process runner needs no engine, and without a job it needs nothing else either.
        variables = {"WINDTUNNEL_HOME": str(home), "WINDTUNNEL_RUNNER": "process", **environment}
        self.begun = time.monotonic()
        self.popen = subprocess.Popen(
            [*prefix, sys.executable, "-m", "windtunnel_local", "serve"],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def note(self) -> dict[str, Any]:
        """backend.json once it is this process's."""

        def own() -> Any:
            assert self.popen.poll() is None, self.end()
            try:
                note = json.loads((self.home / "backend.json").read_text())
            except (FileNotFoundError, ValueError):  # not there yet, or what another has left
                return None
            return note if isinstance(note, dict) and note.get("pid") == self.popen.pid else None

        note: dict[str, Any] = wait_for(own, patience_s=180)  # it may be one of several, on a busy machine
        return note

    def client(self, service: str) -> Any:
        """A client with the home's credentials."""
        endpoint = self.note()["endpoint"]
        keys = json.loads((self.home / "credentials.json").read_text())
        return boto3.client(
            service,
            endpoint_url=endpoint,
            aws_access_key_id=keys["access_key_id"],
            aws_secret_access_key=keys["secret_access_key"],
            region_name=keys["region"],
        )

    def peak_rss_mib(self) -> float:
        """The most memory it ever had."""
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def kill(self) -> None:
        """SIGKILL, if it has not ended; waits."""
        self.popen.kill()
        if self.popen.stdout and not self.popen.stdout.closed:
            self.popen.communicate()

    def end(self) -> tuple[int, str]:
        """Its exit code and all it printed; waits."""
        output, _ = self.popen.communicate(timeout=120)
        return self.popen.returncode, output


def test_one_server_after_the_other(tmp_path: Path) -> None:
    """A home has one at a time: a second one says where the first is, and one that comes as it leaves waits, so that no
    client finds none of the two. Its files are its own; SIGTERM ends it cleanly.
    """
    home = tmp_path / "home"
    server = Process(home)
    note = server.note()
    print(f"accepting after {time.monotonic() - server.begun:.2f} s")
    assert note.keys() == {"endpoint", "pid", "version", "runner", "interpreter"}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "credentials.json").stat().st_mode) == 0o600
    assert server.client("sts").get_caller_identity()["Account"] == "000000000000"

    code, output = Process(home).end()
    assert (code, note["endpoint"] in output) == (0, True)

    server.popen.terminate()
    wait_for(lambda: not (home / "backend.json").exists(), pause_s=0.005)
    successor = Process(home)
    code, output = server.end()
    assert code == 0, output
    successor.note()
    successor.popen.terminate()
    assert successor.end()[0] == 0
    assert not (home / "backend.json").exists()
    assert not (home / "objects" / ".unclean").exists()


def test_a_home_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Docker and SQLite take names in UTF-8: a job there was tried again and again, and never ended."""
    process = Process(Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xe9")))
    code, output = process.end()
    assert code == 1
    assert "is no UTF-8" in output
    assert "Set WINDTUNNEL_HOME" in output
    assert list(tmp_path.iterdir()) == []


def test_what_clients_know_of_a_server_outlives_it(tmp_path: Path) -> None:
    """After SIGKILL and after a stop the port is the same. Temporary credentials are derived, not remembered.

    Jobs reach it by a socket, also in a home with a long name, and where a killed server has left its socket. Only the
    owner can enter, it asks for signatures, and a job may know the server by an earlier server's port.
    """
    home = tmp_path / ("long" * 30)
    first = Process(home)
    endpoint = first.note()["endpoint"]
    with closing(first.client("sts")) as sts:
        role = {"RoleArn": "arn:aws:iam::000000000000:role/Trainer", "RoleSessionName": "me"}
        made = sts.assume_role(**role)["Credentials"]
    asks_for_signatures(home / "api" / "socket", endpoint)
    first.kill()

    second = Process(home)
    assert second.note()["endpoint"] == endpoint
    asks_for_signatures(home / "api" / "socket", endpoint)
    keys = {
        "aws_access_key_id": made["AccessKeyId"],
        "aws_secret_access_key": made["SecretAccessKey"],
        "aws_session_token": made["SessionToken"],
    }
    with closing(boto3.client("sts", endpoint_url=endpoint, region_name="us-east-1", **keys)) as sts:
        assert sts.get_caller_identity()["Arn"].endswith(":assumed-role/Trainer/me")
    second.popen.terminate()
    assert second.end()[0] == 0

    third = Process(home)
    assert third.note()["endpoint"] == endpoint
    third.kill()


def asks_for_signatures(path: Path, endpoint: str) -> None:
    """A server's socket, and tells of its health without one, whatever the port that is named."""
    port = int(endpoint.rpartition(":")[2])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    folder = os.open(path.parent, os.O_PATH)
    for target, host, status in (("/", port, b"403"), ("/health", port + 1, b"200")):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{folder}/{path.name}")
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{host}\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 %s " % status)
    os.close(folder)


def test_a_bad_setting_is_named(tmp_path: Path) -> None:
    """And what is valid."""
    code, output = Process(tmp_path / "home", WINDTUNNEL_RUNNER="podman").end()
    assert code == 1
    assert "it must be docker or process or slurm" in output
    assert "Traceback" not in output
