"""One optimizer step of a job, either counted in a rehearsal or described by its settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ..calibration.measured_scripts import Known
from ..errors import InvalidInput, quoted
from ..instances import InstanceType
from ..model.architectures import Architecture
from ..model.config_json import known_architecture
from ..model.lora import LoraTargets, lora_of
from ..model.precision import Precision
from ..model.training_settings import Attention, Recompute, ZeroStage
from .cluster import BatchRule, Cluster, Run
from .counted import Counted
from .counters import Counters
from .described import Described, Optimizer
from .full_scale import FullScale
from .modelled import Modelled
from .rehearsed import DESCRIBED, RehearsedJob
from .split_job import described
from .stated_model import weights_of


class Workload(ABC):
    """One optimizer step of a job, for any cluster. Create one with `from_counters` or `transformer`."""

    @property
    @abstractmethod
    def rehearsed(self) -> RehearsedJob | None:
        """The rehearsal that the workload comes from; None: the workload was only described."""

    @property
    @abstractmethod
    def weights(self) -> float | None:
        """Number of weights of the model; None: not known."""

    @property
    def saved_weights(self) -> float | None:
        """Number of weights that the script is assumed to save: all of the model's."""
        return self.weights

    @property
    def tokens_per_sample(self) -> int | None:
        """Tokens of one sample; None: not known. Counts do not tell it: see `FullScale.sequence_length`."""
        return None

    @property
    def default_count(self) -> int:
        """Number of instances if the caller gives none: that of the rehearsed job, or 1."""
        return 1 if self.rehearsed is None else self.rehearsed.instance_count

    @property
    def known_as(self) -> Known:
        """Which kind of measured plain script the workload is like (`measured_scripts`)."""
        return "scripts"

    @property
    def unknown_size(self) -> str:
        """Why the rehearsal does not show the whole job's size; empty if it does. The caller must then state a size."""
        return "" if self.rehearsed is None else self.rehearsed.unknown_size

    @property
    def host_known(self) -> bool:
        """Whether the host's part of a step is known: False if the rehearsal ran no training step without compiling."""
        return True

    def full_scale(self) -> FullScale:
        """The size of the whole job as the rehearsal shows it, for a caller who states none.

        Raises:
            InvalidInput: the workload was only described.
        """
        if self.rehearsed is not None:
            return self.rehearsed.full_scale()
        raise InvalidInput(
            "a described workload has no samples of its own: give full_scale=FullScale(train_samples=...), "
            "a sample being one sequence"
        )

    def sized(self, full_scale: FullScale | None) -> FullScale:
        """The size that the caller states, with what the rehearsal tells of it; if None, that of `Workload.full_scale`.

        Raises:
            InvalidInput: ``full_scale`` is something else, or None for a workload that was only described.
        """
        size = full_scale or self.full_scale()
        if not isinstance(size, FullScale):
            raise InvalidInput(f"full_scale is FullScale(train_samples=...) or None, not {quoted(size)}")
        return size.filled(DESCRIBED) if self.rehearsed is None else self.rehearsed.completed(size)

    @abstractmethod
    def batch(self, cluster: Cluster, rule: BatchRule, count: int) -> float:
        """The global batch on a cluster. ``count``: the number of instances of the job itself."""

    @abstractmethod
    def precisions(self, instance: InstanceType, on_trn1: Precision | None = None) -> tuple[Precision, ...]:
        """How the instance can run matrix products: first the precision to show, then those of other settings."""

    @abstractmethod
    def modelled(self, run: Run, full_scale: FullScale) -> Modelled:
        """Model a run: its step, evaluation, interval and compile time.

        Raises:
            InvalidInput: the job cannot run in this way.
        """

    @classmethod
    def from_counters(cls, counters: Mapping[str, Any] | Counters) -> Workload:
        """Read ``counters.json`` (schema ``windtunnel.counters/1``).

        If several cores share one copy of the model, it is modelled by the description that the rehearsal found.

        Raises:
            InvalidCounters: wrong schema, a missing or impossible field (named), no training step,
                or no samples in it.
        """
        if not isinstance(counters, Counters):
            counters = Counters.read(counters)
        if counters.cores_of_a_copy > 1:
            return described(DescribedWorkload, counters)
        return CountedWorkload.from_counters(counters)

    @classmethod
    def transformer(
        cls,
        architecture: str | Architecture | Mapping[str, Any],
        *,
        microbatch: int | None = None,
        sequence_length: int | None = None,
        global_batch: int | None = None,
        gradient_accumulation: int | None = None,
        tensor_parallel: int | None = None,
        pipeline_parallel: int | None = None,
        dtype: Literal["bf16", "fp16", "fp32"] = "bf16",
        matmul_dtype: str | None = None,
        optimizer: Optimizer = "adamw",
        recompute: Recompute | Literal["auto"] = "auto",
        zero: ZeroStage | None = None,
        attention: Attention | Literal["auto"] = "auto",
        parameters: float | None = None,
        head_part: float = 1.0,
        gradient_bytes: int | None = None,
        neuron_version: str | None = None,
        software: str | None = None,
        network_gbps: float | None = None,
        lora_rank: int | None = None,
        lora_targets: LoraTargets | None = None,
        on_gpu: Mapping[str, Any] | None = None,
    ) -> DescribedWorkload:
        """Describe a transformer's training by its settings, for models that are too large to rehearse.

        The degree of data parallelism is the number of workers divided by tensor x pipeline parallelism.

        Args:
            architecture: a name of `ARCHITECTURES`, dimensions, or the configuration of a Hugging Face model: what its
                `config.json` holds, or `AutoConfig.from_pretrained(...).to_dict()`.
            microbatch: sequences of one forward and backward pass on one data-parallel worker; fewer if the global
                batch is too small. None: the fastest that fits the memory (chosen together with ``recompute``), with
                at most as many tokens as a published row has.
            sequence_length: tokens (or patches) of a sequence; None: what models of its family usually have.
            global_batch: sequences of one optimizer step over all workers.
            gradient_accumulation: passes of one optimizer step on each copy of the model, instead of ``global_batch``,
                which then is microbatch x passes x copies. If nothing of the split is stated, each worker counts as
                a copy, also where the split that is found has fewer copies (which make more passes then). Default
                if both are None: 1.
            tensor_parallel: workers that share a layer.
            pipeline_parallel: number of pipeline stages.
            dtype: of weights and activations in memory.
            matmul_dtype: in which matrix products run. None: with 16-bit ``dtype`` the same; with fp32 on Neuron fp32
                (alternative, and up to Neuron 2.26: auto-cast), on GPUs TF32 (alternatives: fp32, bf16 autocast).
            optimizer: ``adamw``, ``lamb`` or ``sgd`` (with momentum). It decides the size of the optimizer's state.
            recompute: ``none``, ``selective``, ``full``; ``auto``: what is fastest and fits the memory, ``full`` or
                the least that libraries recompute: ``none``, with tensor parallelism ``selective`` (but ``none`` on
                GPUs with flash attention).
            zero: what data-parallel workers shard: ``none``, ``optimizer`` (ZeRO-1) or ``full`` (ZeRO-3, FSDP). If
                this, ``tensor_parallel`` and ``pipeline_parallel`` are all None, the job gets the fastest split that
                fits, as `windtunnel.plan` finds it; a model below a billion weights is data-parallel alone, if that
                fits the memory without full recomputation.
            attention: ``eager`` or ``flash``; ``auto``: flash for Llama on trn1, and for all models on GPUs, except
                with ``software`` whose published rows of such models are eager.
            parameters: number of weights, about the architecture's (`weights_of`); None: as many as it has.
            head_part: part of the positions that reach the vocabulary head (masked language models: 0.156).
            gradient_bytes: bytes a parameter in the reduction of gradients; None: those of ``dtype``, with ZeRO-1
                on NeuronCores 4. Some libraries reduce in fp32 (4) what is stored in bf16.
            neuron_version: of the Neuron software on trn1, as ``2.21``: newer ones are faster. None: the usual speed,
                with a wider interval.
            software: the training software, as published rows name it: ``neuronx-distributed``, ``llm-foundry``,
                ``torchtitan``, ... It makes the interval narrower. If no constant is fitted to its rows, they still
                say how much faster or slower than modelled it is (`calibration.software`).
            network_gbps: of one instance, if it is not AWS's: published clusters of A100s have 1600 (InfiniBand).
            lora_rank: rank of the adapters (LoRA) that are trained while the weights are frozen; None: the weights
                are trained. Weights in 4 bits (QLoRA) are not modelled.
            lora_targets: matrices that have adapters: ``attention`` or ``all-linear``; None: ``all-linear``.
            on_gpu: settings that differ on GPUs, by name, as ``{"tensor_parallel": 1, "zero": "full"}``.
                None: GPUs get the same split, which may not be the one that users would choose there.

        Raises:
            InvalidInput: an unknown name or software, a number out of range, heads that tensor parallelism does not
                divide, or both ``global_batch`` and ``gradient_accumulation``.
        """
        model, own = known_architecture(architecture)
        return DescribedWorkload(
            model,
            microbatch,
            model.usual_length if sequence_length is None else sequence_length,
            global_batch=global_batch,
            gradient_accumulation=gradient_accumulation,
            tensor_parallel=tensor_parallel,
            pipeline_parallel=pipeline_parallel,
            dtype=dtype,
            matmul_dtype=matmul_dtype,
            optimizer=optimizer,
            recompute=recompute,
            zero=zero,
            attention=attention,
            parameters=weights_of(own, parameters),
            head_part=head_part,
            gradient_bytes=gradient_bytes,
            neuron_version=neuron_version,
            software=software,
            network_gbps=network_gbps,
            lora=lora_of(lora_rank, lora_targets, model),
            on_gpu=tuple((on_gpu or {}).items()),
        )


