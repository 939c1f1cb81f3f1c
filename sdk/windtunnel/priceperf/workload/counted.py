"""One training step as a rehearsal counted it, read from its counters.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..calibration.calibrations import calibration_of, check_range
from ..errors import InvalidCounters, InvalidInput
from ..instances import InstanceType, instance_type
from ..model import fixed_costs
from ..model.collectives import Collective
from ..model.compile_time import CompiledGraph
from ..model.counted_step import StepWork, step_time
from ..model.described_as_counted import ATTENTION_PRODUCTS
from ..model.engines import Product, Scores
from ..model.host_tracing import HOST_SPEED, HostWork
from ..model.intervals import RangeCheck
from ..model.precision import GPU_PRECISIONS, Precision
from ..model.step_time import StepTime
from ..model.training_settings import DTYPE_BYTES, OPTIMIZER_BYTES, Training
from .cluster import BatchRule, Cluster, Run, stated_batch
from .counters import Collectives, Counters, Graphs, Steps, Work
from .found_scale import found_scale
from .full_scale import FullScale

GRADIENT_BYTES = 4  # a rehearsal reduces gradients in fp32

STATE_BYTES_PER_PARAMETER = 5 * 4 + OPTIMIZER_BYTES
"""Traffic of one parameter in one fp32 step, whatever the batch, as the counters count it.

