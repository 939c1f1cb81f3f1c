"""One training step as a rehearsal counted it, read from its counters.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..calibration.calibrations import calibration_of, check_range
from ..errors import InvalidCounters, InvalidInput
from ..instances import InstanceType, instance_type
from ..model import fixed_costs
from ..model.collectives import Collective
from ..model.compile_time import CompiledGraph
from ..model.counted_step import StepTime, StepWork, step_time
from ..model.described_as_counted import ATTENTION_PRODUCTS
from ..model.engines import Product, Scores
from ..model.host_recording import HOST_SPEED, HostWork
from ..model.intervals import RangeCheck
from ..model.precision import BF16_AUTOCAST, FP32, TF32, Precision
from ..model.training_settings import DTYPE_BYTES, OPTIMIZER_BYTES, Training
from .full_scale import FullScale, shown
from .workload import MOST_INSTANCES, BatchRule, Cluster, Run, Workload

SCHEMA = "windtunnel.counters/1"
MOST_COUNTED = 1e30
"""Of anything: the largest training runs have some 1e26 FLOPs. It keeps sums in the range of numbers."""
MOST_GRAPHS = 1_000_000
"""Assumption: a job that compiles one a second does so for 11 days."""
GRADIENT_BYTES = 4  # a rehearsal reduces gradients in fp32

GPU_PRECISIONS = (TF32, FP32, BF16_AUTOCAST)
"""The first is the one shown; the others tell how much the script's setting matters."""

STATE_BYTES_PER_PARAMETER = 5 * 4 + OPTIMIZER_BYTES
"""Traffic of one parameter in one fp32 step, whatever the batch, as the counters count it.

The weight is an operand of two products (forward, backward), its gradient the
result of one; both pass the graph's edge once more (5 x 4 bytes). Adam takes
weight, gradient and two moments in and puts weight and moments out (7 x 4 bytes).
"""


