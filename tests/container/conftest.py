"""Tests of the simulator, run inside the training image (`make container-tests`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from forked import FLAGS, PROGRAM

from neuron_sim.warm import wire

SCRIPTS = Path(__file__).parent / "scripts"
SITE = Path(sysconfig.get_path("purelib"))
OWNS_SITE = SITE.stat().st_uid == os.geteuid()
"""Only an owner can set a folder's times. For others the suite is slower after a test that installs modules."""
# Cores enough for every test; a test that needs another instance names it.
INSTANCE = {"WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.32xlarge"}
NEW_LAUNCHER = [sys.executable, "-m", "neuron_sim.launcher.torchrun"]
"""The launcher in a process of its own, as in a container that runs one job."""
FORKED = [sys.executable, str(Path(__file__).with_name("forked.py"))]
"""Before a script and its words: a core in a fork of the suite's server."""
LAUNCHER = [*FORKED, "torchrun"]
"""The launcher in a fork of the suite's server."""
# A core that has the processors to itself computes in a thread on each: beside other tests they wait for each other,
# and take a tenth more of the processors for that.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def records(folder: Path, kind: str | None = None, rank: int = 0) -> list[dict[str, Any]]:
    """What a core has written down, the first one if no other is named: of a kind, or all."""
    found = map(json.loads, (folder / f"rank-{rank}.jsonl").read_text().splitlines())
    return [record for record in found if kind in (None, record["kind"])]


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """What `FORKED` and `LAUNCHER` are forked from; imports while the first tests run."""
    installed = SITE.stat().st_mtime_ns
    token = os.environ[wire.VARIABLE] = uuid.uuid4().hex
    # An import of torch's looks at all there is, and this is another in each test.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    listener = wire.listen(token, PROGRAM)
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(listener.fileno())],
        pass_fds=[listener.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={"XLA_FLAGS": FLAGS, **environment},
    )
    listener.close()
    with server:
        yield
        ended = server.poll()
        server.kill()
    assert ended is None, "the fork server has ended before the tests"
    if OWNS_SITE:
        assert SITE.stat().st_mtime_ns == installed, (
            "a test installed modules: the server forked no more after it"
        )


@pytest.fixture
def uninstall() -> Iterator[Callable[[str], None]]:
    """Takes the names of distributions that a test installs: afterwards nothing tells that they were there."""
    names: list[str] = []
    before = SITE.stat()
    yield names.append
    files = [file for name in names for one in metadata.distributions(name=name) for file in one.files or ()]
    for top in {file.parts[0] for file in files}:
        shutil.rmtree(SITE / top)
    if OWNS_SITE:
        os.utime(SITE, ns=(before.st_atime_ns, before.st_mtime_ns))


@dataclass
class Launch:
    """One finished torchrun: its exit code, its output, and the JSON lines its workers printed."""

    code: int
    output: str

    @property
    def said(self) -> list[dict[str, Any]]:
        """What the workers said with `say`, in the order of their ranks."""
        lines = (line.partition("SAY ")[2] for line in self.output.splitlines() if "SAY " in line)
        return sorted((json.loads(line) for line in lines), key=lambda entry: entry["rank"])


@pytest.fixture
def torchrun(tmp_path: Path) -> Callable[..., Launch]:
    """Run a script of `scripts/` on simulated cores. Each worker's output stays apart from the others'."""

    def run(
        script: str,
        *arguments: str,
        workers: int = 2,
        check: bool = True,
        launcher: list[str] = LAUNCHER,
        timeout_s: float = 1200,
        **environment: str,
    ) -> Launch:
        path = Path(script) if Path(script).is_absolute() else SCRIPTS / script
        command = [*launcher, "--nnodes", "1", "--nproc_per_node", str(workers), str(path), *arguments]
        finished = subprocess.run(
            command,
            env={**os.environ, **INSTANCE, "SAY_TO": str(tmp_path / "said"), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        output = finished.stdout
        for said in sorted(tmp_path.glob("said.*")):
            output += said.read_text()
            said.unlink()
        launch = Launch(finished.returncode, output)
        if check:
            assert launch.code == 0, launch.output
        return launch

    return run
