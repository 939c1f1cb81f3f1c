"""Writes files that other processes read at any time."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Write a file, in place of an earlier one: who reads it gets one or the other, never a part.

    Raises:
        OSError: it cannot be written; an earlier one stays.
    """
    # The backend passes over this prefix in a compile cache: the draft stays if the process is killed.
    draft = path.with_name(f".draft-{path.name}-{os.getpid()}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
