"""The steps that begin with idle devices: the work that their tracing is held against is timed amid them, and what
they launch is counted.
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
    """Which steps of this core are timed, and the reference of the one that runs."""

    def __init__(self, counters_dir: Path | None) -> None:
        """None is, yet. ``counters_dir``: a folder that the cores of this host share."""
        me = settings.identity()
        # Beside the first core, whose seconds count, runs then what would run anyway: tracing, or the same work.
        self._times_reference = me.local_rank < (os.cpu_count() or 1)
        self._quiet = QuietSteps(counters_dir, me.local_rank, me.local_world_size)
        self._is_timed = False
        self._references_s: list[float] = []
        self._before_s = 0.0
        """Tracing of the step before."""
        launches.counted.begin(wanted=False)

    @script_time.set_aside
    def time_reference(self, *, first: bool = False) -> None:
        """Amid a step whose tracing is timed, once before most of it and once after.

        What else runs on a processor changes its speed twofold within a tenth of a second: beside two busy processes
        the ratio of tracing to the work varied from step to step by 19 % (one standard deviation) where the work was
        timed once a step, and by 13 % where twice.
        """
        if not (self._is_timed and self._times_reference) or len(self._references_s) != (0 if first else 1):
            return
        # Asked here: Dynamo, where the script uses it, would compile any function that asks.
        is_compiled = torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None
        if not is_compiled and host_reference.goes_unseen():
            # Twice a step: together no longer than what it is held against.
            launches.counted.pause()
            self._references_s.append(host_reference.seconds(self._before_s / 2))
            launches.counted.go_on()

    @property
    def reference_s(self) -> float:
        """Of the step that ends, in the mean; 0: it was not timed."""
        return statistics.fmean(self._references_s or [0.0])

    def step_ended(self, seconds: float, traced_s: float, *, trains: bool) -> None:
        """A step of so many seconds, so many of them of tracing, is written down."""
        self._before_s = traced_s
        if trains:
            self._is_timed = self._quiet.step_ended(lambda: _XLAC._xla_wait_device_ops([]), seconds)
            self._references_s = []
        launches.counted.begin(wanted=self._is_timed and trains)
