"""In the steps that begin with idle devices, times the reference that their tracing is compared with, and counts their
launches.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import _XLAC
import torch

from neuron_sim import settings
from neuron_sim.counters import host_reference, launches, script_time
from neuron_sim.counters.quiet_steps import QuietSteps


class TimedSteps:
    """Which steps of this core are timed, and the reference of the current one."""

    def __init__(self, counters_dir: Path | None) -> None:
        """No step is timed yet. ``counters_dir``: a folder that the cores of this host share."""
        me = settings.identity()
        # Only the first core's seconds count. Others time too, so that its load stays usual: tracing, or this work.
        self._times_reference = me.local_rank < (os.cpu_count() or 1)
        self._quiet = QuietSteps(counters_dir, me.local_rank, me.local_world_size)
        self._is_timed = False
        self._references_s: list[float] = []
        self._before_s = 0.0
        """Seconds of tracing of the step before."""
        launches.counted.begin(wanted=False)

    @script_time.set_aside
    def time_reference(self, *, first: bool = False) -> None:
        """Time the reference within a step whose tracing is timed: once before most of it (``first``), once after.

        Other load changes a processor's speed twofold within a tenth of a second: beside two busy processes the ratio
        of tracing to the reference varied from step to step by 19 % (one standard deviation) if the reference was timed
        once a step, and by 13 % if twice.
        """
        if not (self._is_timed and self._times_reference) or len(self._references_s) != (0 if first else 1):
            return
        # Not in a function of its own: Dynamo, where the script uses it, would compile that.
        is_compiled = torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None
        if not is_compiled and host_reference.goes_unseen():
            # Half, since it is timed twice a step: together no longer than the step's tracing.
            launches.counted.pause()
            self._references_s.append(host_reference.seconds(self._before_s / 2))
            launches.counted.go_on()

    @property
    def reference_s(self) -> float:
        """Mean seconds of the reference in the step that ends; 0: it was not timed."""
        return statistics.fmean(self._references_s or [0.0])

    def step_ended(self, seconds: float, traced_s: float, *, trains: bool) -> None:
        """Called when a step is written; it took ``seconds``, of these ``traced_s`` for tracing."""
        self._before_s = traced_s
        if trains:
            self._is_timed = self._quiet.step_ended(lambda: _XLAC._xla_wait_device_ops([]), seconds)
            self._references_s = []
        launches.counted.begin(wanted=self._is_timed and trains)
