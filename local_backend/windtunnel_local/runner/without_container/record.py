"""Read and write the files in which `supervise` records a host's job."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timezone
from glob import glob
from pathlib import Path
from typing import Any

from windtunnel_local.service.ground.containers import ContainerState


def read(path: Path) -> dict[str, Any] | None:
    """A file of the record; None: it is not written yet."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return content


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all; of several writers the last one wins."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    draft.write_text(json.dumps(content))
    draft.replace(path)


def jobs_with(pattern: str, folder: Path) -> set[str]:
    """The jobs that have a file of the pattern. Each is a folder in this one, and may be removed meanwhile.

    Path.glob would raise (up to Python 3.12) when a folder goes while it looks.
    """
    return {path.partition("/")[0] for path in glob(pattern, root_dir=folder)}  # noqa: PTH207


def exited(run: dict[str, Any] | None, ended: dict[str, Any]) -> ContainerState:
    """The container state from the contents of run.json (None: the job never ran) and exit.json."""
    return ContainerState(
        "exited",
        int(ended["exit_code"]),
        oom_killed=bool(ended.get("oom_killed")),
        started_at=moment(run["started"]) if run else None,
        finished_at=moment(ended["finished"]),
        lost=bool(ended.get("lost")),
        why=ended.get("why"),
    )


def moment(seconds: float) -> datetime:
    """Unix seconds, in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc)
