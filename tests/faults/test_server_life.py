"""A home's server is killed while it starts, started several times at once, and finds what others left."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 180.0
_STARTS = 5
_KILLS = 5


class Servers:
    """Processes that serve one home, or try to."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *prefix: str) -> subprocess.Popen[str]:
        """Start one; ``prefix``: a program that runs it."""
        # The process runner needs no engine, and without a job it needs nothing else either.
        variables = {"WINDTUNNEL_HOME": str(self.home), "WINDTUNNEL_RUNNER": "process"}
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "windtunnel_local", "serve"],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def note(self, of: subprocess.Popen[str] | None = None) -> dict[str, Any]:
        """backend.json of a process that lives, or of a certain one."""
        alive = [of] if of else self.processes
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            try:
                found = json.loads((self.home / "backend.json").read_text())
            except (FileNotFoundError, ValueError):
                found = None
            note: dict[str, Any] = found if isinstance(found, dict) else {}
            if any(note.get("pid") == process.pid and process.poll() is None for process in alive):
                return note
            assert any(process.poll() is None for process in alive), [p.communicate() for p in alive]
            time.sleep(0.02)
        raise AssertionError("no server wrote its note")

    def client(self, service: str, note: dict[str, Any]) -> Any:
        """A client of the server that wrote the note."""
        keys = json.loads((self.home / "credentials.json").read_text())
        return boto3.client(
            service,
            endpoint_url=note["endpoint"],
            aws_access_key_id=keys["access_key_id"],
            aws_secret_access_key=keys["secret_access_key"],
            region_name=keys["region"],
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def answers(self, note: dict[str, Any]) -> bool:
        """Whether it answers."""
        client = self.client("sagemaker", note)
        try:
            return bool(client.list_training_jobs()["TrainingJobSummaries"] == [])
        finally:
            client.close()

    def end(self) -> None:
        """End all."""
        while self.processes:
            process = self.processes.pop()
            process.kill()
            if process.stdout and not process.stdout.closed:
                process.communicate()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path / "home")
    yield made
    made.end()


def test_several_starts_at_once(servers: Servers) -> None:
    """One serves; the others say where, and that is no error."""
    started = [servers.start() for _ in range(_STARTS)]
    note = servers.note()
    assert servers.answers(note)
    for process in started:
        if process.pid != note["pid"]:
            output, _ = process.communicate(timeout=_PATIENCE_S)
            assert process.returncode == 0, output
            assert note["endpoint"] in output
    assert [process.poll() is None for process in started].count(True) == 1


def test_kills_while_it_starts(servers: Servers) -> None:
    """At random moments, the first start of all among them: the next one serves, with what there is."""
    rng = random.Random(3)  # noqa: S311 - reproducible, not secret
    for _ in range(_KILLS):
        process = servers.start()
        time.sleep(rng.uniform(0.2, 0.9))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert servers.answers(servers.note(servers.start()))
    assert not list(servers.home.glob("*.tmp"))


@pytest.mark.parametrize("left", ["alive", "nonsense", "half", "empty"])
def test_a_stale_note(servers: Servers, left: str) -> None:
    """Of a killed server whose number somebody else has now, or no note at all: it is replaced."""
    servers.home.mkdir()
    note = {"endpoint": "http://127.0.0.1:9", "pid": os.getpid(), "version": "0", "runner": "docker"}
    texts = {"alive": json.dumps(note), "nonsense": "[1, 2]", "half": json.dumps(note)[:20], "empty": ""}
    path = servers.home / "backend.json"
    path.write_text(texts[left])
    (servers.home / "backend.tmp").write_text("half a note")
    assert servers.answers(servers.note(servers.start()))


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a /tmp of its own: root")
def test_a_full_tmp(servers: Servers) -> None:
    """The server keeps nothing there: it starts, and takes objects that are larger than any buffer."""
    if servers.home.is_relative_to("/tmp"):
        servers.home = Path("/var/tmp") / f"windtunnel-life-{os.getpid()}"
    fill = "mount -t tmpfs -o size=4k full /tmp && ! head -c 1M /dev/zero >/tmp/filler 2>/dev/null"
    stash = Path(tempfile.mkdtemp(dir="/var/tmp"))
    if ROOT.is_relative_to("/tmp"):  # these sources stay where they are
        fill = (
            f'mount --bind "{ROOT}" "{stash}" && mount -t tmpfs -o size=64k full /tmp && mkdir -p "{ROOT}"'
            f' && mount --bind "{stash}" "{ROOT}" && ! head -c 1M /dev/zero >/tmp/filler 2>/dev/null'
        )
    try:
        process = servers.start("unshare", "--mount", "sh", "-c", f'{fill}; exec "$@"', "sh")
        note = servers.note(process)
        client = servers.client("s3", note)
        client.create_bucket(Bucket="bucket")
        client.put_object(Bucket="bucket", Key="large", Body=bytes(20 << 20))
        assert client.head_object(Bucket="bucket", Key="large")["ContentLength"] == 20 << 20
        client.close()
    finally:
        servers.end()
        stash.rmdir()
        if servers.home.parent == Path("/var/tmp"):
            shutil.rmtree(servers.home, ignore_errors=True)
