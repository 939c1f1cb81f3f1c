"""A model's archive, as a job stores it."""

from __future__ import annotations

import io
import tarfile


def archive(*members: tuple[str, bytes], links: tuple[tuple[str, str], ...] = (), mode: int = 0o644) -> bytes:
    """A .tar.gz of these files and links, each by its name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return out.getvalue()
