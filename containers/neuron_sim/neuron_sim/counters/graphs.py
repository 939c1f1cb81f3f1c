"""Which graphs ran, and what each costs.

torch_xla can append an analysis of each compilation and each execution to a file,
with the graph's hash and the Python frames that caused it. XLA can dump the HLO of
each graph it compiles. Both are read back after each synchronisation and removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from neuron_sim.counters import hlo, script

_HASH = re.compile(r"(Compilation|Execution) Analysis:\s+Graph Hash: (\w+)")
_FRAME = re.compile(r"(Compilation|Execution) Analysis:\s+.* \((.+):(\d+)\)")
_HLO_FILES = "*.before_optimizations.txt"
_MEMORY_FILE = "cpu_after_optimizations-memory-usage-report.txt"
_FOLDER_PREFIX = "neuron_sim-"
_ANALYSIS_LIMIT = 2**20
"""Bytes from which on the analysis file, read to its end, is emptied: some kilobytes come with every step."""
_TOTAL_BYTES = re.compile(r"Total bytes used: (\d+)")


@dataclass(frozen=True)
class Graph:
    """A compiled graph. ``device_bytes``: inputs, outputs and temporaries as XLA plans them."""

    hash: str
    cost: hlo.Cost
    device_bytes: int
    source: str

    @property
    def temp_bytes(self) -> int:
        """What XLA plans beyond inputs and outputs."""
        return max(0, self.device_bytes - self.cost.input_bytes - self.cost.output_bytes)


class GraphLog:
    """Follows torch_xla's analysis file and XLA's dumps of this process."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Ask torch_xla and XLA for both; to be called before the XLA client exists.

        A user who asked for torch_xla's debug output gets it, and no graphs are counted. The
        settings of a core that has started this process are not the user's, and are replaced.
        """
        inherited = Path(environment.get("PT_XLA_DEBUG_FILE", "")).parent.name.startswith(_FOLDER_PREFIX)
        self.enabled = inherited or not any(
            environment.get(name) for name in ("PT_XLA_DEBUG", "PT_XLA_DEBUG_LEVEL")
        )
        self._folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
        self._analysis = self._folder / "analysis.txt"
        self._dump = self._folder / "hlo"
        self._offset = 0
        if self.enabled:
            self._analysis.touch()
            self._dump.mkdir()
            environment["PT_XLA_DEBUG_LEVEL"] = "2"
            environment["PT_XLA_DEBUG_FILE"] = str(self._analysis)
            flags = f"--xla_dump_to={self._dump} --xla_dump_hlo_as_text"
            environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def read(self) -> tuple[Counter[str], list[Graph]]:
        """Executions by graph hash, and the graphs compiled, since the last call."""
        executed: Counter[str] = Counter()
        if not self.enabled:
            return executed, []
        with self._analysis.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        if self._offset > _ANALYSIS_LIMIT and self._analysis.stat().st_size == self._offset:
            # torch_xla opens the file anew to append: what comes next begins at the start.
            os.truncate(self._analysis, 0)
            self._offset = 0
        new: list[tuple[str, str]] = []
        for kind, graph_hash, source in _analyses(data[:end].decode(errors="replace")):
            if kind == "Execution":
                executed[graph_hash] += 1
            else:
                new.append((graph_hash, source))
        return executed, self._read_dumps(new) if new else []

    def _read_dumps(self, new: list[tuple[str, str]]) -> list[Graph]:
        """XLA numbers its dumps in the order in which it compiled."""
        graphs = []
        dumps = sorted(self._dump.glob(_HLO_FILES))
        for (graph_hash, source), path in zip(new, dumps, strict=False):
            stem = path.name.removesuffix(_HLO_FILES[1:])
            graphs.append(Graph(graph_hash, hlo.cost(path.read_text()), self._planned_bytes(stem), source))
        for path in self._dump.iterdir():
            path.unlink()
        return graphs

    def _planned_bytes(self, stem: str) -> int:
        report = self._dump / f"{stem}.{_MEMORY_FILE}"
        if not report.exists():
            return 0
        match = _TOTAL_BYTES.search(report.read_text())
        return int(match[1]) if match else 0


def _analyses(text: str) -> list[tuple[str, str, str]]:
    """(Compilation or Execution, graph hash, ``file:line`` of the user's innermost frame)."""
    found: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        if match := _HASH.match(line):
            found.append((match[1], match[2], "?"))
        elif found and found[-1][2] == "?" and (match := _FRAME.match(line)) and script.is_users(match[2]):
            kind, graph_hash, _ = found[-1]
            found[-1] = (kind, graph_hash, f"{Path(match[2]).name}:{match[3]}")
    return found
