"""Why counters are not modelled, in words that say what to do."""

from __future__ import annotations

from .counters import Counters
from .found_scale import found_in_short
from .full_scale import FullScale


def no_step(told: Counters) -> str:
    """Why there is nothing to model, as far as the counters tell."""
    grown = next((one for one in told.diagnostics or () if one.kind == "growing_graphs"), None)
    if grown is not None:
        return f"no training step had ended when the job did: {grown.in_short}"
    count = told.graphs.count if told.graphs else 0
    if not count:
        return (
            "the job ran no training step on the device, so there is nothing to model. "
            "Does the script move its model to the xla device and step an optimizer? "
            "A job that is stopped before its first step has been compiled has none either."
        )
    return (
        f"the job ran no training step on the device, though it ran there ({count:,} compiled), so there is "
        "nothing to model. Does it step an optimizer of what is on the device, and does anything end the step "
        "(MpDeviceLoader, torch_xla.sync())? A job that is stopped before its first step has ended has none either."
    )


def split_over_cores(told: Counters, world_size: int) -> str:
    """Why a model whose layers are split over cores is not modelled from its counts, and what is instead."""
    cores, found = told.cores_of_a_copy, found_in_short(told, world_size)
    size, length = " --full-scale-samples N", "N"
    if isinstance(found, FullScale):
        length = str(found.sequence_length or "N")
        size = f" --full-scale-samples {found.train_samples} --epochs {found.epochs}"
    unknown = f" How large the job is, is not known: {found}." if isinstance(found, str) else ""
    nodes = f" --nodes {told.instance_count}" if told.instance_count > 1 else ""
    return (
        f"{cores} cores together hold one copy of the script's model, and the counts of one of them do not tell which "
        f"exchanges stay within a copy, nor how long the stages of a pipeline wait.{unknown} Described, it is "
        f"modelled: windtunnel compare --instances {told.instance_type}{nodes} --architecture config.json "
        f"--tensor-parallel N --pipeline-parallel N --global-batch N --sequence-length {length}{size}"
    )
