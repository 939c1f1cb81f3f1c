"""A job known by its description: a transformer, its batch, its parallelism and its number formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_args

from ..calibration.calibrations import calibration_of
from ..calibration.described_range import description_check
from ..calibration.left_out import Level, kind_of_run
from ..calibration.neuron_software import parsed_version, unasked_cast
from ..calibration.published_rows import is_fitted
from ..calibration.software import attention_of, software_named, software_on, usual_speed
from ..calibration.software import log_speed as log_speed_of_software
from ..calibration.torch_compile import capped
from ..calibration.versions import log_speed
from ..errors import InvalidInput, quoted
from ..instances import InstanceType, instance_type
from ..model import fixed_costs, plain_script
from ..model.architectures import Architecture
from ..model.compile_time import CompiledGraph
from ..model.described_step import forward_step, training_flops, training_step
from ..model.intervals import RangeCheck
from ..model.lora import Lora
from ..model.memory_need import memory_need
from ..model.precision import GPU_PRECISIONS, Precision, compiled, of_script, on_neuron
from ..model.step_time import StepTime
from ..model.training_settings import DTYPE_BYTES, Attention, Recompute, Training, ZeroStage
from .cluster import BatchRule, Cluster, PerDevice, Run, stated_batch
from .full_scale import LARGEST, FullScale, is_number, is_whole
from .modelled import Modelled
from .rehearsed import RehearsedJob
from .slow_end import log_slower_as_script
from .splits import OpenSplit, as_stated, fastest_of, fastest_that_fits, must_divide_heads

Optimizer = Literal["adamw", "lamb", "sgd"]
GPU_SETTINGS = (
    "microbatch", "tensor_parallel", "pipeline_parallel", "dtype", "matmul_dtype", "recompute", "zero",
    "attention", "gradient_bytes", "software", "network_gbps",
)  # fmt: skip
"""Settings that ``on_gpu`` may change: those of how the job runs, not of what it trains."""
MOMENTS: Mapping[str, int] = {"adamw": 2, "lamb": 2, "sgd": 1}
"""fp32 numbers that each optimizer keeps for a weight; ``sgd`` is with momentum."""
_SMALL = 1e9
"""Weights below which a model is trained as copies. No published row of such a model has tensor or pipeline
parallelism, but a search would find it for them on many instances, and their scripts would have to be rewritten."""

_Self = TypeVar("_Self", bound="Described")


@dataclass(frozen=True)
class Described:
    """A described job. `Workload.transformer` creates it and documents the fields."""

    architecture: Architecture
    microbatch: int | None
    sequence_length: int
    global_batch: int | None
    gradient_accumulation: int | None
    tensor_parallel: int | None
    pipeline_parallel: int | None
    dtype: str
    matmul_dtype: str | None
    optimizer: str
    recompute: Recompute | Literal["auto"]
    zero: ZeroStage | None
    attention: Attention | Literal["auto"]
    parameters: float
    head_part: float
    gradient_bytes: int | None = None
    neuron_version: str | None = None
    software: str | None = None
    network_gbps: float | None = None
    lora: Lora | None = None
    on_gpu: tuple[tuple[str, Any], ...] = ()
    rehearsed: RehearsedJob | None = None
    """The rehearsal that found the description; None: the user gave it."""

    def __post_init__(self) -> None:
        """Check what `Training` does not check."""
        for name in ("microbatch", "sequence_length", "tensor_parallel", "pipeline_parallel",
                     "global_batch", "gradient_accumulation", "gradient_bytes"):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not is_whole(value):
                raise InvalidInput(
                    f"{name} must be a whole number of 1 or more, at most {LARGEST:g}, not {quoted(value)}"
                )
        numbers = [("parameters", 1, LARGEST), ("head_part", 0, 1)]
        if self.network_gbps is not None:
            numbers.append(("network_gbps", 1, 1e5))
        for name, least, most in numbers:
            if not is_number(value := getattr(self, name), least, most):
                raise InvalidInput(f"{name} must be a number from {least} to {most:g}, not {quoted(value)}")
        for name, valid in (
            ("dtype", ("bf16", "fp16", "fp32")),
            ("matmul_dtype", (None, *DTYPE_BYTES)),
            ("optimizer", tuple(MOMENTS)),
            ("recompute", ("auto", *get_args(Recompute))),
            ("zero", (None, *get_args(ZeroStage))),
            ("attention", ("auto", *get_args(Attention))),
        ):
            if getattr(self, name) not in valid:
                words = ", ".join(str(item) for item in valid)
                raise InvalidInput(f"{name} must be one of {words}, not {getattr(self, name)!r}")
        if self.global_batch is not None and self.gradient_accumulation is not None:
            raise InvalidInput(
                "give global_batch or gradient_accumulation, not both: one follows from the other"
            )
        if self.neuron_version is not None:
            parsed_version(self.neuron_version)  # raises if it is no version
        if self.software is not None:
            object.__setattr__(self, "software", software_named(self.software))
        must_divide_heads(self.tensor_parallel, self.architecture)
        if (self.pipeline_parallel or 1) > self.architecture.layers:
            raise InvalidInput(
                f"pipeline_parallel {self.pipeline_parallel} is more than the {self.architecture.layers} layers"
            )

        wrong = [name for name, _ in self.on_gpu if name not in GPU_SETTINGS]
        if wrong:
            raise InvalidInput(f"on_gpu knows {', '.join(GPU_SETTINGS)}, not {', '.join(wrong)}")
        if self.on_gpu:
            self._on_gpus()  # to check these settings now, not when they are first used

    def there(self: _Self, instance: InstanceType) -> _Self:
        """The job with its settings for that instance. A rehearsal's split holds only for its own instance type."""
        job = self
        if self.rehearsed is not None and instance.name != self.rehearsed.instance_type:
            software = self.software if instance.is_neuron else None
            job = replace(
                self,
                tensor_parallel=None,
                pipeline_parallel=None,
                zero=None,
                microbatch=None,
                software=software,
            )
        job = job._on_gpus() if job.on_gpu and not instance.is_neuron else job
        software = software_on(instance, job.software)
        return job if software == job.software else replace(job, software=software)

    def _on_gpus(self: _Self) -> _Self:
        return replace(self, **dict(self.on_gpu), on_gpu=())

    @property
    def weights(self) -> float | None:
        """Number of weights, as given or computed from the architecture."""
        return self.parameters

    @property
    def saved_weights(self) -> float:
        """Number of saved weights: all, or with LoRA only the adapters, as PEFT does."""
        return self.parameters if self.lora is None else self.lora.weights(self.architecture)

    @property
    def tokens_per_sample(self) -> int | None:
        """The sequence length: a sample is one sequence."""
        return self.sequence_length

    def batch(self, cluster: Cluster, rule: BatchRule, count: int) -> float:
        """See `Workload.batch`. Without a described global batch: micro-batch x passes x copies of the model (all
        workers, if the split is open).

        A rehearsed job's global batch grows with ``count``: each instance keeps the same share.

        Raises:
            InvalidInput: the rule needs ``global_batch`` where passes are described or the reverse, nothing gives
                the batch, or the parallelism does not divide the workers.
        """
        copies = self.data_parallel(cluster) if isinstance(rule, PerDevice) else 1
        stated = stated_batch(rule, copies)
        if stated is not None:
            return stated
        if self.rehearsed is not None and self.global_batch is not None:
            ran = Cluster(instance_type(self.rehearsed.instance_type), self.rehearsed.instance_count)
            if rule == "per_device":
                return self.global_batch / self.data_parallel(ran) * self.data_parallel(cluster)
            return max(1.0, self.global_batch * count / ran.count)
        if rule == "per_device" and self.global_batch is not None:
            raise InvalidInput(
                "batch 'per_device' of a job whose global_batch is described: describe it with gradient_accumulation, "
                "or give the samples a worker: PerDevice(32), --batch-per-device 32"
            )
        if rule == "global" and self.global_batch is None:
            raise InvalidInput(
                "batch 'global' of a job whose global batch is not described: give global_batch, or a number: batch=256"
            )
        return float(self.global_batch or self._accumulated(cluster))

    def _accumulated(self, cluster: Cluster) -> int:
        """The global batch: sequences of all passes of all copies of the model."""
        microbatch = self.there(cluster.instance).microbatch
        if microbatch is None:
            one = "the samples of a pass: microbatch=32, --microbatch 32"
            if self.gradient_accumulation is None:
                one = "the samples a worker: PerDevice(32), --batch-per-device 32"
            raise InvalidInput(
                f"nothing says how large a step is: give global_batch (--global-batch 256), or {one}"
            )
        return microbatch * (self.gradient_accumulation or 1) * self.data_parallel(cluster)

    @property
    def is_split_open(self) -> bool:
        """Whether neither tensor nor pipeline parallelism nor ZeRO is stated."""
        return (self.tensor_parallel, self.pipeline_parallel, self.zero) == (None, None, None)

    def data_parallel(self, cluster: Cluster) -> int:
        """Copies of the model on the cluster: workers / (tensor x pipeline parallelism).

        Raises:
            InvalidInput: tensor x pipeline parallelism does not divide the workers.
        """
        job = self.there(cluster.instance)
        tensor, stages = job.tensor_parallel or 1, job.pipeline_parallel or 1
        copy = tensor * stages
        if cluster.workers % copy:
            each = cluster.instance.core_count
            count = math.lcm(copy, each) // each
            raise InvalidInput(
                f"tensor_parallel {tensor} x pipeline_parallel {stages} = {copy} "
                f"workers do not divide the {cluster.workers} {cluster.instance.core_name}s of {cluster}; "
                f"a multiple of {count} instances, or less parallelism, does"
            )
        return cluster.workers // copy

    def precisions(self, instance: InstanceType, on_trn1: Precision | None = None) -> tuple[Precision, ...]:
        """As described; several with fp32 storage and no ``matmul_dtype``: on Neuron the compiler's default first."""
        job = self.there(instance)
        found: tuple[Precision, ...] = (_as_described(job.matmul_dtype or job.dtype, job.dtype),)
        if job.dtype == "fp32" and job.matmul_dtype is None:
            if instance.is_neuron:
                return on_neuron(on_trn1 or unasked_cast(job.neuron_version))
            found = GPU_PRECISIONS
        if instance.is_neuron or not plain_script.is_plain(job.software):
            return found
        return tuple(map(compiled, found)) if plain_script.is_compiled(job.software) else of_script(found)

    def modelled(self, run: Run, full_scale: FullScale) -> Modelled:
        """Predict the step, and what follows from it.

        Raises:
            InvalidInput: as `description`.
        """
        job = self.there(run.instance)
        if run.precision.compiled:
            job = replace(job, software=plain_script.COMPILED)
        training = _split(job, run)
        instance = run.instance.with_network(job.network_gbps)
        count, flops = run.cluster.count, training_flops(training)
        constants = calibration_of(instance).constants
        step, evaluation = training_step(training, instance, constants, count), None
        if full_scale.evaluation_samples:
            evaluation = forward_step(training, step, instance, constants, count)
        software_speed = job._software_speed(run.cluster, training)
        if software_speed and run.precision.compiled:
            tuned = training_step(replace(training, plain=False), instance, constants, count)
            software_speed = capped(software_speed, step.total_s / tuned.total_s)
        speed = software_speed or usual_speed(job.software, instance, count)
        speed *= job._neuron_speed(instance)
        if speed != 1:
            step, evaluation = step.times(1 / speed), evaluation and evaluation.times(1 / speed)
        check = job._range_check(run, training, step, flops, software_speed)
        compilation = _compilation(run, training, flops, full_scale)
        return Modelled(training, step, evaluation, check, compilation, software_speed)

    def _range_check(
        self, run: Run, training: Training, step: StepTime, flops: float, software_speed: float | None
    ) -> RangeCheck:
        """Compare the job with the range of all rows, and choose its interval.

        The interval is that of rows whose source was left out; for plain scripts their own. If it is narrower, that of
        left-out families where constants are fitted to the job's software, or that of new models where the software's
        speed is known. On Neuron, and without known software, the slow end includes a plain script, whose host may be
        slower than the device.
        """
        instance, neuron = run.instance, run.instance.is_neuron
        lacks = ["neuron_version"] if neuron and self.neuron_version is None else []
        lacks += ["specification"] if run.fp32_on_neuron else []
        lacks += ["torch_compile"] if run.precision.compiled else []
        calibration = calibration_of(instance)
        known = self.software is not None and is_fitted(self.software, calibration.key)
        count = run.cluster.count
        usual: Level = "script" if training.plain else "source"
        check = description_check(calibration, training, instance, count, level=usual, lacks=lacks)
        if not training.plain and (known or software_speed is not None):
            level: Level = "family" if known else "software"
            like = description_check(calibration, training, instance, count, level=level, lacks=lacks)
            check = min(check, like, key=lambda found: (not found.inside, found.log_slow))
            if not neuron:
                return check
        log_slower = log_slower_as_script(training, instance, step, flops, calibration.constants, count)
        if not log_slower:
            return check
        return check._replace(log_slow=math.hypot(check.log_slow, log_slower))

    def _neuron_speed(self, instance: InstanceType) -> float:
        """Throughput of the named Neuron version divided by the usual one; 1 if no version is named."""
        version = self.neuron_version if instance.is_neuron else None
        return 1.0 if version is None else math.exp(log_speed(version))

    def _software_speed(self, cluster: Cluster, training: Training) -> float | None:
        kind = kind_of_run(calibration_of(cluster.instance).key, cluster.count)
        speed = log_speed_of_software(self.software, kind, training)
        return None if speed is None else math.exp(speed)


