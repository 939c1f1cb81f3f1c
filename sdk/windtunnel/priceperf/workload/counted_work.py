"""From counters to `StepWork`: the work of one core's step, whose time the model predicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import InvalidCounters
from ..model import plain_script
from ..model.collectives import KINDS, Collective
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
"""Convolutions below this part of a step's FLOPs are few: patches are at most 0.01 (ViT, Swin, CLIP), Whisper 0.03."""


@dataclass(frozen=True)
class Accumulation:
    """Gradient accumulation: ``passes`` for one optimizer step, and what the last pass does more than the others.

    ``collectives``: its own. ``trace_s``: how many seconds longer it takes to trace. ``reads``: the part of the last
    passes, 0 to 1, in which the script reads a value from the device.
    """

    passes: int
    collectives: tuple[Collective, ...]
    trace_s: float
    reads: float

    def last(self, work: StepWork) -> StepWork:
        """The last pass of an optimizer step. ``work``: another pass that moves the same bytes."""
        host = work.host and replace(work.host, trace_s=work.host.trace_s + self.trace_s, reads=self.reads)
        return replace(work, collectives=(*work.collectives, *self.collectives), host=host)


def accumulated(
    step: StepWork, train: Steps, world_size: int, optimizer_bytes: float
) -> tuple[StepWork, Accumulation | None]:
    """Split the mean step of a job that accumulates gradients: one pass, and what the last pass does more.

    ``optimizer_bytes``: moved by one step of the optimizer. If it steps after each pass, the step stays as it is.
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
    """The host's work in a pass; seconds that the last pass traces longer; the part of last passes that read values."""
    if mean is None or train.updates is None:
        return None, 0.0, 0.0
    found = train.updates.least_trace_seconds or 0.0
    longer = HostWork.measured(found, 0.0, train.reference_seconds).trace_s
    reads = min(1.0, mean.reads * steps_each)
    others = max(0.0, mean.reads * steps_each - reads) / (steps_each - 1)
    of_pass = replace(mean, trace_s=max(0.0, mean.trace_s - longer / steps_each), reads=others)
    return of_pass, longer, reads


def evaluation_of(other: Steps, world_size: int) -> tuple[StepWork | None, int]:
    """A step without optimizer, scaled to one sample, and the samples of all ranks; None, 0 if there are no samples."""
    if other.samples < 1:
        return None, 0
    # As many steps as samples of one rank: FLOPs and bytes then are those of one sample.
    work = step_of(other, other.samples / world_size, 1.0, world_size, backward=False)
    return replace(work, collectives=(), host=None), other.samples


def step_of(
    part: Steps, steps: float, samples: float, world_size: int, *, tensors: float = 0.0, backward: bool = True
) -> StepWork:
    """One worker's mean step, of ``steps`` with ``samples`` each. ``tensors``: the number of trained tensors.

    Raises `InvalidCounters` for an unknown kind of collective.
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
    """Add what only newer counters have: dimensions of products, fused element-wise work.

    The sums in ``counted`` are divided by ``steps``; ``part.steps`` steps made them.
    """
    products: dict[str, list[Product]] = {}
    convolutions = {item[:-1]: item[-1] for item in counted.convolutions}
    of_convolutions = math.fsum(map(_flops, counted.convolutions))
    convolved = of_convolutions / (math.fsum(map(_flops, counted.products)) or 1.0)
    of_scores = 0.0
    for item in counted.products:
        batch, rows, inner, columns, dtype, times = item
        several = batch > 1
        # A few convolutions without groups (such as those of patches) run like any other product.
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
    # Fewer batched products than attention has are something else, such as the pairs of a recommender.
    scores = Scores.of(found, of_attention) if of_scores >= of_attention * part.steps else Scores()
    return replace(
        work,
        products={dtype: tuple(listed) for dtype, listed in products.items()},
        fused_bytes=moved / steps,
        scores=scores,
        score_bytes=max((DTYPE_BYTES.get(dtype, 4) for dtype in batched), default=4),
        # Calls of attention are counted once, its products each time they run, so repeated ones are taken out.
        fused=_fused(counted.sdpa, scores.elements * steps * (1 - work.repeated)),
        repeated_bytes=_part(part.repeated.fused_bytes, moved) if part.repeated else 0.0,
        convolved=convolved,
    )


def _flops(product: CountedProduct) -> float:
    batch, rows, inner, columns, _, times = product
    return 2.0 * batch * rows * inner * columns * times


def _fused(sdpa: ScaledDotProductAttention | None, scores: float) -> Fused:
    """The part of the scores in scaled dot product attention. ``scores``: those that the products show.

    If attention is recomputed, calls count twice, but products grow less: so the part is limited to 1.
    """
    if sdpa is None or not (sdpa.scores > 0 and scores > 0):
        return Fused()
    return Fused(min(1.0, sdpa.scores / scores), min(1.0, sdpa.causal_scores / sdpa.scores))


def _host(part: Steps, tensors: float) -> HostWork | None:
    launching = None
    if part.launches is not None:
        launching = plain_script.launching_s(part.launches, tensors / part.passes)
    reads = min(1.0, part.steps_with_host_reads / part.steps)
    if part.least_trace_seconds is not None:
        host = HostWork.measured(part.least_trace_seconds, reads, part.reference_seconds)
        return replace(host, launch_s=launching)
    if launching is None:
        return None
    return HostWork(launching / plain_script.LAUNCH_PER_TRACE, reads, launching, is_measured=False)


def _collective(kind: str, counted: Collectives, steps: float, world_size: int) -> Collective:
    if kind not in KINDS:
        raise InvalidCounters(
            f"collectives.{kind}: no figures for a collective {kind!r}; known are {', '.join(KINDS)}"
        )
    shards = world_size if KINDS[kind].counts_shard else 1
    return Collective(kind, counted.count / steps, counted.bytes / steps * shards)


def optimized(counters: Counters, step: StepWork) -> float | None:
    """Parameters that optimizers update, as counted; if no optimizer was seen, from the reduction of gradients.

    In a short rehearsal the reduction must be in each step: DistributedDataParallel also reduces once at its start.
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
