"""A model's archive, as a job stores it."""

from __future__ import annotations

import io
import tarfile


def archive(*members: tuple[str, bytes]) -> bytes:
    """A .tar.gz of these files, each by its name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
