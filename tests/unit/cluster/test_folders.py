"""A cluster's folders on this machine: root in a node writes in some of them, and may put links there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.cluster import POST
from windtunnel_local.cluster.configuration import read
from windtunnel_local.cluster.folders import make_folders, write_slurm_conf
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.machine import Machine

CONFIGURATION = read(POST, "cluster.yaml")
MACHINE = Machine("windtunnel-training:0.1.0", uid=1000, gid=1000, memory_bytes=2**30)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Of a cluster whose folders are made."""
    folder = tmp_path / "post"
    folder.mkdir()
    made = Layout(folder)
    make_folders(made, CONFIGURATION, MACHINE)
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of this machine's user that no node shall change."""
    made = tmp_path / "outside"
    made.mkdir(mode=0o700)
    (made / "file").write_text("mine")
    (made / "file").chmod(0o600)
    return made


def test_keys_are_the_owners_alone(layout: Layout) -> None:
    """And stay as they are when the folders are made again."""
    key = layout.keys / "munge.key"
    before = key.read_bytes()
    make_folders(layout, CONFIGURATION, MACHINE)
    assert len(before) >= 32 and key.read_bytes() == before
    assert (key.stat().st_mode & 0o777, layout.keys.stat().st_mode & 0o777) == (0o600, 0o700)
    write_slurm_conf(layout, CONFIGURATION, MACHINE, running=True)
    assert (layout.slurm_conf / "slurm.conf").stat().st_mode & 0o777 == 0o644


def test_no_link_of_a_node_leads_out_of_the_cluster(layout: Layout, outside: Path) -> None:
    """A home that is one, and a key's, when the cluster is taken over or updated: neither mode nor owner change."""
    home = layout.home / "ubuntu"
    home.rmdir()
    home.symlink_to(outside)
    (layout.keys / "munge.key").unlink()
    (layout.keys / ".munge.key").symlink_to(outside / "file")
    before = [path.stat() for path in (outside, outside / "file")]
    make_folders(layout, CONFIGURATION, MACHINE)
    after = [path.stat() for path in (outside, outside / "file")]
    assert [(one.st_mode, one.st_uid) for one in after] == [(one.st_mode, one.st_uid) for one in before]
    assert (outside / "file").read_text() == "mine"
    assert not (layout.keys / "munge.key").is_symlink()


def test_a_folder_of_the_cluster_that_became_a_link_is_refused(layout: Layout, outside: Path) -> None:
    """Rather than another's is given away."""
    layout.jobs.rmdir()
    layout.jobs.symlink_to(outside)
    with pytest.raises(OSError, match="jobs"):
        make_folders(layout, CONFIGURATION, MACHINE)
    assert outside.stat().st_mode & 0o777 == 0o700