@cache
def _as_described(products: str, dtype: str) -> Precision:
    name = products if products == dtype else f"{products} products, {dtype} storage"
    meaning = f"weights and activations in {dtype}, products in {products}, as described"
    return Precision(name, products, meaning)


def _compilation(run: Run, training: Training, flops: float, full_scale: FullScale) -> fixed_costs.FixedCost:
    """Compile time: one graph for a training pass, and one for evaluation, with a third of the products."""
    if not run.instance.is_neuron:
        return fixed_costs.compilation(run.instance, 0, False, False)
    of_pass = flops / (training.workers * training.microbatches)
    evaluates = full_scale.evaluated > 0
    graphs = (CompiledGraph(of_pass), *([CompiledGraph(of_pass / 3)] if evaluates else []))
    return fixed_costs.compilation(run.instance, len(graphs), evaluates, full_scale.compile_cached, graphs)


def _split(job: Described, run: Run) -> Training:
    """The step, split as described; if nothing of the split is stated, as `_or_split` has it. Raises `InvalidInput`."""
    copies = job.data_parallel(run.cluster)
    training: Training | None = None
    products = run.precision.ran_as("fp32")
    split = OpenSplit(
        architecture=job.architecture,
        parameters=job.parameters,
        sequence_length=job.sequence_length,
        global_batch=run.batch,
        tensor_parallel=job.tensor_parallel,
        pipeline_parallel=job.pipeline_parallel,
        microbatch=job.microbatch,
        recompute=None if job.recompute == "auto" else job.recompute,
        zero=job.zero,
        lora=job.lora,
        storage_dtype=job.dtype,
        matmul_dtype=products,
        mixed_precision=not run.instance.is_neuron and DTYPE_BYTES[products] < DTYPE_BYTES[job.dtype],
        head_part=job.head_part,
        moments=MOMENTS[job.optimizer],
        attention=attention_of(
            job.attention, job.software, run.instance, job.architecture, job.sequence_length
        ),
        gradient_bytes=job.gradient_bytes,
        plain=plain_script.is_plain(job.software) and not run.instance.is_neuron,
    )
    if run.batch >= copies:
        training = as_stated(split, run.cluster)
    if job.is_split_open:
        training = _or_split(training, split, run)
    if training is None:
        raise InvalidInput(
            f"a global batch of {run.batch:g} is less than one sequence for each of {copies} "
            f"data-parallel workers of {run.cluster}; take a larger batch, fewer or smaller instances, or more "
            "parallelism"
        )
    return training


def _or_split(copies: Training | None, split: OpenSplit, run: Run) -> Training | None:
    """``copies`` (data parallelism alone), or the fastest split.

    A small model is taken to be trained as copies where these fit without recomputing all, as its scripts do, even if
    another split would be faster.
    """
    fit = copies is not None and memory_need(copies, run.instance).fits
    if copies and fit and split.parameters < _SMALL and (copies.recompute, split.recompute) != ("full", None):
        return copies
    found = fastest_that_fits(split, run.cluster)
    if found is None or not (copies and fit):
        return found or copies
    return fastest_of((copies, found), run.cluster) if memory_need(found, run.instance).fits else copies
