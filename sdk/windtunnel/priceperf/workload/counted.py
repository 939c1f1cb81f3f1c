"""One training step as a rehearsal counted it, read from its counters.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..calibration.calibrations import calibration_of, check_range
from ..calibration.described_range import widenings
from ..calibration.measured_scripts import Known, speed_of_script
from ..calibration.torch_compile import log_gain
from ..errors import InvalidCounters, InvalidInput
from ..instances import InstanceType, instance_type
from ..model import fixed_costs, plain_script
from ..model.compile_time import CompiledGraph
from ..model.counted_step import StepWork, step_time
from ..model.engines import Constants
from ..model.fused_attention import Fused
from ..model.host_tracing import HOST_SPEED
from ..model.intervals import RangeCheck
from ..model.precision import (
    AUTO_CAST,
    GPU_PRECISIONS,
    NO_CAST,
    Precision,
    auto_cast_to,
    of_script,
    on_neuron,
)
from ..model.step_time import StepTime
from ..model.training_settings import DTYPE_BYTES, OPTIMIZER_BYTES
from .cluster import BatchRule, Cluster, Run, stated_batch
from .counted_graphs import Graphs, compiled_graphs
from .counted_work import FEW_CONVOLUTIONS, Accumulation, accumulated, evaluation_of, optimized, step_of
from .counters import Counters, Parameters
from .found_scale import found_in_short
from .full_scale import FullScale
from .modelled import Modelled
from .not_modelled import check_work, split_over_cores, trained_steps
from .rehearsed import RehearsedJob

_FP32_MATTERS = 0.01
"""Part of a step's FLOPs that must be in fp32 for the precision of fp32 products to matter; autocast leaves less."""

WEIGHT_MOVES = 5
"""How often a pass moves each parameter, for any batch, as the counters count it: the weight is an operand of two
products (forward, backward) and an input of the graph; its gradient is the result of one product and an output of the
graph. The optimizer's step moves `OPTIMIZER_BYTES` more."""
FROZEN_MOVES = 3
"""The same for a parameter that is not trained: without the two moves of the gradient."""


_Self = TypeVar("_Self", bound="Counted")


