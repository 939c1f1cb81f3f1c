"""Make a cluster's folders, keys and slurm.conf for its nodes.

Root in a node writes in some of these folders, and may make a link there to any file of this machine. So no link is
followed, and a file that a node may have changed is not written again.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from windtunnel_local.cluster.configuration import ClusterConfiguration
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.machine import Machine, user_of
from windtunnel_local.cluster.slurm_conf import slurm_conf

_MUNGE_KEY_BYTES = 128


def make_folders(layout: Layout, configuration: ClusterConfiguration, machine: Machine) -> None:
    """Make the folders that are missing, with the owners and modes that the nodes need. Idempotent."""
    for folder, mode in (
        (layout.folder / "slurm", 0o700),
        (layout.slurm_conf, 0o755),
        (layout.slurm_state, 0o755),
        (layout.orders, 0o700),
        (layout.keys, 0o700),
        (layout.jobs, 0o755),
        (layout.home, 0o755),
        (layout.folder / "shared", 0o755),
        *((layout.shared(each.name), 0o755) for each in configuration.shared_storage),
    ):
        _make_folder(folder, mode, machine)
    own = layout.home / user_of(configuration.os)
    if not os.path.lexists(own):
        _make_folder(own, 0o755, machine)
    key = layout.keys / "munge.key"
    if not os.path.lexists(key):
        _write(key, secrets.token_bytes(_MUNGE_KEY_BYTES), 0o600, machine)


def write_slurm_conf(
    layout: Layout, configuration: ClusterConfiguration, machine: Machine, *, running: bool
) -> None:
    """Write slurm.conf. ``running``: whether the fleet takes jobs."""
    text = slurm_conf(configuration, user_of(configuration.os), machine.idle_s, running=running)
    for name, content in (("slurm.conf", text), ("cgroup.conf", "CgroupAutomount=no\n")):
        _write(layout.slurm_conf / name, content.encode(), 0o644, machine)


def has_files_of_others(folder: Path) -> bool:
    """Whether a folder has files of another user, such as root in a node has made. Follows no links."""
    own = os.geteuid()
    for parent, folders, files in os.walk(folder):
        if any(os.lstat(Path(parent, name)).st_uid != own for name in (*folders, *files)):
            return True
    return False


def _make_folder(path: Path, mode: int, machine: Machine) -> None:
    path.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _give(descriptor, mode, machine)
    finally:
        os.close(descriptor)


def _write(path: Path, content: bytes, mode: int, machine: Machine) -> None:
    pending = path.with_name(f".{path.name}")
    pending.unlink(missing_ok=True)
    descriptor = os.open(pending, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        _give(descriptor, mode, machine)
        file.write(content)
    pending.replace(path)


def _give(descriptor: int, mode: int, machine: Machine) -> None:
    """Give a path to the nodes' user: in a cluster that root made, that is another user than root."""
    os.fchmod(descriptor, mode)
    if os.geteuid() == 0:
        os.fchown(descriptor, machine.uid, machine.gid)
