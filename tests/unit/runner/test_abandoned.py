"""Containers of homes that are gone: which of them are ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import DOCKER, engine
from windtunnel_local.runner.docker import Engine, abandoned, create_arguments

DELETED = """\
101 90 0:40 / / rw - overlay overlay rw
125 101 254:0 {home}/jobs/j/ml//deleted /opt/ml rw,relatime - ext4 /dev/vda rw
126 101 254:0 /etc/ca.crt /opt/windtunnel/host/ca-bundle.crt ro,relatime - ext4 /dev/vda rw
"""
KEPT = DELETED.replace("//deleted", "")
REPLACED = KEPT + "127 101 254:0 {home}/jobs/j/source//deleted /opt/source ro,relatime - ext4 /dev/vda rw\n"


@pytest.mark.parametrize(
    ("folder", "mountinfo", "removed"),
    [
        ("gone", DELETED, True),
        ("gone", KEPT, False),  # on a disk that is not mounted now
        ("gone", REPLACED, False),  # so too, and the backend had written one of the files anew
        ("gone", None, False),  # of an engine in a virtual machine
        (".", DELETED, False),  # one job's folder alone: its backend knows why
    ],
)
def test_a_container_is_ended_if_its_home_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, mountinfo: str | None, removed: bool
) -> None:
    """An endpoint would serve nobody for good. A home out of sight is no reason to end a job."""
    home = tmp_path / folder
    proc = tmp_path / "proc"
    (proc / "7").mkdir(parents=True)
    if mountinfo is not None:
        (proc / "7" / "mountinfo").write_text(mountinfo.format(home=home))
    mounts = [
        {"Source": f"{home}/jobs/j/ml", "Destination": "/opt/ml"},
        {"Source": f"{home}/jobs/j/source", "Destination": "/opt/source"},
        {"Source": "/etc/ca.crt", "Destination": "/opt/windtunnel/host/ca-bundle.crt"},
    ]
    answers: dict[str, tuple[int, Any]] = {
        "GET /containers/json": (200, [{"Id": "1", "Labels": {create_arguments.HOME_LABEL: str(home)}}]),
        "GET /containers/1/json": (200, {"State": {"Pid": 7}, "Mounts": mounts}),
        "DELETE /containers/1": (204, None),
    }
    with engine(tmp_path, DOCKER | answers) as (address, asked):
        monkeypatch.setenv("DOCKER_HOST", address)
        asking = Engine()
        abandoned.remove_running(asking.client().api, proc)
        asking.close()
        assert ("DELETE /containers/1" in asked) is removed
