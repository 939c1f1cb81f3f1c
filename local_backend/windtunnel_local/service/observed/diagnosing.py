"""What the simulator found out about a script, for counters.json: graphs and why they are new, memory, findings.

All of it is bounded: a job that compiles at every step must not make a document without end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

MOST_GRAPHS = 100
MOST_FINDINGS = 50

_SEVERITIES = ("error", "warning", "note")
_MEMORY = ("parameters", "gradients", "optimizer_state", "other", "temporaries", "total", "limit")
_GRAPH = (
    "source",
    "compile_seconds",
    "flops",
    "bytes_accessed",
    "input_bytes",
    "output_bytes",
    "temp_bytes",
    "instructions",
    "cached",
)


def ledger(graphs: Mapping[str, Record], steps: Sequence[Record]) -> dict[str, Any]:
    """The graphs with the longest compilations first, how many were in the compile cache, how many are left out.

    ``cached`` is null where the simulator did not look.
    """
    runs: Counter[str] = Counter()
    for step in steps:
        runs.update(step.get("graphs", {}))
    ranked = sorted(graphs, key=lambda name: -float(graphs[name].get("compile_seconds") or 0.0))
    known = [graph["cached"] for graph in graphs.values() if isinstance(graph.get("cached"), bool)]
    return {
        "cached": sum(known) if known else None,
        "ledger": [_entry(name, graphs[name], runs[name]) for name in ranked[:MOST_GRAPHS]],
        "ledger_left_out": max(0, len(ranked) - MOST_GRAPHS),
    }


def _entry(name: str, graph: Record, runs: int) -> dict[str, Any]:
    reason = graph.get("reason")
    return {
        "graph": name,
        "runs": runs,
        "reason": {key: str(reason.get(key, "")) for key in ("kind", "detail")}
        if isinstance(reason, Mapping)
        else None,
        **{key: graph.get(key) for key in _GRAPH},
    }


def device_memory(records: Iterable[Record]) -> dict[str, Any] | None:
    """Bytes by use at the fullest moment of any core; null when no core looked."""
    fullest = max(records, key=lambda record: int(record.get("total") or 0), default=None)
    if fullest is None:
        return None
    return {**{key: fullest.get(key) for key in _MEMORY}, "line": fullest.get("line")}


def findings(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What was found, worst first. Of several records of one finding the last holds: it has the final figures."""
    last: dict[tuple[Any, ...], Record] = {}
    for record in records:
        if record.get("severity") in _SEVERITIES:
            last[record.get("finding"), record.get("line"), record.get("cause")] = record
    ranked = sorted(last.values(), key=_worst_first)
    return [
        {
            "kind": str(record.get("finding")),
            "severity": record["severity"],
            "line": str(record.get("line", "?")),
            "message": str(record.get("message", "")),
            "advice": str(record.get("advice", "")),
            "count": int(record.get("count") or 0),
            "seconds": float(record.get("seconds") or 0.0),
        }
        for record in ranked[:MOST_FINDINGS]
    ]


def _worst_first(record: Record) -> tuple[int, float, int]:
    seconds, count = float(record.get("seconds") or 0.0), int(record.get("count") or 0)
    return _SEVERITIES.index(record["severity"]), -seconds, -count
