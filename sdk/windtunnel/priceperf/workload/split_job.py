"""A rehearsed job whose cores share one copy of the model, modelled by the description that its rehearsal found.

The counts of one core do not show which collectives stay within a copy, or how long the stages of a pipeline wait. The
model's configuration, the sizes of NxD Core's groups and the batches do. On other instance types, and on GPUs, the
split is left open: it was only tried on the rehearsed type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, get_args

from ..errors import InvalidCounters, InvalidInput
from ..instances import instance_type
from ..model.architectures import Architecture
from ..model.config_json import REHEARSE, from_config
from ..model.lora import Lora, LoraTargets
from ..model.training_settings import DTYPE_BYTES
from .cluster import Cluster
from .counters import Counters, Parameters, Split, Steps
from .described import Described, Optimizer
from .found_scale import found_in_short
from .full_scale import FullScale
from .not_modelled import split_over_cores, trained_steps
from .rehearsed import RehearsedJob

_T = TypeVar("_T", bound=Described)

SOFTWARE = "neuronx-distributed"
"""The name in published rows of NxD Core, which made the groups."""
_ALIKE = 1.25
"""Largest ratio between the weights that modules hold and those of their configuration: some heads are kept twice."""
_SAME = 0.01
"""Relative difference within which two numbers of weights are of the same model."""


def described(cls: type[_T], counters: Counters) -> _T:
    """Describe the job by what its rehearsal found.

    Raises:
        InvalidCounters: the counters hold nothing to model, or no description; the message has a command that
            models the job from a description by the user.
    """
    train, world_size = trained_steps(counters)
    held, length = counters.parameters, _sequence_length(counters)
    split = None if held is None else held.split
    if held is None or split is None or split.cores != counters.cores_of_a_copy:
        why = "how they share it is not known"
    elif split.config is None:
        why = "its modules keep no configuration as transformers' do"
    elif held.frozen and split.lora_rank is None:
        why = "a part of it is not trained, and no adapters of PEFT are"
    elif length is None:
        why = "its batches hold no sequences of tokens"
    else:
        try:
            return _described(cls, counters, train, world_size, held, split, length)
        except InvalidInput as error:
            why = str(error).removesuffix(f". {REHEARSE}")  # which has been done
    raise InvalidCounters(split_over_cores(counters, world_size, why))


def _described(
    cls: type[_T],
    counters: Counters,
    train: Steps,
    world_size: int,
    held: Parameters,
    split: Split,
    length: int,
) -> _T:
    seen = held.frozen or held.model  # with frozen weights, all others are adapters
    whole = seen if split.pipeline_parallel == 1 else None  # in a pipeline only one stage was counted
    model, weights = _model_of(split, whole)
    if whole and not weights / _ALIKE <= whole <= weights * _ALIKE:
        raise InvalidInput(f"its configuration makes {weights:,} weights, and its modules hold {whole:,.0f}")
    asked = instance_type(counters.instance_type)
    copies = Cluster(asked, counters.instance_count).workers // counters.cores_of_a_copy
    microbatch = max(1, round(train.samples_per_step_per_core))
    products = _most(train.flops)
    found = found_in_short(counters, world_size)
    rehearsed_copies = max(1, world_size // counters.cores_of_a_copy)
    together = counters.input is None or copies <= 1 or counters.input.evaluation_split
    # A pipeline's first pass without training only finds shapes.
    evaluated = counters.other.samples if counters.other and split.pipeline_parallel == 1 else 0
    # With adapters, the counters give the adapters' dtype, not that of the frozen weights.
    stored = products if held.frozen else _most(held.dtypes.get("parameters", {}))
    dtype = stored if stored in ("bf16", "fp16") else "fp32"
    return cls(
        model,
        microbatch,
        length,
        global_batch=microbatch * train.passes * max(1, copies),
        gradient_accumulation=None,
        tensor_parallel=split.tensor_parallel,
        pipeline_parallel=split.pipeline_parallel,
        dtype=dtype,
        matmul_dtype=None if products in (dtype, "fp32") else products,
        optimizer=_optimizer(held, split, rehearsed_copies),
        recompute="auto",
        zero="optimizer" if split.zero1 else "none",
        attention="auto",
        parameters=weights,
        head_part=1.0,
        lora=_adapters(model, held, split),
        software=SOFTWARE,
        rehearsed=RehearsedJob(
            asked.name,
            counters.instance_count,
            train.samples,
            evaluated // (1 if together else rehearsed_copies),
            replace(found, sequence_length=length) if isinstance(found, FullScale) else found,
            unshared=counters.input is not None and copies > 1 and not counters.input.is_shared,
            evaluation_split=together,
        ),
    )


def _model_of(split: Split, whole: float | None) -> tuple[Architecture, int]:
    """The architecture and its number of weights; ``whole``: weights of the modules.

    optimum-neuron before 0.3 writes one core's share of the vocabulary into the configuration; it is scaled back.
    """
    config = split.config or {}
    found, share = from_config(config), config.get("vocab_size")
    if whole and split.tensor_parallel > 1 and isinstance(share, int):
        wider = from_config({**config, "vocab_size": share * split.tensor_parallel})
        if math.isclose(wider[1], whole, rel_tol=_SAME) and not math.isclose(found[1], whole, rel_tol=_SAME):
            return wider
    return found


def _adapters(model: Architecture, held: Parameters, split: Split) -> Lora | None:
    """The LoRA adapters; their targets are those with which one core would train about as many weights as counted."""
    if split.lora_rank is None or not held.frozen:
        return None
    found = [Lora(split.lora_rank, targets) for targets in get_args(LoraTargets)]
    trained = held.count * split.pipeline_parallel
    return min(found, key=lambda each: abs(each.weights(model, split.tensor_parallel) - trained))


def _optimizer(held: Parameters, split: Split, copies: int) -> Optimizer:
    """The optimizer, by the numbers that it keeps for a weight: SGD and Lion at most one, AdamW and LAMB two."""
    state = held.dtypes.get("optimizer")
    if state is None:
        return "adamw"
    kept = sum(size / DTYPE_BYTES.get(name, 4) for name, size in state.items())
    return "sgd" if kept * (copies if split.zero1 else 1) < 1.5 * held.count else "adamw"


def _sequence_length(counters: Counters) -> int | None:
    loaders = () if counters.input is None else counters.input.loaders
    return max((loader.sequence_length or 0 for loader in loaders if loader.trains), default=0) or None


def _most(sizes: Mapping[str, float]) -> str:
    return max(sizes, key=lambda name: sizes[name], default="fp32")
