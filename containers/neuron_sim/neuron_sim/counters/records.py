"""One rank's counters: a file of JSON lines, each written whole."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Records:
    """Appends records; a reader may follow the file while it grows."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make its folder where it is missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record. ``time`` is Unix seconds of this machine."""
        line = json.dumps({"kind": kind, "time": round(time.time(), 6), **fields}, separators=(",", ":"))
        os.write(self._descriptor, line.encode() + b"\n")