The weight is an operand of two products (forward, backward), its gradient the
result of one; both pass the graph's edge once more (5 x 4 bytes). Adam takes
weight, gradient and two moments in and puts weight and moments out (7 x 4 bytes).
"""


_Self = TypeVar("_Self", bound="Counted")


@dataclass(frozen=True)
class Counted:
    """One worker's training step as a rehearsal counted it, and what else the job ran.

    ``evaluation``: one step without optimizer, scaled to one sample; None when there was none.
    ``parameters``: of the model; None when neither an optimizer nor a reduction of gradients told them.
    ``compiled``: each graph; None when the counters do not list them.
    """

    instance_type: str
    instance_count: int
    cores_used: int
    step: StepWork
    steps: int
    samples: int
    evaluation: StepWork | None
    evaluation_samples: int
    parameters: float | None
    graphs: int
    compiled: tuple[CompiledGraph, ...] | None = None
    found: FullScale | str | None = None
    """Of a short rehearsal: the size of the whole job, or why it cannot be told."""

    @property
    def state_bytes(self) -> float:
        """The part of a step's bytes that does not grow with the batch."""
        return min(self.step.bytes_moved, (self.parameters or 0.0) * STATE_BYTES_PER_PARAMETER)

    def at(self, samples: float, precision: Precision) -> StepWork:
        """The same step with another batch on one worker.

        FLOPs and activation bytes grow with the batch; weights, gradients and
        what is reduced do not.
        """
        if not samples > 0:
            raise InvalidInput(f"a worker needs more than 0 samples a step, not {samples}")
        scale = samples / self.step.samples
        activations = (self.step.bytes_moved - self.state_bytes) * precision.activation_bytes
        return replace(
            self.step.scaled(scale, precision.activation_bytes),
            bytes_moved=self.state_bytes + activations * scale,
            state_bytes=self.state_bytes,
        )

    def evaluation_at(self, samples: float, precision: Precision) -> StepWork:
        """One forward step with ``samples`` on one worker.

        From the rehearsal's own evaluation, or a third of a training step where it had none.
        """
        if self.evaluation is not None:
            return self.evaluation.scaled(samples, precision.activation_bytes)
        forward = replace(self.step, bytes_moved=self.step.bytes_moved - self.state_bytes, collectives=())
        share = samples / self.step.samples
        return replace(
            forward.scaled(share / 3, precision.activation_bytes),
            scores=forward.scores * share,  # as many, gone through a third as often
            backward=False,
        )

    @property
    def weights(self) -> float | None:
        """As counted: see `parameters`."""
        return self.parameters

    @property
    def tokens_per_sample(self) -> int | None:
        """Not counted: see `FullScale.sequence_length`."""
        return None

    @property
    def default_count(self) -> int:
        """As many as were rehearsed."""
        return self.instance_count

    def full_scale(self) -> FullScale:
        """What a short rehearsal found; else exactly what was rehearsed."""
        if isinstance(self.found, FullScale):
            return self.found
        return FullScale(train_samples=max(1, self.samples), evaluation_samples=self.evaluation_samples)

    def batch(self, cluster: Cluster, rule: BatchRule, count: int) -> float:
        """From the rehearsed samples a worker; the job's own batch is that of the instance that it asked for."""
        stated = stated_batch(rule, cluster.workers)
        if stated is not None:
            return stated
        kept = self.step.samples * cluster.workers
        own = self.step.samples * Cluster(instance_type(self.instance_type), count).workers
        if rule == "global":
            return own
        return kept if rule == "per_device" or cluster.instance.is_neuron else max(own, kept)

    def precisions(self, instance: InstanceType, on_trn1: Precision) -> tuple[Precision, ...]:
        """A rehearsed script is one for trn1; on a GPU its products run as one line of it says."""
        return (on_trn1,) if instance.is_neuron else GPU_PRECISIONS

    def train_step(self, run: Run) -> StepTime:
        """The counted step with the batch's samples on each worker.

        Raises:
            InvalidInput: less than one sample a worker.
        """
        return self._train_step(run, HOST_SPEED.value)

    def _train_step(self, run: Run, host_slowness: float) -> StepTime:
        if run.samples_per_worker < min(1.0, self.step.samples):
            raise InvalidInput(
                f"a global batch of {run.batch:g} is less than one sample for each of the "
                f"{run.cluster.workers} workers of {run.cluster}"
            )
        work = self.at(run.samples_per_worker, run.precision)
        constants = calibration_of(run.instance).constants
        return step_time(work, run.instance, run.precision, constants, run.cluster.count, host_slowness)

    def evaluation_step(self, run: Run) -> StepTime:
        """The counted forward step."""
        work = self.evaluation_at(run.samples_per_worker, run.precision)
        return step_time(work, run.instance, run.precision, calibration_of(run.instance).constants)

    def range_check(self, run: Run, full_scale: FullScale) -> RangeCheck:
        """Against the data-parallel rows; the interval is that of rows predicted from counts.

        Where the host traces longer than the device works, the interval has the host's speed in it too.
        """
        values = {
            "model size": self.parameters,
            "sequence length": full_scale.sequence_length,
            "work of a step": math.fsum(self.at(run.samples_per_worker, run.precision).flops.values()),
        }
        traced = self.step.host is not None
        check = check_range(
            calibration_of(run.instance),
            values,
            traced=traced,
            from_specification=run.instance.from_specification,
        )
        if not (traced and run.instance.is_neuron):
            return check
        middle = self.train_step(run).total_s
        slow = math.log(self._train_step(run, HOST_SPEED.high).total_s / middle)
        fast = math.log(middle / self._train_step(run, HOST_SPEED.low).total_s)
        return replace(
            check,
            log_fast=math.hypot(check.log_fast, fast),
            log_slow=math.hypot(check.log_slow, slow),
        )

    def compilation(self, run: Run, full_scale: FullScale) -> fixed_costs.FixedCost:
        """Of the graphs that the rehearsal counted."""
        evaluates = full_scale.evaluation_samples > 0
        return fixed_costs.compilation(
            run.instance, self.graphs, evaluates, full_scale.compile_cached, self.compiled
        )

    def description(self, run: Run) -> Training | None:  # noqa: ARG002
        """Counts tell products, not the architecture behind them."""
        return None

    def settled(self: _Self, run: Run) -> _Self:  # noqa: ARG002
        """Nothing is left open."""
        return self

    @classmethod
    def from_counters(cls: type[_Self], counters: Mapping[str, Any] | Counters) -> _Self:
        """From a ``counters.json``, or what was read from one.

        Raises:
            InvalidCounters: wrong schema, a missing or impossible member (named), no training step,
                or no samples in it.
        """
        told = counters if isinstance(counters, Counters) else Counters.read(counters)
        train, world_size = told.train, told.world_size
        if train is None:
            raise InvalidCounters(
                "the job ran no training step on the device, so there is nothing to model. "
                "Does the script move its model to the xla device and step an optimizer?"
            )
        if train.samples_per_step_per_core == 0:
            raise InvalidCounters(
                "the counters know no samples per step: no training step took its batch from a DataLoader. "
                "Iterate over a torch DataLoader, best inside torch_xla.distributed.parallel_loader.MpDeviceLoader, "
                "and let no mark_step stand between a batch and its backward()."
            )
        if world_size is None or told.cores_used is None:
            missing = "world_size" if world_size is None else "cores_used"
            raise InvalidCounters(f"counters.{missing} is missing: no core told that it started")
        step = _step(train, train.steps, train.samples_per_step_per_core, world_size)
        if not sum(step.flops.values()) > 0:
            raise InvalidCounters(
                "the counters hold no FLOPs: graphs are not counted while PT_XLA_DEBUG is set. "
                "Run without it."
            )
        evaluation, evaluation_samples = _evaluation(told.other, world_size) if told.other else (None, 0)
        return cls(
            instance_type=instance_type(told.instance_type).name,
            instance_count=told.instance_count,
            cores_used=told.cores_used,
            step=step,
            steps=train.steps,
            samples=train.samples,
            evaluation=evaluation,
            evaluation_samples=evaluation_samples,
            parameters=_parameters(told, step),
            graphs=told.graphs.count,
            compiled=_compiled(told.graphs),
            found=_found(told, world_size),
        )


