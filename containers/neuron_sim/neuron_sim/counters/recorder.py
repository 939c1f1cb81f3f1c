"""Counts what this core does, step by step, and writes it down.

A step ends where trn1 would run its graph: at mark_step. What the collectives cut
into several graphs here is added up into that one step.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from collections import Counter, defaultdict
from typing import Any

import _XLAC
import torch

from neuron_sim import settings
from neuron_sim.counters.graphs import GraphLog
from neuron_sim.counters.records import Records

_READ_EVERY = 256
"""Collectives of a kind within one step after which the graphs' files are read."""

_recorder: Recorder | None = None


def install(current: settings.Settings) -> None:
    """Hook into torch_xla when counters are wanted; before the XLA client is made."""
    global _recorder
    if current.counters_dir is None:
        return
    _recorder = Recorder(current)
    _hook(_recorder)


def failed() -> None:
    """Note that the script has ended with an error."""
    if _recorder is not None:
        _recorder.failed()


def collective(name: str, payload_bytes: int, seconds: float) -> None:
    """Count one collective of this core."""
    if _recorder is not None:
        _recorder.collective(name, payload_bytes, seconds)


class Recorder:
    """The counters of one process. The graphs are counted on the first core of each host."""

    def __init__(self, current: settings.Settings) -> None:
        """Open nothing yet: the rank is known at the first step (`xmp.spawn` sets it late)."""
        self._settings = current
        self._records: Records | None = None
        self._graphs = GraphLog(os.environ) if settings.identity().local_rank == 0 else None
        self._compiled_s = 0.0
        self._peak_bytes = 0
        self._arithmetic: set[str] = set()
        self._samples = 0
        self._failed = False
        self._process = os.getpid()
        self._last_end = time.perf_counter()
        self._reset()

    def _reset(self) -> None:
        """Begin a step."""
        self._executed: Counter[str] = Counter()
        self._collectives: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._collective_s = 0.0
        self._input_wait_s = 0.0
        self._compile_s = 0.0
        self._trains = False

    # Called by the hooks, in the order of the script.

    def collective(self, name: str, payload_bytes: int, seconds: float) -> None:
        """One collective: payload bytes of this rank, seconds from its call to its result here."""
        entry = self._collectives[name]
        entry[0] += 1
        entry[1] += payload_bytes
        self._collective_s += seconds
        if entry[0] % _READ_EVERY == 0:
            # Reading after each would be half of what counting costs; a script without mark_step needs it.
            self._read_graphs()

    def trained(self) -> None:
        """Gradients have been computed, or an optimizer has applied them.

        With gradient accumulation, most training steps are without an optimizer's step.
        """
        self._trains = True

    def batch(self, item: Any, waited_s: float) -> None:
        """A batch came from the input pipeline after a wait."""
        self._input_wait_s += waited_s
        self._samples += _leading_dimension(item)

    def step_ended(self) -> None:
        """mark_step has run: write the step down, if it ran anything.

        ``optimizer`` says whether it was a training step.
        """
        now = time.perf_counter()
        seconds, self._last_end = now - self._last_end, now
        self._read_graphs()
        records = self._open()
        # A batch counts in the step that computes with it: transformers' Trainer fetches batches ahead,
        # and runs small graphs of its own (how many labels there are) between fetching and training.
        samples = 0
        if not self._arithmetic.isdisjoint(self._executed):
            samples, self._samples = self._samples, 0
        if self._graphs is not None and (self._executed or self._collectives):
            records.write(
                "step",
                seconds=round(seconds, 6),
                optimizer=self._trains,
                samples=samples,
                graphs=dict(self._executed),
                collectives={name: {"count": c, "bytes": b} for name, (c, b) in self._collectives.items()},
                collective_seconds=round(self._collective_s, 6),
                input_wait_seconds=round(self._input_wait_s, 6),
                compile_seconds=round(self._compile_s, 6),
            )
        self._reset()

    def failed(self) -> None:
        """The script has ended with an exception."""
        self._failed = True

    def end(self) -> None:
        """Write what is left; called once, when the process ends."""
        if os.getpid() != self._process:
            return  # a child that the script has forked
        self._read_graphs()
        if self._executed or self._collectives:
            # What ran after the last mark_step, or all of it when the script never calls it.
            self.step_ended()
        if self._records is not None:
            exit_status = "error" if self._failed else "ok"
            rank = settings.identity().rank
            self._records.write("end", rank=rank, exit=exit_status, peak_device_bytes=self._peak_bytes)
        if self._graphs is not None:
            self._graphs.close()

    def _read_graphs(self) -> None:
        """Take in what ran since the last look; each new graph is written with its share of compile time."""
        if self._graphs is None:
            return
        executed, compiled = self._graphs.read()
        self._executed += executed
        if not compiled:
            return
        total = _compile_seconds()
        spent, self._compiled_s = total - self._compiled_s, total
        self._compile_s += spent
        for graph in compiled:
            self._peak_bytes = max(self._peak_bytes, graph.device_bytes)
            if graph.cost.flops:
                self._arithmetic.add(graph.hash)
            self._open().write(
                "graph",
                graph=graph.hash,
                flops=graph.cost.flops,
                bytes_accessed=graph.cost.bytes_accessed,
                input_bytes=graph.cost.input_bytes,
                output_bytes=graph.cost.output_bytes,
                temp_bytes=graph.temp_bytes,
                compile_seconds=round(spent / len(compiled), 6),
                source=graph.source,
            )

    def _open(self) -> Records:
        """The file of this rank, opened with its start record at the first need."""
        if self._records is not None:
            return self._records
        import torch_xla

        me = settings.identity()
        folder = self._settings.counters_dir
        assert folder is not None  # noqa: S101 - `install` has checked
        self._records = Records(folder / f"rank-{me.rank}.jsonl")
        self._records.write(
            "start",
            rank=me.rank,
            local_rank=me.local_rank,
            world_size=me.world_size,
            local_world_size=me.local_world_size,
            instance_type=self._settings.instance_type,
            instance_cores=self._settings.instance.cores,
            local_cores=self._settings.local_cores,
            framework_version=".".join(map(str, self._settings.framework_version)),
            torch=torch.__version__,
            torch_xla=torch_xla.__version__,
            host=self._settings.host,
        )
        return self._records


