"""Finds which graphs ran, and what each costs.

torch_xla can append an analysis of each compilation and each execution to a file,
with the graph's hash and the Python frames that caused it. XLA can dump the HLO of
each graph it compiles. Both are read back after each synchronisation and removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from neuron_sim.counters import hlo, script_lines
from neuron_sim.counters.why_new import Reason

_CAUSE = re.compile(r"(Compilation|Execution) Analysis:\s+(user torch_xla|most likely|mark_step|dynamo)(.*)")
_HASH = re.compile(r"(Compilation|Execution) Analysis:\s+Graph Hash: (\w+)")
_FRAME = re.compile(r"(?:Compilation|Execution) Analysis:\s+(.*) \((.+):(\d+)\)")
_PACKAGE = Path(__file__).resolve().parents[1]
_CUTS = tuple(str(_PACKAGE / part) for part in ("collectives", "device/transfer.py"))
_OURS = (*_CUTS, str(_PACKAGE / "hooks"))
_SYNC = "/torch_xla/torch_xla.py"
_HLO_FILES = "*.before_optimizations.txt"
_PROTO_FILE = "before_optimizations.hlo.pb"
_DUMP_FORMS = ("--xla_dump_hlo_as_text", "--xla_dump_hlo_as_proto")
_MEMORY_FILE = "cpu_after_optimizations-memory-usage-report.txt"
_FOLDER_PREFIX = "neuron_sim-"
_ANALYSIS_LIMIT = 2**20
"""Bytes from which on the analysis file is emptied after reading: each step adds some kilobytes."""
_TOTAL_BYTES = re.compile(r"Total bytes used: (\d+)")
_TEMPORARY = re.compile(r"allocation \d+: size ([\d.]+)([KMGT]?i?B), (?:preallocated-temp|thread-local)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True)
class Graph:
    """A compiled graph. ``device_bytes``: inputs, outputs and temporaries as XLA plans them.

    ``temp_bytes``: the temporaries alone. ``hlo_text`` is the module before
    optimisation. ``source`` is the user's ``file:line`` at which it was run, or ``?``; ``library`` the
    innermost function, with file and line, of a library that the line calls, if there is one.
    ``compile_seconds`` is what XLA's CPU compiler took here. ``reason`` says why the graph is new.
    """

    hash: str
    cost: hlo.Cost
    device_bytes: int
    source: str
    hlo_text: str = field(default="", repr=False)
    compile_seconds: float = 0.0
    temp_bytes: int = 0
    reason: Reason | None = None
    hlo_proto: bytes = field(default=b"", repr=False)
    """An HloProto, of which the module is the first field."""
    library: str = ""
    whole: int | None = None
    """Number of the graph on trn1 that this is a piece of, if a collective cut it, or else all of; see `wholes`."""


class Ran(NamedTuple):
    """An execution. ``graph``: its hash. ``is_cut``: a collective ended the graph here; on trn1 it goes on.

    ``read_at``: the user's line that needed a value, which executed pending operations; None: a step's end did so.
    ``is_here``: False for a graph that would run on trn1 and has not run here. ``is_part``: on trn1 it would run as a
    part of the graph of the next read.
    """

    graph: str
    is_cut: bool = False
    read_at: str | None = None
    is_here: bool = True
    is_part: bool = False


@dataclass(frozen=True)
class Seen:
    """The executions, and the newly compiled graphs, since the last look; in order."""

    executed: Sequence[Ran] = ()
    compiled: Sequence[Graph] = ()


class GraphLog:
    """Follows torch_xla's analysis file and XLA's dumps of this process."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Ask torch_xla and XLA for both. Call before the XLA client exists.

        A user who asked for torch_xla's debug output gets it, and no graphs are counted. Settings
        that a core has passed on to this process, its child, are not the user's: they are replaced.
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
            # By default torch_xla prints eight frames, and the user's line is often further out: 30
            # frames away when accelerate gathers the results of Trainer's evaluation.
            environment.setdefault("PT_XLA_DEBUG_MAX_FRAME", "40")
            flags = f"--xla_dump_to={self._dump} {' '.join(_DUMP_FORMS)}"
            environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()

    def close(self) -> None:
        """Remove all files of this log."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def read(self) -> Seen:
        """The executions, and the newly compiled graphs, since the last call."""
        if not self.enabled:
            return Seen()
        with self._analysis.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        if self._offset > _ANALYSIS_LIMIT and self._analysis.stat().st_size == self._offset:
            # torch_xla opens the file anew for each entry to append: the next one begins at the start.
            os.truncate(self._analysis, 0)
            self._offset = 0
        executed: list[Ran] = []
        new: list[_Analysis] = []
        for analysis in _analyses(data[:end].decode(errors="replace")):
            if analysis.kind == "Execution":
                read_at = analysis.source if analysis.accessed else None
                executed.append(Ran(analysis.graph_hash, analysis.is_cut, read_at))
            else:
                new.append(analysis)
        return Seen(executed, self._read_dumps(new) if new else [])

    def _read_dumps(self, new: list[_Analysis]) -> list[Graph]:
        """The graphs of these compilations, in their order: XLA numbers its dumps so."""
        graphs = []
        dumps = sorted(self._dump.glob(_HLO_FILES))
        ended = self._last_written()
        for analysis, path in zip(new, dumps, strict=False):
            stem = path.name.removesuffix(_HLO_FILES[1:])
            text = hlo.as_rounded(path.read_text())
            proto = self._dump / f"{stem}.{_PROTO_FILE}"
            report = self._dump / f"{stem}.{_MEMORY_FILE}"
            planned, temporaries = plan(report.read_text()) if report.exists() else (0, 0)
            graphs.append(
                Graph(
                    analysis.graph_hash,
                    hlo.cost(text),
                    planned,
                    analysis.source,
                    text,
                    max(0.0, ended[_module(stem)] - path.stat().st_mtime),
                    temporaries,
                    hlo_proto=proto.read_bytes() if proto.exists() else b"",
                    library=analysis.library,
                )
            )
        self.drop_dumps()
        return graphs

    def drop_dumps(self) -> None:
        """Remove all dumps. Those since the last `read` are of eager operations, which no analysis lists."""
        if self.enabled:
            for path in self._dump.iterdir():
                path.unlink()

    def _last_written(self) -> dict[str, float]:
        """When XLA wrote each module's last file, which is the end of its compilation; torch_xla keeps only a total."""
        ended: dict[str, float] = {}
        with os.scandir(self._dump) as entries:
            for entry in entries:
                module = _module(entry.name)
                ended[module] = max(ended.get(module, 0.0), entry.stat().st_mtime)
        return ended


