"""What most of a bill is for, in words, with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from windtunnel.priceperf import CountedWorkload, Estimate, FullScale, Workload
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.batch_and_prices import each
from windtunnel.reports.modelled.labels import label

_LEAST = 0.1
"""A part of the bill below this share is not worth a line."""
_SHARED = 2
"""Samples of a worker, or of a copy of the model, from which on twice as many have one each."""
_STEPS: Mapping[str, str] = {
    "compute": "the chip's own work; {more} it",
    "memory not behind compute": "a larger batch a worker{bf16} moves fewer bytes a sample{flash}",
    "tensor-parallel collectives": "with less tensor parallelism less is sent",
    "transfers between stages": "fewer stages send less",
    "gathered weights": "a larger microbatch gathers them less often",
    "gradients": "gradient accumulation reduces them less often",
    "pipeline bubble": "more passes a step make it smaller",
    "optimizer": "a larger global batch runs it less often",
    "host": "{host} fewer operations a sample",
    "stragglers": "fewer workers wait less for the slowest",
    "waiting for input": (
        "its vCPUs cannot prepare more samples: decode or augment less, or once, outside the job"
    ),
}
_FIXED: Mapping[str, str] = {
    "download": "fewer or packed files, or FastFile",
    "set-up": "a longer job, or a warm pool, pays it less often",
    "preparation": "prepare the data once, outside the job",
    "compile": "a compile cache keeps the graphs",
    "evaluation": "evaluate less{shared}",
    "upload": "{kept}",
}


def _words(item: Estimate) -> dict[str, str]:
    """The words for the gaps in `_STEPS`: options that this estimate does not use yet, and names by kind of chip."""
    training = item.training
    more = "more instances shorten" if each(item) >= _SHARED else "with a larger batch more instances shorten"
    stored_in_fp32 = training is None or training.storage_dtype == "fp32"
    is_eager = training is not None and training.attention == "eager"
    return {
        "bf16": ", or bf16 storage," if stored_in_fp32 else "",
        "flash": ", and flash attention keeps no scores" if is_eager else "",
        "more": "a larger instance shortens" if item.instance.trains_alone else more,
        # fused=True is for CUDA's optimizers: on NeuronCores XLA fuses the step, but records each operation.
        "host": "a larger batch a core records"
        if item.instance.is_neuron
        else "a fused optimizer, or a larger batch a GPU, launches",
    }


def dominating(item: Estimate, workload: Workload, size: FullScale) -> list[str]:
    """A sentence for each part that takes a tenth of the billable time or more, the largest first."""
    if not item.billable_s:
        return []
    step = item.step.total_s
    advice = dict(_STEPS)
    if item.instance.is_neuron and isinstance(workload, CountedWorkload) and workload.convolves:
        advice["compute"] = "mostly convolutions, modelled at a hundredth of a NeuronCore's bf16 peak"
    found = [
        (
            part * item.full_steps,
            f"{name}, {fmt.modelled_seconds(part)} of a step's {fmt.modelled_seconds(step)} on {label(item)}: "
            f"{advice[name].format(**_words(item))}.",
        )
        for name, part in item.step.parts.items()
    ]
    words = {
        "shared": "" if size.evaluation_split else ", or share the samples among the workers",
        "kept": "one copy of the weights, in fp32; in bf16 it is half"
        if size.model_gib is None
        else "keep fewer checkpoints in the model's folder",
    }
    found += [
        (
            cost.seconds,
            f"{cost.name}, {fmt.percent(cost.seconds / item.billable_s)} of the bill on {label(item)}: "
            f"{_FIXED[cost.name].format(**words)}.",
        )
        for cost in item.fixed
        if cost.billed
    ]
    return [words for seconds, words in sorted(found, reverse=True) if seconds >= _LEAST * item.billable_s]
