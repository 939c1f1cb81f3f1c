"""The description of a training run: the model's dimensions, the batch, the parallelism, the number formats.

`windtunnel validate` predicts published runs from it, and jobs that are too large to rehearse are modelled from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import Literal, get_args

from ..errors import InvalidInput
from .architectures import Architecture
from .lora import Lora

Recompute = Literal["none", "selective", "full"]
Attention = Literal["eager", "flash"]
ZeroStage = Literal["none", "optimizer", "full"]

DTYPE_BYTES: Mapping[str, int] = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4, "fp8": 1}

OPTIMIZER_BYTES = 28
"""Bytes that Adam in fp32 moves for a weight: weight, gradient, two moments in; weight, two moments out. LAMB: about
the same."""

MASKED_PART = 0.156
"""Part of the positions for which NVIDIA's BERT computes the vocabulary head: 20 of 128, 80 of 512."""


_COUNTS = (
    "parameters", "global_batch", "sequence_length", "data_parallel",
    "tensor_parallel", "pipeline_parallel", "gradient_bytes", "interleaved",
)  # fmt: skip
_VALID: Mapping[str, tuple[str, ...]] = {
    "storage_dtype": tuple(DTYPE_BYTES),
    "matmul_dtype": tuple(DTYPE_BYTES),
    "recompute": get_args(Recompute),
    "zero": get_args(ZeroStage),
    "attention": get_args(Attention),
}
_named = attrgetter(*_VALID)
_ALLOWED = frozenset(product(*_VALID.values()))  # one lookup for all names: a search makes very many


@dataclass(frozen=True)
class Training:
    """One optimizer step of a transformer on all its workers.

    Args:
        architecture: dimensions of the model.
        parameters: weights of the whole model, adapters left out.
        microbatch: sequences of one forward and backward pass on one data-parallel worker; their mean if the batch
            does not divide.
        global_batch: sequences of one optimizer step over all workers.
        sequence_length: tokens (or patches) of a sequence.
        data_parallel, tensor_parallel, pipeline_parallel: workers in each direction; their product is
            the number of workers.
        storage_dtype: of weights and activations in memory.
        matmul_dtype: in which products run.
        gradient_bytes: bytes a parameter in the reduction of gradients.
        recompute: what the backward pass computes again: nothing, attention only (``selective``), or the
            whole layer (``full``).
        zero: what data-parallel workers shard: nothing, optimizer state (ZeRO-1), or also weights and
            gradients (``full``: ZeRO-3, FSDP).
        attention: ``eager`` writes the scores to memory, ``flash`` does not.
        mixed_precision: element-wise work runs partly in the products' dtype (torch's AMP). Neuron's
            auto-cast touches products only.
        head_part: part of the positions for which the vocabulary head runs.
        moments: fp32 numbers that the optimizer keeps for each weight: 2 for Adam and LAMB, 1 for SGD with
            momentum.
        interleaved: chunks of each stage in an interleaved pipeline; they make the bubble that many times shorter.
        sequence_parallel: tensor-parallel workers also split norms and residuals, as Megatron-core, NxD and torchtitan
            do. Megatron-LM had it from 2022 on, together with selective recomputation (Korthikanti et al. 2022).
        plain: on a GPU, kernels are launched one by one and the optimizer's are not fused (`plain_script`).
        lora: adapters that are trained while the weights are frozen; None: the weights are trained.

    Raises:
        InvalidInput: a number out of range, an unknown name, or a global batch below one microbatch a worker.
    """

    architecture: Architecture
    parameters: float
    microbatch: float
    global_batch: float
    sequence_length: int
    data_parallel: int
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    storage_dtype: str = "bf16"
    matmul_dtype: str = "bf16"
    gradient_bytes: int = 2
    recompute: Recompute = "none"
    zero: ZeroStage = "none"
    attention: Attention = "eager"
    mixed_precision: bool = False
    head_part: float = 1.0
    moments: int = 2
    interleaved: int = 1
    sequence_parallel: bool = True
    plain: bool = False
    lora: Lora | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        if not (
            self.parameters >= 1 and self.global_batch >= 1 and self.sequence_length >= 1
            and self.data_parallel >= 1 and self.tensor_parallel >= 1 and self.pipeline_parallel >= 1
            and self.gradient_bytes >= 1 and self.interleaved >= 1
        ):  # fmt: skip
            name = next(name for name in _COUNTS if not getattr(self, name) >= 1)
            raise InvalidInput(f"{name} must be 1 or more, not {getattr(self, name)}")
        if not self.microbatch > 0:
            raise InvalidInput(f"microbatch must be above 0, not {self.microbatch}")
        if not self.moments >= 0:
            raise InvalidInput(f"moments must be 0 or more, not {self.moments}")
        if _named(self) not in _ALLOWED:
            name, valid = next(rule for rule in _VALID.items() if getattr(self, rule[0]) not in rule[1])
            raise InvalidInput(f"{name} must be one of {', '.join(valid)}, not {getattr(self, name)!r}")
        if not 0 <= self.head_part <= 1:
            raise InvalidInput(f"head_part must lie between 0 and 1, not {self.head_part}")
        if self.global_batch < self.microbatch * self.data_parallel:
            raise InvalidInput(
                f"a global batch of {self.global_batch} is less than one microbatch of {self.microbatch} "
                f"on each of {self.data_parallel} data-parallel workers"
            )

    def one_copy(self) -> Training:
        """The training of one copy of the model, with one microbatch a step. Copied without checks: a search asks for
        very many.
        """
        alone = object.__new__(type(self))
        alone.__dict__.update(self.__dict__, data_parallel=1, global_batch=max(1.0, self.microbatch))
        return alone

    @property
    def workers(self) -> int:
        """Number of NeuronCores or GPUs."""
        return self.data_parallel * self.tensor_parallel * self.pipeline_parallel

    @property
    def microbatches(self) -> float:
        """Microbatches of one worker in one optimizer step. If the batch does not divide, the last one is smaller: it
        counts as a fraction, because it takes less time, but in a pipeline as a whole one, which has a slot of its own.
        """
        exact = self.global_batch / (self.microbatch * self.data_parallel)
        return float(math.ceil(exact - 1e-9)) if self.pipeline_parallel > 1 else exact

    @property
    def tokens(self) -> float:
        """Tokens of one microbatch."""
        return self.microbatch * self.sequence_length

    @property
    def worker_parameters(self) -> float:
        """Weights that one worker computes with."""
        return self.parameters / (self.tensor_parallel * self.pipeline_parallel)

    @property
    def worker_trained(self) -> float:
        """Weights that one worker trains: those that it computes with, or with LoRA only its adapters'."""
        if self.lora is None:
            return self.worker_parameters
        return self.lora.weights(self.architecture, self.tensor_parallel) / self.pipeline_parallel

    @property
    def optimizer_bytes(self) -> int:
        """Bytes that the optimizer moves for one weight: weight, gradient and moments in, weight and moments out."""
        return 4 * (3 + 2 * self.moments)

    @property
    def sequence_split(self) -> int:
        """Workers among which the norms and residuals of a sequence are split."""
        return self.tensor_parallel if self.sequence_parallel else 1

    @property
    def vector_bytes(self) -> float:
        """Bytes of one element in element-wise work; a mean in mixed precision."""
        storage = DTYPE_BYTES[self.storage_dtype]
        return (storage + DTYPE_BYTES[self.matmul_dtype]) / 2 if self.mixed_precision else storage

    @property
    def score_bytes(self) -> int:
        """Bytes of one attention score."""
        return DTYPE_BYTES[self.matmul_dtype if self.mixed_precision else self.storage_dtype]