class CountedWorkload(Counted, Workload):
    """A workload as a rehearsal counted it."""


class DescribedWorkload(Described, Workload):
    """A workload described by its settings; see `Workload.transformer`."""

    def sized(self, full_scale: FullScale | None) -> FullScale:
        """See `Workload.sized`. The job keeps the sequence length of its description.

        Raises:
            InvalidInput: as `Workload.sized`, or ``full_scale`` states another sequence length.
        """
        size = super().sized(full_scale)
        if size.sequence_length not in (None, self.sequence_length):
            raise InvalidInput(
                f"the job has sequences of {self.sequence_length:,} tokens, and FullScale(sequence_length="
                f"{size.sequence_length}) would leave its step as it is. Price it with those: "
                f"{'Workload.changed' if self.rehearsed else 'Workload.transformer'}(sequence_length=N), windtunnel "
                f"compare {'JOB' if self.rehearsed else '--architecture NAME'} --sequence-length N"
            )
        return size

    def changed(
        self,
        architecture: str | Architecture | Mapping[str, Any] | None = None,
        *,
        lora_rank: int | None = None,
        lora_targets: LoraTargets | None = None,
        on_gpu: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> DescribedWorkload:
        """The same job with another model, or other settings, by their names in `Workload.transformer`.

        For example the large model of a job that was rehearsed with a smaller one. Split, batch and samples stay.

        Raises:
            InvalidInput: as `Workload.transformer`.
        """
        found = dict(settings)
        if architecture is not None:
            found["architecture"], found["parameters"] = known_architecture(architecture)
        if lora_rank is not None or lora_targets is not None:
            found["lora"] = lora_of(lora_rank, lora_targets, found.get("architecture", self.architecture))
        if settings.get("gradient_accumulation") is not None:
            found.setdefault("global_batch", None)  # one follows from the other
        if settings.get("global_batch") is not None:
            found.setdefault("gradient_accumulation", None)
        if on_gpu:
            found["on_gpu"] = tuple(on_gpu.items())
        if self.rehearsed is not None and isinstance(self.rehearsed.found, FullScale):
            size = replace(
                self.rehearsed.found, sequence_length=found.get("sequence_length", self.sequence_length)
            )
            found["rehearsed"] = replace(self.rehearsed, found=size)
        return replace(self, **found)
