"""Translate paths between this host and a container, by the mounts of its plan. Pure."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from windtunnel_local.service.ground.containers import Mount


def nested_mountpoints(mounts: tuple[Mount, ...]) -> list[tuple[Path, Mount]]:
    """Host paths at which a mount lies inside another, writable one, in order of depth.

    The engine would create what is missing there as root; whoever starts the job does it first.
    """
    points: list[tuple[Path, Mount]] = []
    for inner in mounts:
        target = PurePosixPath(inner.target)
        outer = [m for m in mounts if PurePosixPath(m.target) in target.parents]
        if outer:
            nearest = max(outer, key=lambda m: len(PurePosixPath(m.target).parts))
            if not nearest.read_only:
                points.append((Path(nearest.source) / target.relative_to(nearest.target), inner))
    return sorted(points, key=lambda point: len(point[0].parts))


def host_path(text: str, mounts: tuple[Mount, ...]) -> str:
    """A path inside the container as the path on this host behind it; any other text as it is."""
    if not text.startswith("/"):
        return text
    path = PurePosixPath(text)
    fitting = [m for m in mounts if path.is_relative_to(m.target)]
    if not fitting:
        return text
    mount = max(fitting, key=lambda m: len(PurePosixPath(m.target).parts))
    return str(Path(mount.source) / path.relative_to(mount.target))
