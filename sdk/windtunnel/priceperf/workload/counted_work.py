"""What counters tell of one core's step, as the work that the model times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import InvalidCounters, InvalidInput
from ..model import plain_script
from ..model.collectives import Collective
from ..model.counted_step import StepWork
from ..model.described_as_counted import ATTENTION_PRODUCTS
from ..model.engines import Product, Scores
from ..model.fused_attention import Fused
from ..model.host_tracing import HostWork
from ..model.training_settings import DTYPE_BYTES
from .counters import Collectives, CountedProduct, Counters, ScaledDotProductAttention, Steps, Work

_GRADIENT_BYTES = 4  # a rehearsal reduces gradients in fp32
_NONE = Collectives(count=0, bytes=0)
FEW_CONVOLUTIONS = 0.1
"""Part of a step's FLOPs: those of patches are 0.01 at most (ViT, Swin, CLIP), of Whisper's spectra 0.03."""


@dataclass(frozen=True)
class Accumulation:
    """Several passes for one optimizer step. ``passes``: how many; the rest is what the last one does beside a pass.

    ``collectives``: of the last one. ``trace_s``: how much longer it traces. ``reads``: the part of the last ones
    in which the script reads a value of the device.
    """

    passes: int
    collectives: tuple[Collective, ...]
    trace_s: float
    reads: float

    def last(self, work: StepWork) -> StepWork:
        """The last pass of an optimizer step, from any other that moves as much."""
        host = work.host and replace(work.host, trace_s=work.host.trace_s + self.trace_s, reads=self.reads)
        return replace(work, collectives=(*work.collectives, *self.collectives), host=host)


def accumulated(
    step: StepWork, train: Steps, world_size: int, optimizer_bytes: float
) -> tuple[StepWork, Accumulation | None]:
    """Of the mean step of a job that accumulates gradients: one pass, and what the last one does beside it.

    ``optimizer_bytes``: what the optimizer moves. Where it steps after each pass the step stays as it is.
    """
    updates = train.updates
    if updates is None:
        return step, None
    steps_each, passes = train.steps / updates.steps, train.passes
    if passes < 2 or not steps_each > 1:
        return step, None
    of_pass, of_last = [], []
    for kind, every in sorted(train.collectives.items()):
        own = updates.collectives.get(kind, _NONE)
        rest = Collectives(count=max(0.0, every.count - own.count), bytes=max(0.0, every.bytes - own.bytes))
        plain = _collective(kind, rest, train.steps - updates.steps, world_size)
        last = _collective(kind, own, updates.steps, world_size)
        more = Collective(
            kind,
            max(0.0, last.times - plain.times),
            max(0.0, last.payload_bytes - plain.payload_bytes),
        )
        of_pass += [plain] if plain.times else []
        of_last += [more] if more.times else []
    moved = max(0.0, step.bytes_moved - optimizer_bytes / steps_each)
    host, longer, reads = _hosts(step.host, train, steps_each)
    of_a_pass = replace(step, bytes_moved=moved, collectives=tuple(of_pass), host=host)
    return of_a_pass, Accumulation(passes, tuple(of_last), longer, reads)


def _hosts(mean: HostWork | None, train: Steps, steps_each: float) -> tuple[HostWork | None, float, float]:
    """Of a pass; how many seconds longer the last one traces; the part of the last ones that read a value."""
    if mean is None or train.updates is None:
        return None, 0.0, 0.0
    found = train.updates.least_trace_seconds or 0.0
    longer = HostWork.measured(found, 0.0, train.reference_seconds).trace_s
    reads = min(1.0, mean.reads * steps_each)
    others = max(0.0, mean.reads * steps_each - reads) / (steps_each - 1)
    of_pass = replace(mean, trace_s=max(0.0, mean.trace_s - longer / steps_each), reads=others)
    return of_pass, longer, reads


def evaluation_of(other: Steps, world_size: int) -> tuple[StepWork | None, int]:
    """A step without optimizer, scaled to one sample, and the samples of all ranks; None without samples."""
    if other.samples < 1:
        return None, 0
    # One step with all its samples: flops and bytes a sample.
    work = step_of(other, other.samples / world_size, 1.0, world_size, backward=False)
    return replace(work, collectives=(), host=None), other.samples


def step_of(
    part: Steps, steps: float, samples: float, world_size: int, *, tensors: float = 0.0, backward: bool = True
) -> StepWork:
    """One worker's mean step, of ``steps`` with ``samples`` each. Raises `InvalidCounters`: a kind of collective.

    ``tensors``: as many are trained.
    """
    work = StepWork(
        samples=samples,
        flops={dtype: count / steps for dtype, count in part.flops.items()},
        bytes_moved=part.bytes_accessed / steps,
        collectives=tuple(
            _collective(kind, part.collectives[kind], steps, world_size) for kind in sorted(part.collectives)
        ),
        backward=backward,
        host=_host(part, tensors),
        repeated=_part(part.repeated.flops, math.fsum(part.flops.values())) if part.repeated else 0.0,
    )
    return work if part.work is None else _with_shapes(work, part.work, steps, part)


def _part(repeated: float, whole: float) -> float:
    return min(repeated / whole, 1.0) if whole > 0 else 0.0


def _with_shapes(work: StepWork, counted: Work, steps: float, part: Steps) -> StepWork:
    """What counters of this version tell besides: dimensions of products, fused element-wise work.

    As many steps as ``part`` has made them, whatever a step of ``work`` is.
    """
    products: dict[str, list[Product]] = {}
    convolutions = {item[:-1]: item[-1] for item in counted.convolutions}
    of_convolutions = math.fsum(map(_flops, counted.convolutions))
    convolved = of_convolutions / (math.fsum(map(_flops, counted.products)) or 1.0)
    of_scores = 0.0
    for item in counted.products:
        batch, rows, inner, columns, dtype, times = item
        several = batch > 1
        # A few without groups are of patches, say: products as any other.
        of_these = convolutions.get(item[:-1], 0.0) if several or convolved >= FEW_CONVOLUTIONS else 0.0
        for counts, is_one in ((min(times, of_these), True), (max(0.0, times - of_these), False)):
            product = Product(rows, inner, columns, batch * counts / steps, several, is_one)
            if counts:
                products.setdefault(dtype, []).append(product)
            of_scores += counts if product.is_of_scores else 0.0
    moved = counted.elementwise.activations.fused_bytes + counted.gather_bytes + counted.scatter_bytes
    found = [item for listed in products.values() for item in listed]
    batched = [dtype for dtype, listed in products.items() if any(item.batched for item in listed)]
    of_attention = ATTENTION_PRODUCTS if work.backward else ATTENTION_PRODUCTS // 3
    # Fewer are something else: the products of pairs, in a recommender.
    scores = Scores.of(found, of_attention) if of_scores >= of_attention * part.steps else Scores()
    return replace(
        work,
        products={dtype: tuple(listed) for dtype, listed in products.items()},
        fused_bytes=moved / steps,
        scores=scores,
        score_bytes=max((DTYPE_BYTES.get(dtype, 4) for dtype in batched), default=4),
        # Attention is counted where the script calls it, and its products as often as they run.
        fused=_fused(counted.sdpa, scores.elements * steps * (1 - work.repeated)),
        repeated_bytes=_part(part.repeated.fused_bytes, moved) if part.repeated else 0.0,
        convolved=convolved,
    )


def _flops(product: CountedProduct) -> float:
    batch, rows, inner, columns, _, times = product
    return 2.0 * batch * rows * inner * columns * times


def _fused(sdpa: ScaledDotProductAttention | None, scores: float) -> Fused:
    """Of a step that computes attention again both count twice, and the products half as much more."""
    if sdpa is None or not (sdpa.scores > 0 and scores > 0):
        return Fused()
    return Fused(min(1.0, sdpa.scores / scores), min(1.0, sdpa.causal_scores / sdpa.scores))


def _host(part: Steps, tensors: float) -> HostWork | None:
    if part.least_trace_seconds is None:
        return None
    reads = min(1.0, part.steps_with_host_reads / part.steps)
    host = HostWork.measured(part.least_trace_seconds, reads, part.reference_seconds)
    if part.launches is None:
        return host
    return replace(host, launch_s=plain_script.launching_s(part.launches, tensors / part.passes))


def _collective(kind: str, counted: Collectives, steps: float, world_size: int) -> Collective:
    try:
        return Collective.of_counted(kind, counted.count / steps, counted.bytes / steps, world_size)
    except InvalidInput as error:
        raise InvalidCounters(f"collectives.{kind}: {error}") from error


def optimized(counters: Counters, step: StepWork) -> float | None:
    """Parameters that optimizers step, as these told; where none did, as the reduction of gradients.

    In a short rehearsal that has to be in each step: DistributedDataParallel reduces once before its first, too.
    """
    if counters.parameters is not None:
        return counters.parameters.count or None
    least = 0 if counters.input is None or counters.input.rehearsed_steps is None else 1
    reduced = [
        item.payload_bytes
        for item in step.collectives
        if item.kind in ("all_reduce", "reduce_scatter") and item.times >= least
    ]
    return max(reduced) / _GRADIENT_BYTES if reduced and max(reduced) > 0 else None
