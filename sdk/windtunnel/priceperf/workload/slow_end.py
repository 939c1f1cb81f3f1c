"""The slow end of a described job's interval: the job may be a plain script, slower than tuned software."""

from __future__ import annotations

import math
from dataclasses import replace

from ..calibration.measured_scripts import speed_of_script
from ..instances import InstanceType
from ..model import fused_attention, plain_script
from ..model.described_step import layers_launched, training_step
from ..model.engines import Constants
from ..model.host_tracing import HOST_SPEED, PLAIN_TRACE_S_PER_LAYER
from ..model.step_time import StepTime
from ..model.training_settings import DTYPE_BYTES, Training

_MATTERS = 0.02
"""Differences below this part of a step are ignored: the interval itself is a fifth or more."""


def log_slower_as_script(
    training: Training, instance: InstanceType, step: StepTime, flops: float, constants: Constants, count: int
) -> float:
    """Log of how much longer a plain script's step may take: by its host, and on GPUs its optimizer and attention."""
    neuron, passes = instance.is_neuron, training.microbatches
    per_layer = PLAIN_TRACE_S_PER_LAYER
    if not neuron:
        per_layer = plain_script.LAYER_LAUNCH_S[training.architecture.family, training.mixed_precision]
    host_s = per_layer * layers_launched(training) * HOST_SPEED.high
    longer = 0.0
    if not (neuron or training.plain):
        fused = training.optimizer_bytes
        longer = (plain_script.OPTIMIZER_BYTES[training.moments] / fused - 1) * step.optimizer_s
        if training.attention == "flash" and DTYPE_BYTES[training.matmul_dtype] > fused_attention.FLASH_BYTES:
            script = training_step(replace(training, plain=True), instance, constants, count)
            longer = max(longer, script.total_s / speed_of_script(instance, count) - step.total_s)
    peak = instance.core_peak_flops(training.matmul_dtype) * training.workers * passes
    if flops / peak >= host_s:  # even at its peak the device takes longer than the host
        return math.log1p(longer / step.total_s) if longer > _MATTERS * step.compute_s else 0.0
    step_s = step.total_s
    return math.log1p((longer + max(0.0, host_s - step_s / passes) * passes) / step_s)