def _compile_seconds() -> float:
    """Seconds this process has spent compiling, from torch_xla's own metric (nanoseconds)."""
    data = _XLAC._xla_metric_data("CompileTime")
    return data[1] / 1e9 if data else 0.0


def _leading_dimension(item: Any) -> int:
    """Samples in a batch: the first dimension of its first tensor."""
    if isinstance(item, torch.Tensor):
        return int(item.shape[0]) if item.dim() else 1
    values = item.values() if hasattr(item, "values") else item
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        return 0
    for value in values:
        if found := _leading_dimension(value):
            return found
    return 0


def _hook(recorder: Recorder) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch_xla.distributed.parallel_loader import ParallelLoader

    step_marker = _XLAC._xla_step_marker

    def counted_step_marker(*arguments: Any, **keywords: Any) -> None:
        step_marker(*arguments, **keywords)
        recorder.step_ended()

    _XLAC._xla_step_marker = counted_step_marker

    next_item = ParallelLoader.next_item

    def timed_next_item(self: Any, device: Any) -> Any:
        started = time.perf_counter()
        item = next_item(self, device)
        if item is not None:
            recorder.batch(item, time.perf_counter() - started)
        return item

    ParallelLoader.next_item = timed_next_item
    register_optimizer_step_post_hook(lambda *_: recorder.trained())

    backward = torch.autograd.backward

    @functools.wraps(backward)
    def noticed_backward(*arguments: Any, **keywords: Any) -> None:
        recorder.trained()
        backward(*arguments, **keywords)

    torch.autograd.backward = noticed_backward

    previous = sys.excepthook

    def excepthook(*exception: Any) -> None:
        recorder.failed()
        previous(*exception)

    sys.excepthook = excepthook
    atexit.register(recorder.end)
