"""Messages that say why counters cannot be modelled, and what the user can do."""

from __future__ import annotations

from ..errors import InvalidCounters, NothingTrained
from .counters import Counters, Steps
from .found_scale import found_in_short
from .full_scale import FullScale


def trained_steps(counters: Counters) -> tuple[Steps, int]:
    """The training steps, and the number of processes.

    Raises:
        InvalidCounters: there is nothing to model; the message says why.
    """
    train, world_size = counters.train, counters.world_size
    if counters.compiled_only:
        raise InvalidCounters(
            "neuron_parallel_compile ran the script for its graphs alone, so its steps are no training. Rehearse "
            "the training without it (RUN_NEURON_PARALLEL_COMPILE)"
        )
    unended = next((one for one in counters.diagnostics or () if one.kind == "step_without_end"), None)
    if unended is not None:
        raise InvalidCounters(
            f"nothing ends a step of the script, so neither its batch nor its time is known: {unended.in_short}"
        )
    if train is None or train.samples_per_step_per_core == 0:
        eager = next((one for one in counters.diagnostics or () if one.kind.startswith("eager_")), None)
        if eager is not None:
            raise InvalidCounters(f"operations ran one by one, so no step was counted: {eager.in_short}")
    if train is None:
        raise _no_step(counters)
    if train.samples_per_step_per_core == 0:
        raise InvalidCounters(
            "the counters know no samples per step: no training step took its batch from a DataLoader, sent one to "
            "the device, or called a module with one. "
            "Iterate over a torch DataLoader, best inside torch_xla.distributed.parallel_loader.MpDeviceLoader, "
            "and let no mark_step stand between a batch and its backward()."
        )
    if world_size is None or counters.cores_used is None:
        missing = "world_size" if world_size is None else "cores_used"
        raise InvalidCounters(f"counters.{missing} is missing: no core told that it started")
    return train, world_size


def check_work(counters: Counters, train: Steps, stepped: float | None) -> None:
    """Check that the work of training steps was counted. ``stepped``: parameters that optimizers update.

    Raises:
        InvalidCounters: no optimizer stepped in a short rehearsal, no FLOPs were counted, or some in fp64.
    """
    if stepped is None and counters.input is not None and counters.input.rehearsed_steps is not None:
        passes = "pass" if train.steps == 1 else f"{train.steps:,} passes"
        steps = (
            "a step" if counters.input.rehearsed_steps == 1 else f"{counters.input.rehearsed_steps:,} steps"
        )
        raise NothingTrained(
            f"no optimizer stepped in the {passes} of this short rehearsal of {steps}: neither its work nor the "
            "reduction of gradients was counted. "
            "If the script accumulates gradients over more passes, rehearse more steps: "
            "rehearse=N, WINDTUNNEL_REHEARSE_STEPS=N. If it changes its weights without an optimizer of "
            "torch.optim, that is not modelled."
        )
    if train.flops.get("fp64"):
        raise InvalidCounters(
            "these counters, of an older version, have products in fp64, which torch_xla computes in fp32 on "
            "NeuronCores. Rehearse again"
        )
    if not sum(train.flops.values()) > 0:
        raise InvalidCounters(
            "the counters hold no FLOPs: graphs are not counted while PT_XLA_DEBUG is set. Run without it."
        )


def _no_step(counters: Counters) -> InvalidCounters:
    """The error for counters without a training step, with the likeliest reason."""
    grown = next((one for one in counters.diagnostics or () if one.kind == "growing_graphs"), None)
    if grown is not None:
        return InvalidCounters(f"no training step had ended when the job did: {grown.in_short}")
    count = counters.graphs.count
    if not count:
        return NothingTrained(
            "the job ran no training step on the device, so there is nothing to model. "
            "Does the script move its model to the xla device and step an optimizer? "
            "A job that is stopped before its first step has been compiled has none either."
        )
    return NothingTrained(
        f"the job ran no training step on the device, though it ran there ({count:,} compiled), so there is "
        "nothing to model. Does it step an optimizer of what is on the device, and does anything end the step "
        "(MpDeviceLoader, torch_xla.sync())? A job that is stopped before its first step has ended has none either. "
        "What a model that only answers takes and costs, `windtunnel inference` says."
    )


def split_over_cores(counters: Counters, world_size: int, why: str) -> str:
    """The message that a model split over cores is not modelled, with a command that models it from a description."""
    found = found_in_short(counters, world_size)
    size, length = " --full-scale-samples N", "N"
    if isinstance(found, FullScale):
        length = str(found.sequence_length or "N")
        size = f" --full-scale-samples {found.train_samples} --epochs {found.epochs}"
    unknown = f" How large the job is, is not known: {found}." if isinstance(found, str) else ""
    nodes = f" --nodes {counters.instance_count}" if counters.instance_count > 1 else ""
    return (
        f"{counters.cores_of_a_copy} cores together hold one copy of the script's model, of which the counts of one "
        f"core do not tell enough, and its description is not known: {why}.{unknown} Described by you, it is modelled: "
        f"windtunnel compare --instances {counters.instance_type}{nodes} --architecture config.json "
        f"--tensor-parallel N --pipeline-parallel N --global-batch N --sequence-length {length}{size}"
    )
