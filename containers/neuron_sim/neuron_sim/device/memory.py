"""Device memory of a core: adds up what is in it, and fails as the device does when something does not fit.

The simulated device's memory is this machine's, which would take more than a core of trn1 has, or
end the whole job when it is full. So the tensors on the device are added up where they may have
grown: before a synchronisation executes pending operations, when the host sends tensors, and after
a new graph was compiled. In a steady state each check only reads two of torch_xla's counters.
Temporaries (activations among them) are as XLA's CPU compiler plans them: a stand-in for neuronx-cc.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import _XLAC
import torch

from neuron_sim import cgroup, settings
from neuron_sim.counters import recorder, script_lines, script_time
from neuron_sim.counters.graphs import Graph
from neuron_sim.counters.listener import Listener
from neuron_sim.counters.modules import parameters as parameters_of
from neuron_sim.device import memory_by_use, memory_messages
from neuron_sim.device.memory_by_use import Parts
from neuron_sim.diagnostics import advice, findings
from neuron_sim.errors import DeviceMemoryError, HostMemoryError
from neuron_sim.topology import Instance

_FIRST_LOOKS = 8
"""The first synchronisations, at which memory is always added up: models and optimizers are created then.

Later it is added up when there are more tensors than ever before."""
_LARGE = 2**28
"""Bytes sent to the device, or added there, from which on memory is added up."""
_HOST_RESERVE = 2**30
"""Bytes of this machine's memory that are left unused."""
_WORKER_BYTES = 3 * 2**28
"""Bytes of host memory for a worker, its libraries and XLA: 0.57 GiB were seen with a small model."""
_TIGHT = 0.9


def _is_device(arguments: Any, keywords: Any) -> bool:
    target = keywords.get("device", arguments[0] if arguments else None)
    if isinstance(target, torch.Tensor):
        return bool(target.is_xla)
    return str(target).startswith("xla")


