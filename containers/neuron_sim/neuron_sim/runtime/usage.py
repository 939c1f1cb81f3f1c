"""Publishes what the process of a core has done so far, about once a second, in a small file.

The file lies beside the core's lock: the tools find it in the container, the backend in the job's folder.
Counts are since the start of the process; ``before`` holds those of the last publication, so one file tells
what goes on now.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _XLAC

from neuron_sim import __version__, atomic_file, processes, settings
from neuron_sim.counters import recorder, script_time
from neuron_sim.counters.listener import Listener
from neuron_sim.runtime import usage_reader

if TYPE_CHECKING:
    from neuron_sim.counters.graphs import Graph

SCHEMA = "windtunnel.usage/1"
RUNTIME_VERSION = f"{__version__}-simulated"
INTERVAL_S = 1.0
LATENCIES = 64
"""How many of the newest executions are published with their seconds."""
_GRAPHS = 16


class Publisher(Listener):
    """Publishes the file of one process. On a host's first core the recorder tells it of graphs and steps."""

    def __init__(self, folder: Path, device_memory: Callable[[], dict[str, int]]) -> None:
        """Nothing is published before `start`."""
        self._folder = folder
        self._device_memory = device_memory
        self._path: Path
        self._pid = 0
        self._steps = 0
        self._flops: float | None = None
        self._graphs: dict[str, Graph] = {}
        self._before: dict[str, Any] | None = None
        self._due = 0.0

    def start(self, cores: tuple[int, ...]) -> None:
        """Publish from now on; the cores have just been claimed."""
        self._path = self._folder / f"core-{cores[0]}.json"
        self._pid = os.getpid()
        self._fixed = {
            "schema": SCHEMA,
            "pid": self._pid,
            # Not from /proc: a forked worker has its launcher's command line there.
            "command": " ".join([Path(sys.executable).name, *sys.argv]),
            "tag": settings.process_tag(),
            "runtime_version": RUNTIME_VERSION,
            "rank": settings.identity().rank,
            "cores": list(cores),
        }
        self.publish()

    def graph(self, graph: Graph) -> None:
        self._graphs[graph.hash] = graph

    def step(self, record: dict[str, Any]) -> None:
        flops = self._flops or 0.0
        for name, runs in record["graphs"].items():
            if name in self._graphs:
                flops += runs * sum(self._graphs[name].cost.flops.values())
        self._flops = flops

    @script_time.set_aside
    def step_ended(self) -> None:
        """Called after mark_step. Publishes about once a second, and otherwise only looks at the clock."""
        self._steps += 1
        if time.monotonic() >= self._due and os.getpid() == self._pid:
            self.publish()

    def publish(self) -> None:
        """Write the file anew. If the folder is full or missing, nothing is published, and training goes on."""
        self._due = time.monotonic() + INTERVAL_S
        executions, execution_s, latencies = _executions()
        counts = {
            "executions": executions,
            "execution_seconds": round(execution_s, 6),
            **self._counts(),
        }
        since = self._before["time"] if self._before else 0.0
        document = {
            **self._fixed,
            "time": round(time.time(), 6),
            "counts": counts,
            "before": self._before,
            "device_memory": self._device_memory(),
            "latency": usage_reader.percentiles([seconds for ended, seconds in latencies if ended > since]),
            "latencies": latencies,
            "graphs": [_loaded(graph) for graph in list(self._graphs.values())[-_GRAPHS:]],
        }
        self._before = {"time": document["time"], **counts}
        with suppress(OSError):
            atomic_file.write(self._path, json.dumps(document, separators=(",", ":")))

    def end(self) -> None:
        """Remove the file at the end of the process that owns it; does nothing in any other process."""
        if os.getpid() == self._pid:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._pid = 0

    def _counts(self) -> dict[str, Any]:
        _, compilations, compile_s = recorder.compilations()
        used = processes.use(self._pid) or processes.Use(0.0, 0.0, 0)
        return {
            "compilations": compilations,
            "compile_seconds": round(compile_s, 6),
            "steps": self._steps,
            "flops": self._flops,
            "user_seconds": used.user_seconds,
            "system_seconds": used.system_seconds,
            "host_bytes": used.resident_bytes,
        }


def _executions() -> tuple[int, float, list[tuple[float, float]]]:
    """How many, their seconds in all, and of the newest (end in Unix seconds, seconds), oldest first."""
    count, nanoseconds, samples = _XLAC._xla_metric_data("ExecuteTime") or (0, 0.0, [])
    newest = [(round(moment, 3), round(each / 1e9, 6)) for moment, each in samples[-LATENCIES:]]
    return int(count), nanoseconds / 1e9, newest


def _loaded(graph: Graph) -> dict[str, Any]:
    return {"graph": graph.hash, "source": graph.source, "device_bytes": graph.device_bytes}