@dataclass(frozen=True)
class CountedWorkload(Workload):
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
        """Exactly what was rehearsed."""
        return FullScale(train_samples=max(1, self.samples), evaluation_samples=self.evaluation_samples)

    def batches(self, clusters: Sequence[Cluster], rule: BatchRule) -> tuple[float, ...]:
        """From the rehearsed samples a worker; the reference is the largest Neuron cluster."""
        kept = [self.step.samples * cluster.workers for cluster in clusters]
        neuron = [cluster.workers for cluster in clusters if cluster.instance.is_neuron]
        own = Cluster(instance_type(self.instance_type), min(cluster.count for cluster in clusters))
        reference = self.step.samples * max(neuron or [own.workers])
        if rule == "global":
            return (reference,) * len(kept)
        if rule == "per_device":
            return tuple(kept)
        return tuple(
            batch if cluster.instance.is_neuron else max(reference, cluster.workers)
            for batch, cluster in zip(kept, clusters, strict=True)
        )

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

        Where the host records longer than the device works, the interval has the host's speed in it too.
        """
        values = {
            "model size": self.parameters,
            "sequence length": full_scale.sequence_length,
            "work of a step": math.fsum(self.at(run.samples_per_worker, run.precision).flops.values()),
        }
        recorded = self.step.host is not None
        check = check_range(calibration_of(run.instance), values, recorded=recorded)
        if not (recorded and run.instance.is_neuron):
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

    def settled(self, run: Run) -> Workload:  # noqa: ARG002
        """Nothing is left open."""
        return self

    @classmethod
    def from_counters(cls, counters: Mapping[str, Any]) -> CountedWorkload:
        """Read ``counters.json`` (schema ``windtunnel.counters/1``).

        Raises:
            InvalidCounters: wrong schema, a missing or impossible field (named), no training step,
                or no samples in it.
        """
        if counters.get("schema") != SCHEMA:
            raise InvalidCounters(
                f"counters have schema {counters.get('schema')!r}; this version reads {SCHEMA!r}"
            )
        if counters.get("train") is None:
            raise InvalidCounters(
                "the job ran no training step on the device, so there is nothing to model. "
                "Does the script move its model to the xla device and step an optimizer?"
            )
        train = _mapping(counters, "counters", "train")
        steps = _number(train, "train", "steps", least=1)
        samples_per_step = _number(train, "train", "samples_per_step_per_core")
        if samples_per_step == 0:
            raise InvalidCounters(
                "the counters know no samples per step: no training step took its batch from MpDeviceLoader. "
                "Wrap the loader in torch_xla.distributed.parallel_loader.MpDeviceLoader, and let no mark_step "
                "stand between a batch and its backward()."
            )
        world_size = _number(counters, "counters", "world_size", least=1)
        step = _step(train, "train", steps, samples_per_step, world_size)
        if not sum(step.flops.values()) > 0:
            raise InvalidCounters(
                "the counters hold no FLOPs: graphs are not counted while PT_XLA_DEBUG is set. "
                "Run without it."
            )
        other = None if counters.get("other") is None else _mapping(counters, "counters", "other")
        evaluation, evaluation_samples = _evaluation(other, world_size) if other else (None, 0)
        graphs = _mapping(counters, "counters", "graphs")
        return cls(
            instance_type=instance_type(_text(counters, "instance_type")).name,
            instance_count=int(_number(counters, "counters", "instance_count", least=1, most=MOST_INSTANCES)),
            cores_used=int(_number(counters, "counters", "cores_used", least=1)),
            step=step,
            steps=int(steps),
            samples=int(_number(train, "train", "samples")),
            evaluation=evaluation,
            evaluation_samples=evaluation_samples,
            parameters=_parameters(counters, step),
            graphs=int(_number(graphs, "graphs", "count")),
            compiled=_compiled(graphs),
        )


def _evaluation(other: Mapping[str, Any], world_size: float) -> tuple[StepWork | None, int]:
    steps = _number(other, "other", "steps")
    samples = _number(other, "other", "samples")
    per_core = samples / world_size
    if steps == 0 or samples < 1:
        return None, 0
    # One step with all its samples: flops and bytes a sample.
    work = _step(other, "other", per_core, 1.0, world_size, backward=False)
    return replace(work, collectives=(), host=None), int(samples)


def _step(
    part: Mapping[str, Any],
    where: str,
    steps: float,
    samples: float,
    world_size: float,
    *,
    backward: bool = True,
) -> StepWork:
    flops = _mapping(part, where, "flops")
    collectives = _mapping(part, where, "collectives")
    work = StepWork(
        samples=samples,
        flops={dtype: _number(flops, f"{where}.flops", dtype) / steps for dtype in flops},
        bytes_moved=_number(part, where, "bytes_accessed") / steps,
        collectives=tuple(
            _collective(kind, _mapping(collectives, f"{where}.collectives", kind), steps, world_size)
            for kind in sorted(collectives)
        ),
        backward=backward,
        host=_host(part, where),
    )
    return work if part.get("work") is None else _with_shapes(work, part, where, steps)


def _with_shapes(work: StepWork, part: Mapping[str, Any], where: str, steps: float) -> StepWork:
    """What counters of this version tell besides: dimensions of products, fused element-wise work."""
    counted, where = _mapping(part, where, "work"), f"{where}.work"
    products: dict[str, list[Product]] = {}
    listed_products = counted.get("products")
    if not isinstance(listed_products, list | tuple | None):
        raise InvalidCounters(f"{where}.products must be a list, not {listed_products!r:.80}")
    for entry in listed_products or ():
        dtype, product = _product(entry, where, steps)
        products.setdefault(dtype, []).append(product)
    elementwise = _mapping(counted, where, "elementwise")
    activations = _mapping(elementwise, f"{where}.elementwise", "activations")
    moved = _number(activations, f"{where}.elementwise.activations", "fused_bytes")
    moved += _number(counted, where, "gather_bytes") + _number(counted, where, "scatter_bytes")
    found = [item for listed in products.values() for item in listed]
    batched = [dtype for dtype, listed in products.items() if any(item.batched for item in listed)]
    return replace(
        work,
        products={dtype: tuple(listed) for dtype, listed in products.items()},
        fused_bytes=moved / steps,
        scores=Scores.of(found, ATTENTION_PRODUCTS if work.backward else ATTENTION_PRODUCTS // 3),
        score_bytes=max((DTYPE_BYTES.get(dtype, 4) for dtype in batched), default=4),
    )


def _product(entry: object, where: str, steps: float) -> tuple[str, Product]:
    """``[batch, rows, inner, columns, dtype, times]``."""
    if not isinstance(entry, Sequence) or len(entry) != 6 or not isinstance(entry[4], str):
        raise InvalidCounters(
            f"{where}.products holds lists of batch, rows, inner, columns, dtype, times; not {entry!r:.80}"
        )
    named = dict(zip(("batch", "rows", "inner", "columns", "dtype", "times"), entry, strict=True))
    batch, rows, inner, columns, times = (
        _number(named, f"{where}.products", key, least=1e-9)
        for key in ("batch", "rows", "inner", "columns", "times")
    )
    return entry[4], Product(rows, inner, columns, batch * times / steps, batched=batch > 1)


def _host(part: Mapping[str, Any], where: str) -> HostWork | None:
    if part.get("least_trace_seconds") is None:
        return None
    steps = _number(part, where, "steps", least=1)
    reads = _number(part, where, "steps_with_host_reads") if "steps_with_host_reads" in part else 0.0
    return HostWork(_number(part, where, "least_trace_seconds"), min(1.0, reads / steps))


def _collective(kind: str, counted: Mapping[str, Any], steps: float, world_size: float) -> Collective:
    where = f"collectives.{kind}"
    payload = _number(counted, where, "bytes") / steps
    if kind == "all_gather":  # counted is one worker's shard; the model wants the gathered whole
        payload *= world_size
    return Collective(kind, _number(counted, where, "count") / steps, payload)


def _compiled(graphs: Mapping[str, Any]) -> tuple[CompiledGraph, ...] | None:
    """The graphs of the ledger, and those it left out as graphs without arithmetic: it leaves out the smallest."""
    ledger = graphs.get("ledger")
    if not isinstance(ledger, Sequence) or isinstance(ledger, str):
        return None
    listed = []
    for entry in ledger:
        if not isinstance(entry, Mapping):
            raise InvalidCounters(f"graphs.ledger must hold objects, not {entry!r:.80}")
        flops = _mapping(entry, "graphs.ledger", "flops") if entry.get("flops") is not None else {}
        total = math.fsum(_number(flops, "graphs.ledger.flops", dtype) for dtype in flops)
        listed.append(CompiledGraph(total, entry.get("cached") is True))
    left_out = max(0, int(_number(graphs, "graphs", "count", most=MOST_GRAPHS)) - len(listed))
    told = 0.0 if graphs.get("cached") is None else _number(graphs, "graphs", "cached")
    cached = min(left_out, max(0, int(told) - sum(graph.cached for graph in listed)))
    return (*listed, *[CompiledGraph(0.0, True)] * cached, *[CompiledGraph(0.0)] * (left_out - cached))


def _parameters(counters: Mapping[str, Any], step: StepWork) -> float | None:
    """As the optimizers told; in counters of earlier versions, as the reduction of gradients did."""
    if counters.get("parameters") is not None:
        held = _mapping(counters, "counters", "parameters")
        return _number(held, "parameters", "count") or None
    reduced = [
        item.payload_bytes for item in step.collectives if item.kind in ("all_reduce", "reduce_scatter")
    ]
    return max(reduced) / GRADIENT_BYTES if reduced and max(reduced) > 0 else None


def _number(
    mapping: Mapping[str, Any], where: str, key: str, least: float = 0.0, most: float = MOST_COUNTED
) -> float:
    value = mapping.get(key)
    # Comparing takes whole numbers that no float holds; NaN is neither above nor below.
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        too_large = isinstance(value, int | float) and value > most
        limit = f"{least:g} to {most:g}" if too_large else f"{least:g} or more"
        raise InvalidCounters(f"{where}.{key} must be a number of {limit}, not {shown(value)}")
    return float(value)


def _mapping(mapping: Mapping[str, Any], where: str, key: str) -> Mapping[str, Any]:
    value = mapping.get(key)
    if not isinstance(value, Mapping):
        raise InvalidCounters(f"{where}.{key} must be an object, not {value!r:.80}")
    return value


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidCounters(f"counters.{key} must be a text, not {value!r:.80}")
    return value
