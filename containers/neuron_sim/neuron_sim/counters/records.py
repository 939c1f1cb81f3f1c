"""The counters of one rank: a file of JSON lines, each written in one piece, and the records in it.

There is one ``start`` and one ``end``; ``graph``, ``step`` and ``memory`` come as they happen, ``parameters``
with each new optimizer. A ``finding`` may come again with newer figures. Kinds made elsewhere:
``parameters`` (`counters.parameters`), ``uncut`` (`counters.wholes`: which graphs are pieces of one on trn1, and
how often each), ``memory`` (`device.memory`), ``finding`` (`diagnostics.findings`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuron_sim.compiler import flags
from neuron_sim.settings import Identity, Settings, compiler_wish

if TYPE_CHECKING:
    from neuron_sim.counters.graphs import Graph

CollectiveKind = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "collective_permute",
    "broadcast",
    "send",
    "recv",
]
"""The names under which collectives are counted."""

_CPU_INFO = Path("/proc/cpuinfo")


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


def start(me: Identity, current: Settings) -> dict[str, Any]:
    """The record of who counts and what is simulated. ``trial``: neuron_parallel_compile runs the script."""
    import torch
    import torch_xla

    return {
        "kind": "start",
        "script": Path(sys.argv[0]).name,
        "rank": me.rank,
        "local_rank": me.local_rank,
        "world_size": me.world_size,
        "local_world_size": me.local_world_size,
        "instance_type": current.instance_type,
        "instance_cores": current.instance.cores,
        "local_cores": current.local_cores,
        "framework_version": ".".join(map(str, current.framework_version)),
        "torch": torch.__version__,
        "torch_xla": torch_xla.__version__,
        "host": current.host,
        "host_cpu": _host_cpu(),
        **({"trial": True} if compiler_wish().extract_graphs_only else {}),
    }


def graph(compiled: Graph, *, cached: bool) -> dict[str, Any]:
    """The record of a compiled graph. ``cached``: trn1 would have taken it from the compile cache.

    ``fp32_products``: the dtype in which the device computes products of fp32, by the compiler's flags.
    """
    reason = compiled.reason
    return {
        "kind": "graph",
        "graph": compiled.hash,
        "flops": compiled.cost.flops,
        "bytes_accessed": compiled.cost.bytes_accessed,
        "input_bytes": compiled.cost.input_bytes,
        "output_bytes": compiled.cost.output_bytes,
        "work": compiled.cost.work.record(),
        "temp_bytes": compiled.temp_bytes,
        "compile_seconds": round(compiled.compile_seconds, 6),
        "source": compiled.source,
        "cached": cached,
        "fp32_products": flags.asked(compiler_wish()).fp32_products,
        "instructions": compiled.hlo_text.count(" = "),
        "reason": reason and {"kind": reason.kind, "detail": reason.detail, "than": reason.than},
    }


def end(rank: int, *, failed: bool) -> dict[str, Any]:
    """The record of the script's end."""
    return {"kind": "end", "rank": rank, "exit": "error" if failed else "ok"}


def _host_cpu() -> str | None:
    """The name of this machine's processor, from /proc/cpuinfo; None if unknown."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
