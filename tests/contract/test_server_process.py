"""The server as a process of its own: its files, its memory, its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.contract.conftest import wait_for

MIB = 1 << 20


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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def server(home: Path) -> Iterator[Process]:
    process = Process(home)
    yield process
    process.kill()


def test_it_accepts_soon_and_keeps_its_files_to_itself(server: Process, home: Path) -> None:
    """Seconds count: fit() waits for it."""
    note = server.note()
    print(f"accepting after {time.monotonic() - server.begun:.2f} s")
    assert note.keys() == {"endpoint", "pid", "version", "runner", "interpreter"}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "credentials.json").stat().st_mode) == 0o600
    assert server.client("sts").get_caller_identity()["Account"] == "000000000000"


def test_a_home_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Docker and SQLite take names in UTF-8: a job there was tried again and again, and never ended."""
    process = Process(Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xe9")))
    code, output = process.end()
    assert code == 1
    assert "is no UTF-8" in output
    assert "Set WINDTUNNEL_HOME" in output
    assert list(tmp_path.iterdir()) == []


def test_jobs_reach_it_by_a_socket_that_asks_for_signatures(tmp_path: Path) -> None:
    """Also in a home with a long name, and where a killed server has left its socket; only the owner can enter.

    A job may know it by an earlier server's port.
    """
    home = tmp_path / ("long" * 30)
    path = home / "api" / "socket"
    for _ in range(2):
        server = Process(home)
        port = int(server.note()["endpoint"].rpartition(":")[2])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        folder = os.open(path.parent, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{folder}/{path.name}")
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            assert client.recv(100).startswith(b"HTTP/1.1 403 ")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{folder}/{path.name}")
            client.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port + 1))
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        os.close(folder)
        server.popen.kill()
        server.end()


def test_sigterm_ends_it_cleanly(server: Process, home: Path) -> None:
    """Exit code 0, no note left."""
    server.note()
    server.popen.terminate()
    code, output = server.end()
    assert code == 0, output
    assert not (home / "backend.json").exists()
    assert not (home / "objects" / ".unclean").exists()


def test_it_leaves_when_idle(home: Path) -> None:
    """With nothing to do, and nobody asking."""
    process = Process(home, WINDTUNNEL_IDLE_SECONDS="0.5")
    code, output = process.end()
    assert code == 0
    assert "idle" in output
    assert not (home / "backend.json").exists()


def test_a_home_has_one_server(server: Process, home: Path) -> None:
    """A second one says where the first is, and is no error."""
    endpoint = server.note()["endpoint"]
    code, output = Process(home).end()
    assert (code, endpoint in output) == (0, True)


def test_a_successor_waits_for_one_that_is_leaving(server: Process, home: Path) -> None:
    """So that no client finds none of the two."""
    server.note()
    server.popen.terminate()
    wait_for(lambda: not (home / "backend.json").exists(), pause_s=0.005)
    successor = Process(home)
    try:
        assert successor.note()["pid"] != server.popen.pid
    finally:
        successor.popen.terminate()
        assert successor.end()[0] == 0


def test_kill_loses_no_object(server: Process, home: Path) -> None:
    """What was answered with 200 is there after SIGKILL, and the keys are the same."""
    s3 = server.client("s3")
    s3.create_bucket(Bucket="bucket")
    for number in range(20):
        s3.put_object(Bucket="bucket", Key=f"k{number:02d}", Body=str(number).encode())
    s3.close()
    server.popen.send_signal(signal.SIGKILL)
    server.popen.communicate()
    successor = Process(home)
    try:
        s3 = successor.client("s3")
        keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]]
        assert keys == [f"k{number:02d}" for number in range(20)]
        s3.close()
    finally:
        successor.popen.terminate()
        successor.end()


def test_objects_pass_in_flat_memory(server: Process, tmp_path: Path) -> None:
    """50 MB up in one piece and in parts, and down: the server grows by a few buffers only."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(MIB) * 50)
    s3 = server.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="small", Body=b"x")
    before = server.peak_rss_mib()
    with source.open("rb") as file:
        s3.put_object(Bucket="bucket", Key="one", Body=file)
    s3.upload_file(str(source), "bucket", "parts")
    for key in ("one", "parts"):
        s3.download_file("bucket", key, str(tmp_path / "target"))
        assert (tmp_path / "target").read_bytes() == source.read_bytes()
    grown = server.peak_rss_mib() - before
    s3.close()
    print(f"grown by {grown:.0f} MiB")
    assert grown < 40


def test_a_bad_setting_is_named(home: Path) -> None:
    """And what is valid."""
    code, output = Process(home, WINDTUNNEL_RUNNER="podman").end()
    assert code == 1
    assert "it must be docker or process or slurm" in output
    assert "Traceback" not in output
