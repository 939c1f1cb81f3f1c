"""The slow end of a described job's interval: it may be a plain script, whatever software the rows are by."""

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
"""A part of a step below which an interval of a fifth or more does not show it."""


def log_slower_as_script(
    training: Training, instance: InstanceType, step: StepTime, flops: float, constants: Constants, count: int
) -> float:
    """How much longer a plain script may take, in logs: its host, and on GPUs its optimizer and its attention."""
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
    if flops / peak >= host_s:  # the device takes longer, whatever it reaches
        return math.log1p(longer / step.total_s) if longer > _MATTERS * step.compute_s else 0.0
    step_s = step.total_s
    return math.log1p((longer + max(0.0, host_s - step_s / passes) * passes) / step_s)