class Guard(Listener):
    """Watches the device memory of one core. Sizes are in bytes."""

    def __init__(self, instance: Instance) -> None:
        """Nothing is on the device."""
        self.limit = instance.memory_per_core_bytes
        self._cores_per_device = instance.cores_per_device
        self.begin()

    def usage(self) -> dict[str, int]:
        """Device bytes by use as of the last `look`, their `total`, and the `limit`. Cheap."""
        return {**self.parts.by_use(), "total": self.parts.total, "limit": self.limit}

    def around_tensor_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `Tensor.to`, which `Module.to` calls too: a tensor takes device memory as soon as it is sent."""

        @functools.wraps(to)
        def guarded(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if tensor.is_xla:
                return to(tensor, *arguments, **keywords)
            is_large = tensor.layout == torch.strided and tensor.nbytes >= _LARGE
            if is_large and _is_device(arguments, keywords):
                self.before_sending(other=tensor.nbytes)
            result = to(tensor, *arguments, **keywords)
            if isinstance(result, torch.Tensor) and result.is_xla:
                self.sent(result.nbytes)
            return result

        return guarded

    def around_module_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `Module.to`: how much it will send is known before its first tensor moves."""

        @functools.wraps(to)
        def guarded(module: Any, *arguments: Any, **keywords: Any) -> Any:
            if _is_device(arguments, keywords):
                self.before_sending(
                    parameters=sum(p.nbytes for p in parameters_of(module) if p.device.type == "cpu")
                )
            return to(module, *arguments, **keywords)

        return guarded

    def begin(self) -> None:
        """Start from zero: this process has just become a core."""
        self.parts = Parts()
        self._peak = Parts()
        self._peak_line = "?"
        self._syncs = 0
        self._tensors = 0
        self._sent = 0
        self._compiled = 0
        self._temporaries = 0
        self._planned = 0
        self._exceeded = False
        self._process = os.getpid()

    def graph(self, graph: Graph) -> None:
        self._temporaries = max(self._temporaries, graph.temp_bytes)
        self._planned = max(self._planned, graph.device_bytes)

    @script_time.set_aside
    def before_sync(self) -> None:
        """Check that memory suffices, before pending operations are executed."""
        self._syncs += 1
        tensors = _live_tensors()
        if self._syncs > _FIRST_LOOKS and tensors <= self._tensors:
            return
        self._tensors = max(self._tensors, tensors)
        self.look()

    @script_time.set_aside
    def after_sync(self) -> None:
        """Check that memory suffices for a newly compiled graph."""
        compiled = _counter("UncachedCompile")
        if compiled != self._compiled:
            self._compiled = compiled
            recorder.counting.look()
            self.look(use="scratchpad" if self._temporaries > self.parts.temporaries else "tensors")

    @script_time.set_aside
    def before_sending(self, parameters: int = 0, other: int = 0) -> None:
        """Check that memory suffices for the bytes that are about to be sent."""
        if parameters + other >= _LARGE:
            self.look(Parts(parameters=parameters, other=other))

    @script_time.set_aside
    def sent(self, size: int) -> None:
        """Note that ``size`` bytes have been sent."""
        self._sent += size
        if self._sent >= _LARGE:
            self.look()

    def look(self, coming: Parts | None = None, use: str = "tensors") -> None:
        """Add up the live tensors, temporaries, and what is ``coming``.

        Raises:
            DeviceMemoryError: a core of the device has less memory.
            HostMemoryError: the core has enough, but this machine does not.
        """
        self._sent = 0
        before, now = self.parts, memory_by_use.live()
        now.temporaries = max(self._temporaries, self._planned - now.total)
        self.parts = now
        expected = now + coming if coming is not None else now
        line = script_lines.calling_line()
        if expected.total > self._peak.total:
            self._peak, self._peak_line = expected, line
            self._write()
        if expected.total > self.limit:
            self._fail(expected, before.total, line, use)
        workers = settings.identity().local_world_size
        if expected.total - before.total >= _LARGE or coming:
            capacity = cgroup.memory_limit() - _HOST_RESERVE - workers * _WORKER_BYTES
            if workers * expected.total > capacity:
                parts = expected.by_use()
                raise HostMemoryError(
                    memory_messages.host_message(parts, capacity, self.limit, workers, line)
                )

    def _fail(self, parts: Parts, before: int, line: str, use: str) -> None:
        self._exceeded = True
        core = settings.identity().local_rank
        text = memory_messages.message(
            parts.by_use(), before, self.limit, core, self._cores_per_device, line, use
        )
        findings.note(advice.device_memory(line, text))
        raise DeviceMemoryError(text)

    def _write(self) -> None:
        sizes = {**self._peak.by_use(), "total": self._peak.total, "limit": self.limit}
        recorder.counting.write({"kind": "memory", "line": self._peak_line, **sizes})

    def info(self, _device: str = "") -> dict[str, int]:
        """What `xm.get_memory_info` answers: bytes of the live tensors, without the temporaries of a running graph."""
        used = memory_by_use.live().total
        return {
            "bytes_used": used,
            "bytes_limit": self.limit,
            "peak_bytes_used": max(self._peak.total, used),
        }

    def close(self) -> None:
        """At the script's end: write the peak, and note it if it was close to the limit."""
        unseen = self._planned - self._peak.total
        if unseen > 0:  # no `look` followed the largest graph, for example one that reads a value
            self._peak.temporaries += unseen
            self._write()
        share = self._peak.total / self.limit
        if _TIGHT <= share <= 1:
            parts = self._peak.by_use()
            note = advice.memory_tight(
                self._peak_line, share, memory_messages.shares(parts), memory_messages.todo(parts)
            )
            findings.note(note)

    def leave(self) -> None:
        """End the process after a memory error: a graph that does not fit may still run, and is not waited for."""
        if self._exceeded and recorder.counting.has_failed and os.getpid() == self._process:
            recorder.counting.end()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


def _live_tensors() -> int:
    return _counter("CreateXlaTensor") - _counter("DestroyXlaTensor")


def _counter(name: str) -> int:
    return int(_XLAC._xla_counter_value(name) or 0)
