"""The ways to split a transformer's training over a cluster that a launcher would accept, and the fastest of them.

Assumptions, all as in the published rows:

- the degree of tensor parallelism divides the attention heads, and the group stays inside an instance. On NeuronCores
  the degree is one of the rows of the same chip's calibration, or all cores of an instance; if none of these divides
  the heads, one of any published row of the chip. On GPUs, and on chips that are modelled from their specification, it
  is any divisor of an instance's cores;
- all stages have the same number of layers, where embedding and head may count as one layer each (BLOOM's 70 layers
  on 12 stages, the 126 of Llama 3.1 405B on 8), and a step has at least as many micro-batches as stages;
- each copy of the model gets a whole number of micro-batches, none with more tokens than a published one. (This is
  strict for a plan; a comparison has a given cluster, and may leave a smaller last micro-batch);
- copies shard the optimizer's state (ZeRO-1); on GPUs, without a pipeline, also weights and gradients (FSDP,
  ZeRO-3) if that is faster or the only way to fit. A single copy shards nothing: on NeuronCores it then keeps
  no fp32 weights (stochastic rounding). With one copy on each NeuronCore, this is tried too: gradients in 16 bits;
- attention and recomputation are those of today's scripts, or everything is recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple, get_args

from ..calibration.calibrations import calibration_of
from ..calibration.described_range import most_tokens
from ..calibration.published_rows import elsewhere, rows_of
from ..errors import InvalidInput, quoted
from ..instances import InstanceType
from ..model.architectures import Architecture
from ..model.described_step import training_step
from ..model.lora import Lora
from ..model.memory_need import (
    attention_today,
    memory_need,
    usual_gradient_bytes,
    usual_recompute,
)
from ..model.training_settings import Attention, Recompute, Training, ZeroStage
from .cluster import Cluster
from .full_scale import LARGEST


class OpenSplit(NamedTuple):
    """A job whose split is to be searched; fields that are not None are fixed. Batches in sequences; see `Training`."""

    architecture: Architecture
    parameters: float
    sequence_length: int
    global_batch: float
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    microbatch: int | None = None
    recompute: Recompute | None = None
    zero: ZeroStage | None = None
    lora: Lora | None = None
    storage_dtype: str = "bf16"
    matmul_dtype: str = "bf16"
    mixed_precision: bool = False
    head_part: float = 1.0
    moments: int = 2
    attention: Attention | None = None
    gradient_bytes: int | None = None
    plain: bool = False

    def check(self) -> None:
        """Refuse a job that no launcher would accept.

        Raises:
            InvalidInput: a number out of range, or a fixed setting that no cluster can have.
        """
        for name in ("sequence_length", "global_batch", "tensor_parallel", "pipeline_parallel", "microbatch"):
            value = getattr(self, name)
            if value is None and name not in ("sequence_length", "global_batch"):
                continue
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and 1 <= value <= LARGEST):
                raise InvalidInput(
                    f"{name} must be a whole number of 1 or more, at most {LARGEST:g}, not {quoted(value)}"
                )
        if not 1 <= self.parameters <= LARGEST:
            raise InvalidInput(f"parameters must be 1 or more, at most {LARGEST:g}, not {self.parameters}")
        for name, valid in (
            ("recompute", get_args(Recompute)), ("zero", get_args(ZeroStage)), ("attention", get_args(Attention)),
        ):  # fmt: skip
            if getattr(self, name) not in (None, *valid):
                raise InvalidInput(f"{name} must be one of {', '.join(valid)}, not {getattr(self, name)!r}")
        must_divide_heads(self.tensor_parallel, self.architecture)
        _must_divide("microbatch", self.microbatch, self.global_batch, "sequences of the global batch")
        stages = _stages(self.architecture)
        if self.pipeline_parallel is not None and self.pipeline_parallel not in stages:
            raise InvalidInput(
                f"pipeline_parallel {self.pipeline_parallel} makes no equal stages of {self.architecture.layers} "
                f"layers, also where embedding and head count as one each; {', '.join(map(str, stages))} do"
            )

    def split(
        self, instance: InstanceType, copies: int, tensor: int, stages: int, zero: ZeroStage
    ) -> partial[Training]:
        """A `Training` that lacks only its recomputation, micro-batch and global batch."""
        attention = self.attention
        if attention is None:
            attention = attention_today(self.architecture, self.matmul_dtype, instance)
        return partial(
            Training,
            architecture=self.architecture,
            parameters=self.parameters,
            sequence_length=self.sequence_length,
            data_parallel=copies,
            tensor_parallel=tensor,
            pipeline_parallel=stages,
            storage_dtype=self.storage_dtype,
            matmul_dtype=self.matmul_dtype,
            gradient_bytes=self.gradient_bytes or usual_gradient_bytes(self.storage_dtype, zero, instance),
            zero=zero,
            attention=attention,
            mixed_precision=self.mixed_precision,
            head_part=self.head_part,
            moments=self.moments,
            plain=self.plain,
            lora=self.lora,
        )

    @property
    def is_partly_fixed(self) -> bool:
        """Whether something of the split is fixed."""
        fixed = (self.tensor_parallel, self.pipeline_parallel, self.microbatch, self.zero, self.recompute)
        return any(setting is not None for setting in fixed)


@dataclass(frozen=True)
class Searched:
    """The result of a search on one cluster: the fastest way for each pair of tensor and pipeline parallelism.

    ``best``: pairs of a step's seconds and its settings, fastest first. ``candidates``: ways that were tried;
    ``fitting``: how many fit the memory. ``least``: of the ways that do not fit, the one that needs the least memory.
    """

    best: tuple[tuple[float, Training], ...]
    candidates: int
    fitting: int
    least: Training | None


def as_stated(job: OpenSplit, cluster: Cluster) -> Training:
    """The job with its fixed parallelism (None: data parallelism alone), and the fastest passes and recomputation
    that fit. If the batch does not divide into whole passes, each is a little smaller. If nothing fits, the way that
    needs the least memory.
    """
    tensor, stages = job.tensor_parallel or 1, job.pipeline_parallel or 1
    copies = cluster.workers // (tensor * stages)
    split = job.split(cluster.instance, copies, tensor, stages, job.zero or "none")
    sequences = job.global_batch / copies
    counts = _passes(job, sequences, stages, cluster.instance)
    fitting: list[Training] = []
    for recompute in _recomputations(job, split, cluster.instance):
        for passes in counts:
            size = sequences / passes
            batch = size * copies * passes
            training = split(microbatch=size, global_batch=batch, recompute=recompute)
            if memory_need(training, cluster.instance).fits:
                fitting.append(training)
                if stages == 1:
                    break  # more passes are faster only in a pipeline, whose stages wait for the first pass
        if fitting and fitting[0].microbatch == sequences / counts[0]:
            break  # the largest passes fit already, so more recomputation gains nothing
    return fastest_of(fitting, cluster) if fitting else training


def fastest_of(ways: Sequence[Training], cluster: Cluster) -> Training:
    """The way with the shortest step; of equal ones the first."""
    if len(ways) == 1:
        return ways[0]
    constants = calibration_of(cluster.instance).constants
    return min(ways, key=lambda one: training_step(one, cluster.instance, constants, cluster.count).total_s)


def _passes(job: OpenSplit, sequences: float, stages: int, instance: InstanceType) -> Sequence[int]:
    """Numbers of passes of a step to try, smallest first: the given one; else powers of two, and passes of a power of
    two of sequences (no pass with more tokens than a published one, as many passes as stages at least).
    """
    if job.microbatch is not None:
        return (math.ceil(sequences / job.microbatch - 1e-9),)
    most = math.ceil(sequences - 1e-9)
    least = max(stages, sequences * job.sequence_length / most_tokens(calibration_of(instance)))
    powers = [2**doubled for doubled in range((most - 1).bit_length())]
    counts = {*powers, *(math.ceil(most / size) for size in powers)} - {most}
    return (*sorted(count for count in counts if count >= least), most)


@lru_cache(maxsize=64)
def fastest_that_fits(job: OpenSplit, cluster: Cluster) -> Training | None:
    """The fastest way that fits, or if none does the one that needs the least memory; None: no split takes the batch.

    If the batch does not divide over the copies of the model, each split is modelled as by `as_stated`.

    Raises:
        NotCalibrated: no calibration models the instance.
    """
    found = search(job, cluster, whole=False)
    training = found.best[0][1] if found.best else found.least
    if training is None or job.global_batch % (training.microbatch * training.data_parallel) == 0:
        return training
    ways = [
        as_stated(
            job._replace(
                tensor_parallel=one.tensor_parallel, pipeline_parallel=one.pipeline_parallel, zero=one.zero
            ),
            cluster,
        )
        for one in ([way for _, way in found.best] or [training])
    ]
    fitting = [way for way in ways if memory_need(way, cluster.instance).fits]
    return fastest_of(fitting or ways[:1], cluster)


def search(job: OpenSplit, cluster: Cluster, *, whole: bool = True) -> Searched:
    """Model every way to run the job on a cluster. Deterministic; of equal ways the smaller micro-batch wins.

    Args:
        job: its fields that are None are searched.
        cluster: what it runs on.
        whole: True: all copies of the model have the same number of micro-batches, all of one size. False: some
            copies may have one sequence more, for which the others wait, and a last micro-batch may be smaller.

    Raises:
        NotCalibrated: no calibration models the instance.
    """
    constants = calibration_of(cluster.instance).constants
    best: dict[tuple[int, int], tuple[float, Training]] = {}
    candidates = fitting = 0
    least: Training | None = None
    least_bytes = math.inf
    for with_microbatch, batches in _settings(job, cluster, whole):
        candidates += len(batches)
        for microbatch in batches:
            training = with_microbatch(microbatch=microbatch)
            need = memory_need(training, cluster.instance)
            if not need.fits:  # a larger micro-batch does not fit either
                if need.needed_bytes < least_bytes:
                    least, least_bytes = training, need.needed_bytes
                break
            fitting += 1
            seconds = training_step(training, cluster.instance, constants, cluster.count).total_s
            split = training.tensor_parallel, training.pipeline_parallel
            if split not in best or seconds < best[split][0]:
                best[split] = seconds, training
    ordered = sorted(best.items(), key=lambda item: (item[1][0], item[0]))
    return Searched(tuple(found for _, found in ordered), candidates, fitting, least)


def _settings(
    job: OpenSplit, cluster: Cluster, whole: bool
) -> Iterator[tuple[partial[Training], Sequence[int]]]:
    """Settings that lack only the micro-batch, each with the micro-batches to try, smallest first."""
    instance = cluster.instance
    for tensor in _tensor_degrees(job, instance):
        for stages in _fixed_or(job.pipeline_parallel, _stages(job.architecture)):
            copies, rest = divmod(cluster.workers, tensor * stages)
            if rest or job.global_batch < copies:
                continue
            each = math.ceil(job.global_batch / copies)
            even = each * copies == job.global_batch and each % (job.microbatch or 1) == 0
            batches = _microbatches(job, instance, each, stages, even) if even or not whole else ()
            if not batches:
                continue
            for zero in _zero_stages(job, instance, copies, tensor, stages):
                split = job.split(instance, copies, tensor, stages, zero)
                for recompute in _recomputations(job, split, instance):
                    yield partial(split, global_batch=each * copies, recompute=recompute), batches


def _recomputations(
    job: OpenSplit, split: partial[Training], instance: InstanceType
) -> tuple[Recompute, ...]:
    """Recomputations to try: the given one; else the least that libraries do, and full."""
    if job.recompute is not None:
        return (job.recompute,)
    return usual_recompute(split.keywords["tensor_parallel"], split.keywords["attention"], instance), "full"


def _tensor_degrees(job: OpenSplit, instance: InstanceType) -> list[int]:
    heads, cores = job.architecture.attention_heads, instance.core_count
    usual: Sequence[int] = divisors(cores)
    if instance.is_neuron and not instance.from_specification:
        key = instance.calibration
        for rows in (rows_of(key), (*rows_of(key), *elsewhere(key))):
            usual = sorted({cores, *(row.training.tensor_parallel for row in rows)})
            if any(heads % degree == 0 for degree in usual if degree > 1):
                break
    degrees = _fixed_or(job.tensor_parallel, usual)
    return [degree for degree in degrees if heads % degree == 0 and cores % degree == 0]


def _stages(model: Architecture) -> tuple[int, ...]:
    """Numbers of stages that make all stages equal, also with embedding and head as one layer each."""
    with_ends = (count for count in divisors(model.layers + 2) if count <= model.layers)
    return tuple(sorted({*divisors(model.layers), *with_ends}))


def _microbatches(
    job: OpenSplit, instance: InstanceType, sequences: int, stages: int, even: bool
) -> tuple[int, ...]:
    """Micro-batches to try for one copy's ``sequences``, at least as many as stages. ``even``: only divisors."""
    most = max(1, most_tokens(calibration_of(instance)) // job.sequence_length)
    powers = (2**doubled for doubled in range(sequences.bit_length()))
    free = [size for size in (divisors(sequences) if even else powers) if size <= most]
    sizes = _fixed_or(job.microbatch, free)
    return tuple(size for size in sizes if size <= sequences and math.ceil(sequences / size) >= stages)


def _zero_stages(
    job: OpenSplit, instance: InstanceType, copies: int, tensor: int, stages: int
) -> tuple[ZeroStage, ...]:
    if job.zero is not None:
        return (job.zero,)
    if copies == 1:
        return ("none",)
    if instance.is_neuron:
        return ("none", "optimizer") if tensor * stages == 1 else ("optimizer",)
    return ("optimizer", "full") if stages == 1 else ("optimizer",)


def _fixed_or(fixed: int | None, free: Sequence[int]) -> Sequence[int]:
    return free if fixed is None else (fixed,)


def batch_that_divides(batch: float, workers: int) -> int:
    """The nearest batch with the same whole number of sequences on each worker."""
    return max(1, round(batch / workers)) * workers


def must_divide_heads(tensor_parallel: int | None, model: Architecture) -> None:
    """Raise InvalidInput if ``tensor_parallel`` does not divide the attention heads; the message has what does."""
    _must_divide("tensor_parallel", tensor_parallel, model.attention_heads, "attention heads")


def _must_divide(name: str, fixed: int | None, whole_of: float, what: str) -> None:
    if fixed is None or not whole_of % fixed:
        return
    valid = tuple(map(str, divisors(int(whole_of))))
    raise InvalidInput(
        f"{name} {fixed} does not divide the {whole_of:,.0f} {what}; "
        f"{', '.join(valid[:12])}{', ...' if len(valid) > 12 else ''} do"
    )


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, smallest first."""
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))
