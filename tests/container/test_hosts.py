"""Several hosts, played by several launches in one container."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import INSTANCE, LAUNCHER, SCRIPTS

SOON_S = 300


@contextlib.contextmanager
def two_hosts(
    script: str, *arguments: str, workers: int = 1, **environment: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """A launch a host, which meet at a port of their own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    hosts = [
        subprocess.Popen(
            [
                *LAUNCHER, "--nnodes", "2", "--node_rank", str(host), "--nproc_per_node", str(workers),
                "--master_addr", "127.0.0.1", "--master_port", port, str(SCRIPTS / script), *arguments,
            ],
            env={**os.environ, **INSTANCE, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for host in range(2)
    ]  # fmt: skip
    try:
        yield hosts
    finally:
        for host in hosts:
            host.kill()
            host.communicate()


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("leave-early", "rank 1 ended: its script has run to its end"),
        ("die-before-all", r"rank 1 exited with signal SIGKILL \(9\)"),
    ],
)
def test_a_rank_of_another_host_that_never_comes_is_named_instead_of_waited_for(how, told):
    """It has ended before there was any connection between the two, with success or without."""
    with two_hosts("ends.py", how) as hosts:
        output, _ = hosts[0].communicate(timeout=SOON_S)
        assert hosts[0].returncode == 1
        assert re.search(rf"PeerLostError: {told}; rank 0 waited to connect to it", output), output


def test_every_collective_between_two_hosts_of_two_cores(tmp_path: Path):
    """The same answers as on one host; only bare sends and receives are refused, by name."""
    with two_hosts("collectives.py", workers=2, SAY_TO=str(tmp_path / "said")) as hosts:
        outputs = [host.communicate(timeout=2 * SOON_S)[0] for host in hosts]
        assert [host.returncode for host in hosts] == [0, 0], outputs
    said = [json.loads(path.read_text().removeprefix("SAY ")) for path in tmp_path.glob("said.*")]
    assert sorted(entry["rank"] for entry in said) == [0, 1, 2, 3]
    for entry in said:
        assert len(entry["checked"]) >= 60
        assert {"dist.all_reduce", "xm.send is refused", "xm.recv is refused"} <= set(entry["checked"])
