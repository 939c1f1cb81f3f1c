"""The folder of containers that are kept: what one job had in it goes, what is mounted stays in its place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from windtunnel_local.service.data.paths import JobPaths
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.model import Job
from windtunnel_local.service.ports import JobPlan, Mount


def make_folders(job: Job, folders: JobPaths) -> None:
    """What containers that are kept have mounted besides `JobPaths.folders`. Idempotent."""
    folders.source.parent.mkdir(parents=True, exist_ok=True)
    for host in job.hosts:
        for folder in (
            folders.neuron_cache(host),
            folders.views(host),
            folders.keeper(host),
            folders.warm_pool_cache(host),
        ):
            folder.mkdir(parents=True, exist_ok=True)


def empty(job: Job, folders: JobPaths, plan: JobPlan) -> bool:
    """Remove everything of the job whose containers are kept, but for the warm pool's cache. Repeatable.

    Folders that are mounted, and mount points, keep their place: to remove one here would take it
    away from the container. False: the job has put something else in the place of one, or closed it.
    """
    whole = {folders.keeper(host) for host in job.hosts} | {
        folders.warm_pool_cache(host) for host in job.hosts
    }
    staying = whole | {folders.warm_pool_cache(host).parent for host in job.hosts}
    for container in plan.containers:
        for mount in container.mounts:
            source = Path(mount.source)
            if source.is_relative_to(folders.root):
                staying.add(source)
            staying.update(_mount_points(PurePosixPath(mount.target), container.mounts))
    if not all(_is_folder(folder) for folder in staying):
        return False
    try:
        _empty(folders.root, staying, whole)
    except OSError:
        return False
    return True


def _empty(folder: Path, staying: set[Path], whole: set[Path]) -> None:
    with suppress(OSError):
        folder.chmod(folder.stat().st_mode | 0o700)
    with os.scandir(folder) as entries:
        found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for path, is_folder in found:
        if path in whole:
            continue
        if not is_folder:
            path.unlink()
        elif path in staying or any(path in kept.parents for kept in staying):
            _empty(path, staying, whole)
        else:
            remove_tree(path)


def _mount_points(target: PurePosixPath, mounts: Iterable[Mount]) -> Iterable[Path]:
    """Where on this machine a mount lies inside another one."""
    for mount in mounts:
        outer, source = PurePosixPath(mount.target), Path(mount.source)
        if outer in target.parents:
            yield source / target.relative_to(outer)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
