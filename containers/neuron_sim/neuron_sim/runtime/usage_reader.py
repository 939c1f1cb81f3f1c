"""Reads what the processes that hold cores have published. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuron_sim import processes
from neuron_sim.runtime import claims

_PERCENTILES = (0, 1, 25, 50, 75, 99, 100)


@dataclass(frozen=True)
class Core:
    """A process that holds cores. ``published``: see `runtime.usage`; None before its first publication."""

    pid: int
    cores: tuple[int, ...]
    published: dict[str, Any] | None

    @property
    def tag(self) -> str:
        """NEURON_PROCESS_TAG, or the process id."""
        return str(self.published["tag"]) if self.published else str(self.pid)

    @property
    def command(self) -> str:
        """The process's command as it has published it; else as Linux knows it."""
        return str(self.published["command"]) if self.published else processes.command(self.pid)

    @property
    def runtime_version(self) -> str | None:
        """The simulated runtime's version, once the process uses it."""
        return str(self.published["runtime_version"]) if self.published else None


def folders(folder: Path) -> list[Path]:
    """The folder of this host, and those of other hosts that torchruns of the same launch play on this machine."""
    return [folder, *sorted(path for path in folder.parent.glob("cores-*") if path != folder)]


def running(folder: Path) -> list[Core]:
    """All processes that hold cores now, by their first core."""
    found = []
    for place in folders(folder):
        cores_of: dict[int, list[int]] = {}
        for core, pid in claims.holders(place).items():
            cores_of.setdefault(pid, []).append(core)
        for pid, cores in cores_of.items():
            found.append(Core(pid, tuple(sorted(cores)), _published(place, min(cores), pid)))
    return sorted(found, key=lambda core: core.cores)


def percentiles(seconds: Sequence[float]) -> dict[str, float] | None:
    """Percentiles by nearest rank; None when nothing was executed, as documented."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {f"p{percent}": ordered[round(last * percent / 100)] for percent in _PERCENTILES}


def _published(folder: Path, core: int, pid: int) -> dict[str, Any] | None:
    """The content of the file, unless an earlier holder of the core has left it."""
    try:
        document = json.loads((folder / f"core-{core}.json").read_text())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and document.get("pid") == pid else None
