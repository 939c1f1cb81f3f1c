"""Empties the folders of a warm pool's containers of one job's files, and leaves all mount points in place."""

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
    """Create the folders that a warm pool's containers mount besides `JobPaths.folders`. Idempotent."""
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
    """Remove all files of the job whose containers are kept, except the warm pool's cache. Repeatable.

    Mounted folders and mount points are not removed: the container would lose them. Returns False if
    the job has replaced one by something else, or made it inaccessible.
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
    """Remove everything in a folder except ``whole``, and the folders in ``staying``, which are only emptied.

    ``above``: the open descriptor of its parent folder. The recursion goes from descriptor to descriptor: a process
    of the job that still runs may swap a folder for a link, whose target must not be emptied.
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
    """The paths on this machine of a mount's ``target``, in other mounts that contain it."""
    for mount in mounts:
        outer, source = PurePosixPath(mount.target), Path(mount.source)
        if outer in target.parents:
            yield source / target.relative_to(outer)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
