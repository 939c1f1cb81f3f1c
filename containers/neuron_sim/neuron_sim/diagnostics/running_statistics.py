"""Whether the cores of a host, which train one model, end with the same running statistics, as of BatchNorm.

Each core takes them from its own batches. On GPUs DistributedDataParallel sends rank 0's to all with each forward pass;
a script that wraps no model sends none, and all its cores evaluate with other ones. So each core leaves some of their
values when the script has ended: until then a script may have made them equal.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from neuron_sim import settings
from neuron_sim.counters import model_parallel, modules, recorder, script_time
from neuron_sim.counters.listener import Listener
from neuron_sim.diagnostics import for_cores
from neuron_sim.diagnostics.findings import Findings
from neuron_sim.diagnostics.host_training import training as host_training
from neuron_sim.diagnostics.meeting import among_cores
from neuron_sim.diagnostics.unequal_weights import Look, differ, some

_NAME = "running_mean"
_LEAST = 1e-3
"""The least ratio of the mean difference to the mean value that is reported. Statistics that are averaged or sent are
equal to the last bit, or nearly.
"""
_LATE_S = 2.0
"""How long the first core waits at its end for what the others leave at theirs."""
_CAUSES = ("no_exchange", "unequal_weights")
"""Findings of which other statistics are only an effect."""


class RunningStatistics(Listener):
    """Keeps the modules that have some, from the first optimizer's step to the end."""

    def __init__(self, counters_dir: Path | None, look: Look, findings: Callable[[], Findings]) -> None:
        """``counters_dir``: as `Watch` has it; ``findings``: all that there are, of which this may be one."""
        self._shared = counters_dir
        self._look = look
        self._findings = findings
        self.begin()

    def begin(self) -> None:
        self._meeting = among_cores(self._shared, ".running-statistics")
        self._buffers: dict[str, dict[str, Any]] | None = None
        """The buffers of each such module, by its name; None: no optimizer has stepped."""
        self._line = "?"

    @script_time.set_aside
    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Called before an optimizer's step, on every core. Searches all objects before the first one."""
        if self._buffers is not None:
            return
        self._buffers = {}
        self._meeting.clear()
        try:
            self._buffers = self._find(optimizer)
        except Exception:  # noqa: BLE001 - a script's own module may refuse to be asked: no reason to end a training
            self._meeting.has_left = True

    def _find(self, optimizer: Any) -> dict[str, dict[str, Any]]:
        """Of the modules that this optimizer trains: others, as copies with averaged weights, may differ by intent."""
        there: dict[int, tuple[str, torch.nn.Module]] = {}
        sent: set[int] = set()
        for module in modules.live():
            inner = list(modules.named_modules(module))
            if isinstance(module, DistributedDataParallel) and module.will_sync_module_buffers():
                sent.update(id(each) for _, each in inner)
            for name, each in inner:
                there[id(each)] = max(
                    there.get(id(each), ("", each)), (name, each), key=lambda one: len(one[0])
                )
        trained = {id(each) for group in optimizer.param_groups for each in group["params"]}
        found: dict[str, list[dict[str, Any]]] = {}
        for key, (name, module) in there.items():
            buffers = vars(module).get("_buffers", {})
            own = {id(each) for each in vars(module).get("_parameters", {}).values()}
            value = buffers.get(_NAME)
            if value is not None and value.is_xla and key not in sent and own & trained:
                # A function of the script, and its model, may be gone at the end: these few values stay.
                found.setdefault(name, []).append(buffers)
                self._line = host_training.moved_at(next(iter(modules.parameters(module)), value))
        # Of two with one name another core may have found the other one.
        return {name: each[0] for name, each in found.items() if len(each) == 1}

    def ended(self) -> None:
        if not self._buffers or self._meeting.has_left or recorder.counting.has_failed:
            return
        # A script may have taken them away, to evaluate with each batch's own.
        held = {name: buffers.get(_NAME) for name, buffers in self._buffers.items()}
        values: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            for name, each in held.items():
                if each is not None and not each.is_meta:
                    values[name] = some(self._look(each) if each.is_xla else each)
            self._meeting.leave(json.dumps({name: each for name, each in values.items() if each is not None}))

    def close(self) -> None:
        if not self._meeting.left().get(self._meeting.rank):
            return
        copies = model_parallel.other_copies()
        ranks = {rank for rank in settings.identity().local_ranks if copies is None or rank in copies}
        until = time.monotonic() + _LATE_S
        while not ranks <= (left := self._meeting.left()).keys() and time.monotonic() < until:
            time.sleep(_LATE_S / 100)
        mine = json.loads(left.pop(self._meeting.rank))
        for rank in sorted(ranks & left.keys()):
            theirs = json.loads(left[rank])
            apart = [name for name in mine if name in theirs and differ(mine[name], theirs[name], _LEAST)]
            if apart and mine.keys() == theirs.keys():
                findings = self._findings()
                if not any(one.kind in _CAUSES for one in findings.ranked()):
                    findings.note(for_cores.running_statistics(self._line, rank, apart, self._meeting.rank))
                return