@dataclass(frozen=True)
class Counted:
    """One worker's training step as a rehearsal counted it, and what else the job ran.

    ``step``: with gradient accumulation one pass, without the work that only the last pass does (`accumulation`).
    ``evaluation``: one step without optimizer, scaled to one sample; None if the job evaluated nothing.
    ``evaluation_samples``: of all workers together; of each, if they do not share them (`evaluation_split`).
    ``parameters``: number in the model; None if neither an optimizer nor a reduction of gradients showed it.
    ``parameter_bytes``: bytes of one parameter in memory. ``peak_bytes``: the most that a core held; inf: not known.
    ``compiled``: every compiled graph; None if the counters do not list them.
    """

    instance_type: str
    instance_count: int
    step: StepWork
    samples: int
    evaluation: StepWork | None
    evaluation_samples: int
    parameters: float | None
    graphs: int
    compiled: tuple[CompiledGraph, ...] | None = None
    found: FullScale | str | None = None
    """After a short rehearsal: the size of the whole job, or why it is not known. None: it was no short rehearsal."""
    parameter_bytes: float = 4.0
    accumulation: Accumulation | None = None
    """What gradient accumulation adds; None: the optimizer steps after each pass."""
    frozen: float = 0.0
    """Parameters that are not trained."""
    own: float | None = None
    """Parameters that one worker's optimizers update (only its own shards, if they are sharded). None: all."""
    as_one_process: bool = False
    """The script runs one process, so it uses one core. The model spreads its work over all cores of the instance."""
    unshared: bool = False
    """No sampler splits the training data between workers, so ``found`` counts the data once for each worker."""
    evaluation_split: bool = True
    """The workers share the evaluation samples; if not, each evaluates all of them."""
    on_neuron: Precision = AUTO_CAST
    """How the Neuron compiler ran fp32 products in the rehearsal."""
    peak_bytes: float = math.inf
    host_known: bool = True
    """See `Workload.host_known`."""

    @property
    def passes(self) -> int:
        """Forward and backward passes of one optimizer step."""
        return 1 if self.accumulation is None else self.accumulation.passes

    @property
    def stepped(self) -> float:
        """Parameters that one worker's optimizers update; 0 if not known."""
        return (self.parameters or 0.0) if self.own is None else self.own

    @property
    def state_bytes(self) -> float:
        """The part of a step's bytes that does not grow with the batch."""
        moves = WEIGHT_MOVES * (self.parameters or 0.0) - (WEIGHT_MOVES - FROZEN_MOVES) * self.frozen
        moved = moves * self.parameter_bytes
        moved += OPTIMIZER_BYTES * self.stepped if self.accumulation is None else 0
        return min(self.step.bytes_moved, moved)

    def at(self, samples: float) -> StepWork:
        """The same step with ``samples`` on one worker.

        FLOPs and activation bytes grow with the batch; the bytes of weights, gradients and
        collectives do not.

        Raises:
            InvalidInput: ``samples`` is not above 0.
        """
        if not samples > 0:
            raise InvalidInput(f"a worker needs more than 0 samples a step, not {samples}")
        scale = samples / self.step.samples
        activations = self.step.bytes_moved - self.state_bytes
        return replace(
            self.step.scaled(scale),
            bytes_moved=self.state_bytes + activations * scale,
            state_bytes=self.state_bytes,
        )

    def evaluation_at(self, samples: float) -> StepWork:
        """One forward step with ``samples`` on one worker.

        Scaled from the rehearsal's own evaluation; without one, a third of a training step.
        """
        if self.evaluation is not None:
            return self.evaluation.scaled(samples)
        forward = replace(self.step, bytes_moved=self.step.bytes_moved - self.state_bytes, collectives=())
        share = samples / self.step.samples
        return replace(
            forward.scaled(share / 3),
            scores=forward.scores * share,  # there are as many scores, read and written a third as often
            backward=False,
        )

    @property
    def is_transformer(self) -> bool:
        """Whether it is a transformer, like all models that the constants are fitted to: it has attention, and at most
        a few convolutions (such as those of patches). Old counters that list no products are taken for a transformer's.
        """
        attends = self.step.scores.elements > 0 or not self.step.products
        return attends and not self.convolves

    @property
    def convolves(self) -> bool:
        """Whether it has more than a few convolutions, which on NeuronCores take most of the products' time."""
        return self.step.convolved >= FEW_CONVOLUTIONS

    @property
    def known_as(self) -> Known:
        """``rehearsed`` for a transformer, ``others`` for another model."""
        return "rehearsed" if self.is_transformer else "others"

    @property
    def weights(self) -> float | None:
        """Number of weights as counted; see ``parameters``."""
        return self.parameters

    @property
    def rehearsed(self) -> RehearsedJob:
        """What was rehearsed, and how large the whole job is."""
        return RehearsedJob(
            self.instance_type,
            self.instance_count,
            self.samples,
            self.evaluation_samples,
            self.found,
            self.as_one_process,
            self.unshared,
            self.evaluation_split,
        )

    def batch(self, cluster: Cluster, rule: BatchRule, count: int) -> float:
        """See `Workload.batch`. It is computed from the rehearsed samples of a worker and an optimizer step."""
        stated = stated_batch(rule, cluster.workers)
        if stated is not None:
            return stated
        of_worker = self.step.samples * self.passes
        kept = of_worker * cluster.workers
        own = of_worker * Cluster(instance_type(self.instance_type), count).workers
        if rule == "global":
            return own
        return kept if rule == "per_device" or cluster.instance.is_neuron else max(own, kept)

    def precisions(self, instance: InstanceType, on_trn1: Precision | None = None) -> tuple[Precision, ...]:
        """See `Workload.precisions`. On a GPU the setting of fp32 products is one line of the script, so all are tried;
        a script with almost no fp32 products has only its own dtype. torch.compile is tried too.
        """
        known = on_neuron(on_trn1 or self.on_neuron) if instance.is_neuron else GPU_PRECISIONS
        flops = self.step.flops
        if flops.get("fp32", 0.0) < _FP32_MATTERS * math.fsum(flops.values()):
            dtype = max(flops, key=lambda one: flops[one])
            known = (
                replace(known[0], name=dtype, meaning=f"products in {dtype}, as in the rehearsed script"),
            )
        return known if instance.is_neuron else of_script(known)

    def modelled(self, run: Run, full_scale: FullScale) -> Modelled:
        """The counted step with the batch's samples on each worker.

        Raises:
            InvalidInput: less than one sample a worker.
        """
        if run.samples_per_worker < min(1.0, self.step.samples):
            raise InvalidInput(
                f"a global batch of {run.batch:g} is less than one sample for each of the "
                f"{run.cluster.workers} workers of {run.cluster}"
            )
        constants = calibration_of(run.instance).constants
        speed = speed_of_script(run.instance, run.cluster.count, self.known_as)
        slower = math.exp(-log_gain() if run.precision.compiled else 0.0) / speed
        step, evaluation = self.step_with(constants, run), None
        if full_scale.evaluation_samples:
            work = self.evaluation_at(run.samples_per_worker)
            evaluation = step_time(work, run.instance, run.precision, constants).times(slower)
        compilation = fixed_costs.compilation(
            run.instance, self.graphs, evaluation is not None, full_scale.compile_cached, self.compiled
        )
        check = self._range_check(run, full_scale, step)
        return Modelled(None, step.times(slower), evaluation, check, compilation)

    def step_with(self, constants: Constants, run: Run, host_slowness: float = HOST_SPEED.value) -> StepTime:
        """The time of the counted step with ``constants``: the calibration's, or those of a fit without some rows."""
        passes = self._passes_of(run)
        work = self.at(run.samples_per_worker / passes)

        def seconds(part: StepWork) -> StepTime:
            return step_time(part, run.instance, run.precision, constants, run.cluster.count, host_slowness)

        optimizer = self.stepped * OPTIMIZER_BYTES
        unfused = (
            0.0 if run.instance.is_neuron else self.stepped * plain_script.OPTIMIZER_BYTES[2] - optimizer
        )
        if self.accumulation is None:
            return seconds(work.moving(unfused))
        if passes > 1:  # accumulating also reads the gradient so far
            work = work.moving(self.stepped * self.parameter_bytes)
        last = self.accumulation.last(work.moving(optimizer + unfused))
        return seconds(work).times(passes - 1).plus(seconds(last))

    def accumulating(self: _Self) -> _Self:
        """The same job with gradient accumulation: a larger batch is split into passes of the rehearsed samples.

        If the script accumulates already, the job stays as it is. Otherwise the time to trace the optimizer alone
        is not known, so each pass is taken to trace as long as the whole step.
        """
        if self.accumulation is not None:
            return self
        optimizer = self.stepped * OPTIMIZER_BYTES
        step = replace(self.step, bytes_moved=max(0.0, self.step.bytes_moved - optimizer), collectives=())
        reads = 0.0 if step.host is None else step.host.reads
        return replace(self, step=step, accumulation=Accumulation(1, self.step.collectives, 0.0, reads))

    def _passes_of(self, run: Run) -> int:
        """Passes of one optimizer step: a NeuronCore keeps the samples of a rehearsed pass, a GPU their number."""
        if self.accumulation is None or not run.instance.is_neuron:
            return self.passes
        return max(1, math.ceil(run.samples_per_worker / self.step.samples - 1e-9))

    def quantities(self, run: Run, full_scale: FullScale) -> dict[str, float | None]:
        """The quantities that are compared with the calibrated ranges, by their names; None: not known."""
        samples = run.samples_per_worker / self._passes_of(run)
        return {
            "model size": self.parameters,
            "sequence length": full_scale.sequence_length,
            "work of a step": math.fsum(self.at(samples).flops.values()),
        }

    def _range_check(self, run: Run, full_scale: FullScale, step: StepTime) -> RangeCheck:
        """Compare the job with the range of the data-parallel rows, and make its interval.

        The interval is that of rows predicted from counts. It is wider by the host's speed, if the host traces or
        launches longer than the device works, and for a model that is no transformer (this part does not grow outside
        the range). On NeuronCores convolutions may be as fast as other products (`engines.CONVOLVED`).
        """
        traced = self.step.host is not None and self.step.host.is_measured
        constants = calibration_of(run.instance).constants
        check = check_range(
            calibration_of(run.instance),
            self.quantities(run, full_scale),
            traced=traced,
            from_specification=run.instance.from_specification or run.fp32_on_neuron,
        )
        other = 0.0 if self.is_transformer else widenings()["other_model"]
        if run.precision.compiled:
            other = math.hypot(other, widenings()["torch_compile"])
        quick = replace(self, step=self.step.as_products()) if run.instance.is_neuron else self
        quickest = quick.step_with(constants, run, HOST_SPEED.low).total_s
        slowest = self.step_with(constants, run, HOST_SPEED.high).total_s
        return check._replace(
            log_fast=math.hypot(check.log_fast, math.log(step.total_s / quickest), other),
            log_slow=math.hypot(check.log_slow, math.log(slowest / step.total_s), other),
        )

    @classmethod
    def from_counters(cls: type[_Self], counters: Mapping[str, Any] | Counters) -> _Self:
        """Create it from the object of a ``counters.json``, or from `Counters` read from one.

        Raises:
            InvalidCounters: wrong schema, a missing or impossible member (named), no training step, no samples in
                it, a short rehearsal in which no optimizer stepped, or a run of neuron_parallel_compile alone.
        """
        if not isinstance(counters, Counters):
            counters = Counters.read(counters)
        train, world_size = trained_steps(counters)
        if counters.cores_of_a_copy > 1:
            raise InvalidCounters(split_over_cores(counters, world_size, "counts alone were asked for"))
        held = counters.parameters
        tensors = (held and held.tensors) or 0.0
        step = step_of(train, train.steps, train.samples_per_step_per_core, world_size, tensors=tensors)
        stepped = optimized(counters, step)
        check_work(counters, train, stepped)
        step, accumulation = accumulated(step, train, world_size, (stepped or 0.0) * OPTIMIZER_BYTES)
        evaluation, evaluation_samples = (
            evaluation_of(counters.other, world_size) if counters.other else (None, 0)
        )
        step, evaluation = _with_sdpa(held, step), evaluation and _with_sdpa(held, evaluation)
        together = counters.input is None or world_size == 1 or counters.input.evaluation_split
        return cls(
            instance_type=instance_type(counters.instance_type).name,
            instance_count=counters.instance_count,
            step=step,
            samples=train.samples,
            evaluation=evaluation,
            evaluation_samples=evaluation_samples // (1 if together else world_size),
            parameters=(held and held.model) or stepped,
            graphs=counters.graphs.count,
            compiled=compiled_graphs(counters.graphs),
            found=found_in_short(counters, world_size),
            parameter_bytes=_bytes_of_one(counters),
            accumulation=accumulation,
            frozen=(held and held.frozen) or 0.0,
            own=stepped,
            as_one_process=counters.as_one_process,
            unshared=counters.input is not None and world_size > 1 and not counters.input.is_shared,
            evaluation_split=together,
            on_neuron=_on_neuron(counters.graphs),
            peak_bytes=counters.device_memory_peak_bytes or math.inf,
            # Counters of earlier versions have neither: what they lack widens the interval.
            host_known=train.trace_seconds is None or train.least_trace_seconds is not None,
        )


def _with_sdpa(held: Parameters | None, step: StepWork) -> StepWork:
    """The same step with scaled dot product attention, if the transformers library would choose it on a GPU."""
    if held is None or not held.sdpa_elsewhere or step.fused.part:
        return step
    return replace(step, fused=Fused(1.0, float(held.is_causal)))


def _on_neuron(graphs: Graphs) -> Precision:
    """How the compiler ran fp32 products; counters of old versions do not say, then auto-cast as in published rows."""
    products = None if graphs.largest is None else graphs.largest.fp32_products
    return NO_CAST if products == NO_CAST.fp32_matmul else auto_cast_to(products)


def _bytes_of_one(counters: Counters) -> float:
    """Bytes of one parameter in memory; those of fp32 if the counters do not say."""
    held = counters.parameters
    if held is None or not held.count or not held.parameter_bytes:
        return DTYPE_BYTES["fp32"]
    return held.parameter_bytes / held.count
