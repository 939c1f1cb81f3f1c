"""A home's server is killed while it starts, started several times at once, and finds what others left."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.conftest import wait_for
from tests.contract.test_server_process import Process

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 180.0
_STARTS = 3
_KILLS = 5


class Servers:
    """Processes that serve one home, or try to."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.processes: list[Process] = []

    def start(self, *prefix: str) -> Process:
        """Start one; ``prefix``: a program that runs it."""
        self.processes.append(Process(self.home, prefix))
        return self.processes[-1]

    def end(self) -> None:
        """End all."""
        while self.processes:
            self.processes.pop().kill()


def answers(process: Process) -> bool:
    """Whether it does."""
    with closing(process.client("sagemaker")) as client:
        return bool(client.list_training_jobs()["TrainingJobSummaries"] == [])


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path / "home")
    yield made
    made.end()


def test_several_starts_at_once(servers: Servers) -> None:
    """One serves; the others say where, and that is no error."""
    started = [servers.start() for _ in range(_STARTS)]
    wait_for(lambda: [process.popen.poll() for process in started].count(None) == 1, patience_s=_PATIENCE_S)
    (serving,) = (process for process in started if process.popen.poll() is None)
    assert answers(serving)
    started.remove(serving)
    for process in started:
        code, output = process.end()
        assert code == 0, output
        assert serving.note()["endpoint"] in output


def test_kills_while_it_starts(servers: Servers) -> None:
    """At random moments, the first start of all among them: the next one serves, with what there is."""
    rng = random.Random(3)  # noqa: S311 - reproducible, not secret
    for _ in range(_KILLS):
        process = servers.start()
        time.sleep(rng.uniform(0.2, 0.9))
        process.kill()
    assert answers(servers.start())
    assert not list(servers.home.glob("*.tmp"))


def test_a_stale_note(servers: Servers) -> None:
    """Of a killed server whose number somebody else has now: it is replaced, as is a half-written one."""
    servers.home.mkdir()
    note = {"endpoint": "http://127.0.0.1:9", "pid": os.getpid(), "version": "0", "runner": "docker"}
    (servers.home / "backend.json").write_text(json.dumps(note))
    (servers.home / "backend.tmp").write_text("half a note")
    assert answers(servers.start())


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
        with closing(process.client("s3")) as client:
            client.create_bucket(Bucket="bucket")
            client.put_object(Bucket="bucket", Key="large", Body=bytes(20 << 20))
            assert client.head_object(Bucket="bucket", Key="large")["ContentLength"] == 20 << 20
    finally:
        servers.end()
        stash.rmdir()
        if servers.home.parent == Path("/var/tmp"):
            shutil.rmtree(servers.home, ignore_errors=True)