def _found(told: Counters, world_size: int) -> FullScale | str | None:
    if told.input is None or told.input.rehearsed_steps is None:
        return None
    workers = Cluster(instance_type(told.instance_type), told.instance_count).workers
    return found_scale(told.input, world_size, workers)


def _evaluation(other: Steps, world_size: int) -> tuple[StepWork | None, int]:
    if other.samples < 1:
        return None, 0
    # One step with all its samples: flops and bytes a sample.
    work = _step(other, other.samples / world_size, 1.0, world_size, backward=False)
    return replace(work, collectives=(), host=None), other.samples


def _step(part: Steps, steps: float, samples: float, world_size: int, *, backward: bool = True) -> StepWork:
    work = StepWork(
        samples=samples,
        flops={dtype: count / steps for dtype, count in part.flops.items()},
        bytes_moved=part.bytes_accessed / steps,
        collectives=tuple(
            _collective(kind, part.collectives[kind], steps, world_size) for kind in sorted(part.collectives)
        ),
        backward=backward,
        host=_host(part),
    )
    return work if part.work is None else _with_shapes(work, part.work, steps)


def _with_shapes(work: StepWork, counted: Work, steps: float) -> StepWork:
    """What counters of this version tell besides: dimensions of products, fused element-wise work."""
    products: dict[str, list[Product]] = {}
    for batch, rows, inner, columns, dtype, times in counted.products:
        product = Product(rows, inner, columns, batch * times / steps, batched=batch > 1)
        products.setdefault(dtype, []).append(product)
    moved = counted.elementwise.activations.fused_bytes + counted.gather_bytes + counted.scatter_bytes
    found = [item for listed in products.values() for item in listed]
    batched = [dtype for dtype, listed in products.items() if any(item.batched for item in listed)]
    return replace(
        work,
        products={dtype: tuple(listed) for dtype, listed in products.items()},
        fused_bytes=moved / steps,
        scores=Scores.of(found, ATTENTION_PRODUCTS if work.backward else ATTENTION_PRODUCTS // 3),
        score_bytes=max((DTYPE_BYTES.get(dtype, 4) for dtype in batched), default=4),
    )


def _host(part: Steps) -> HostWork | None:
    if part.least_trace_seconds is None:
        return None
    reads = min(1.0, part.steps_with_host_reads / part.steps)
    return HostWork.measured(part.least_trace_seconds, reads, part.reference_seconds)


def _collective(kind: str, counted: Collectives, steps: float, world_size: int) -> Collective:
    try:
        return Collective.of_counted(kind, counted.count / steps, counted.bytes / steps, world_size)
    except InvalidInput as error:
        raise InvalidCounters(f"collectives.{kind}: {error}") from error


def _compiled(graphs: Graphs) -> tuple[CompiledGraph, ...] | None:
    """The graphs of the ledger, and those it left out as graphs without arithmetic: it leaves out the smallest."""
    if graphs.ledger is None:
        return None
    listed = [CompiledGraph(math.fsum(item.flops.values()), item.cached is True) for item in graphs.ledger]
    left_out = max(0, graphs.count - len(listed))
    cached = min(left_out, max(0, (graphs.cached or 0) - sum(graph.cached for graph in listed)))
    return (*listed, *[CompiledGraph(0.0, True)] * cached, *[CompiledGraph(0.0)] * (left_out - cached))


def _parameters(counters: Counters, step: StepWork) -> float | None:
    """As the optimizers told; in counters of earlier versions, as the reduction of gradients did."""
    if counters.parameters is not None:
        return counters.parameters.count or None
    reduced = [
        item.payload_bytes for item in step.collectives if item.kind in ("all_reduce", "reduce_scatter")
    ]
    return max(reduced) / GRADIENT_BYTES if reduced and max(reduced) > 0 else None
