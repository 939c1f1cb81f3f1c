"""One rank's counters: a file of JSON lines, each written whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Records:
    """Appends records; a reader may follow the file while it grows."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make its folder where it is missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record, with its ``time`` in Unix seconds of this machine."""
        line = json.dumps(
            {"kind": record["kind"], "time": round(time.time(), 6), **record}, separators=(",", ":")
        )
        os.write(self._descriptor, line.encode() + b"\n")