def plan(report: str) -> tuple[int, int]:
    """Total and temporary bytes from XLA's memory report, which rounds the sizes of single allocations."""
    total = _TOTAL_BYTES.search(report)
    # Each allocation is listed once in this form, and again with its values.
    temporaries = sum(
        float(size) * _UNITS[unit]
        for size, unit in _TEMPORARY.findall(report.partition("with their values")[0])
    )
    return (int(total[1]) if total else 0), round(temporaries)


@dataclass
class _Analysis:
    """One entry of torch_xla's file; ``source``: ``file:line`` of the user's innermost frame."""

    kind: str
    accessed: bool
    graph_hash: str = ""
    source: str = "?"
    library: str = ""
    is_cut: bool = False


def forget_settings(environment: MutableMapping[str, str]) -> None:
    """Remove the settings that a `GraphLog` of this process, or of a parent process, has made."""
    if not Path(environment.get("PT_XLA_DEBUG_FILE", "")).parent.name.startswith(_FOLDER_PREFIX):
        return
    del environment["PT_XLA_DEBUG_FILE"], environment["PT_XLA_DEBUG_LEVEL"]
    flags = environment.get("XLA_FLAGS", "").split()
    # The flags of the form, left alone, would print each graph.
    ours = [flag for flag in flags if f"/{_FOLDER_PREFIX}" in flag or flag in _DUMP_FORMS]
    environment["XLA_FLAGS"] = " ".join(flag for flag in flags if flag not in ours)


def _module(name: str) -> str:
    """``module_0012`` of a dumped file's name."""
    return name.partition(".")[0]


def _analyses(text: str) -> list[_Analysis]:
    found: list[_Analysis] = []
    accessed = False
    for line in text.splitlines():
        if match := _CAUSE.match(line):
            accessed = "access tensor value" in match[3]
        elif match := _HASH.match(line):
            found.append(_Analysis(match[1], accessed, match[2]))
        elif found and found[-1].source == "?" and (match := _FRAME.match(line)):
            if script_lines.is_users(match[2]):
                found[-1].source = f"{Path(match[2]).name}:{match[3]}"
            elif not found[-1].library and (file := script_lines.library_file(match[2])):
                found[-1].library = f"{match[1]} of {file}:{match[3]}"
            elif match[2].startswith(_OURS) or match[2].endswith(_SYNC):
                # A collective, which ends the graph here and not on trn1; or a step's end, which
                # torch_xla does not recognise behind our wrappers.
                found[-1].accessed = False
                found[-1].is_cut |= match[2].startswith(_CUTS)
    return found
