"""The counters of a host's first core as scalars for TensorBoard.

Written by tensorboard's own writer, beside what the script writes with a SummaryWriter of
its own. tensorboard takes a third of a second to import, so the first scalars are not
written at once, and a script that runs no step never imports it.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuron_sim import settings
from neuron_sim.compiler import log_lines
from neuron_sim.counters.listener import Listener

if TYPE_CHECKING:
    from neuron_sim.counters.graphs import Graph

RUN = "neuron"
"""Folder of the counters, a run of its own in TensorBoard."""
FLUSH_INTERVAL_S = 10.0

Scalars = dict[str, float]


class EventFile(Listener):
    """Writes one scalar of each kind per step; steps are counted from 1."""

    def __init__(self, current: settings.Settings) -> None:
        """The folder and the file are made with the first scalars; without a folder in the settings nothing is made."""
        folder = current.tensorboard_dir
        self._folder = folder and folder / RUN / current.host
        self._pid = os.getpid()
        self._writer: Any = None
        self._waiting: list[tuple[float, int, Scalars]] = []
        self._due = time.monotonic() + FLUSH_INTERVAL_S
        self._step = 0
        self._flops: dict[str, float] = {}
        self._device_bytes = 0
        self._compile_s = 0.0

    def graph(self, graph: Graph) -> None:
        self._flops[graph.hash] = sum(graph.cost.flops.values())
        self._device_bytes = max(self._device_bytes, graph.device_bytes)

    def step(self, record: dict[str, Any]) -> None:
        self._step += 1
        self._compile_s += record["compile_seconds"]
        if self._folder is None:
            return
        self._waiting.append((time.time(), self._step, self._scalars(record)))
        if time.monotonic() >= self._due:
            self._flush()

    def finish(self) -> None:
        """Write the waiting scalars, after the recorder's last step. For the end of the process that owns the file."""
        if os.getpid() != self._pid:
            return
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _scalars(self, record: dict[str, Any]) -> Scalars:
        """``samples_per_second``: of this core, without the time that compiling took; where samples are counted."""
        seconds = max(record["seconds"] - record["compile_seconds"], 1e-9)
        flops = sum(self._flops.get(name, 0.0) * runs for name, runs in record["graphs"].items())
        samples = (
            {"neuron/samples_per_second_per_core": record["samples"] / seconds} if record["samples"] else {}
        )
        return {
            **samples,
            "neuron/step_seconds": record["seconds"],
            "neuron/flops_per_second_per_core": flops / seconds,
            "neuron/collective_seconds": record["collective_seconds"],
            "neuron/input_wait_seconds": record["input_wait_seconds"],
            "neuron/compile_seconds_total": self._compile_s,
            "neuron/graphs_compiled": float(len(self._flops)),
            "neuron/largest_graph_device_bytes": float(self._device_bytes),
        }

    def _flush(self) -> None:
        """Write the waiting scalars. With a full disk, or without tensorboard, they are lost, and training goes on."""
        self._due = time.monotonic() + FLUSH_INTERVAL_S
        waiting, self._waiting = self._waiting, []
        if (
            not waiting
            or self._folder is None
            or os.getpid() != self._pid
            or settings.identity().local_rank != 0
        ):
            return  # the rank is checked here, since `xmp.spawn` sets it only after the import
        with suppress(OSError):
            if self._writer is None:
                try:
                    self._writer = _open(self._folder)
                except (ImportError, TypeError) as error:
                    # Raised if the job's requirements brought a protobuf older than tensorboard's messages.
                    self._folder = None
                    log_lines.plain(
                        f"Windtunnel: no scalars for TensorBoard, which cannot be imported: {error}."
                    )
                    return
            for moment, step, scalars in waiting:
                self._writer.write(_event(moment, step, scalars))
            self._writer.flush()


def _open(folder: Path) -> Any:
    """A writer of a new file, its first record the format's version, as TensorBoard expects."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    folder.mkdir(parents=True, exist_ok=True)
    now = time.time()
    name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.0"
    writer = RecordWriter((folder / name).open("wb"))
    writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
    return writer


def _event(moment: float, step: int, scalars: Scalars) -> bytes:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
    return bytes(Event(wall_time=moment, step=step, summary=Summary(value=values)).SerializeToString())
