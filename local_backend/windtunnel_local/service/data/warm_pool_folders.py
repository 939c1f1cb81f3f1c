"""The folders of containers that are kept: emptied of one job's files, with all mount points left in place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.containers import JobPlan, Mount
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths

_OPEN_FILES = Path("/proc/self/fd")


def make_folders(job: Job, folders: JobPaths) -> None:
    """What containers that are kept have mounted besides `JobPaths.folders`. Idempotent."""
    folders.source.parent.mkdir(parents=True, exist_ok=True)
    for host in job.hosts:
        for folder in (
            folders.neuron_cache(host),
            folders.views(host),
            folders.keeper(host),
            folders.keeper_private(host),
            folders.warm_pool_cache(host),
        ):
            folder.mkdir(parents=True, exist_ok=True)


def empty(job: Job, folders: JobPaths, plan: JobPlan) -> bool:
    """Remove everything of the job whose containers are kept, but for the warm pool's cache. Repeatable.

    Folders that are mounted, and mount points, keep their place: to remove one here would take it
    away from the container. False: the job has put something else in the place of one, or closed it.
    """
    whole = {
        folder(host)
        for folder in (folders.keeper, folders.keeper_private, folders.warm_pool_cache)
        for host in job.hosts
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
        empty_folder(folders.root, staying, whole)
    except OSError:
        return False
    return True


def empty_folder(folder: Path, staying: set[Path], whole: set[Path], above: int | None = None) -> None:
    """Empty a folder; ``above``: the open folder that it is in.

    Step by step from open folder to open folder: if something of the job still runs, it may swap any of
    them for a link, and what that leads to is not the job's.
    """
    name = folder.name if above is not None else str(folder)
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            os.chmod(name, stat.S_IRWXU, dir_fd=above)
    here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        with os.scandir(here) as entries:
            found = [(folder / entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for path, is_folder in found:
            if path in whole:
                continue
            if not is_folder:
                os.unlink(path.name, dir_fd=here)
            elif path in staying or any(path in kept.parents for kept in staying):
                empty_folder(path, staying, whole, here)
            else:
                remove_tree(_OPEN_FILES / str(here) / path.name if _OPEN_FILES.is_dir() else path)
    finally:
        os.close(here)


def _mount_points(target: PurePosixPath, mounts: Iterable[Mount]) -> Iterable[Path]:
    """Where on this machine a mount lies inside another one."""
    for mount in mounts:
        outer, source = PurePosixPath(mount.target), Path(mount.source)
        if outer in target.parents:
            yield source / target.relative_to(outer)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
