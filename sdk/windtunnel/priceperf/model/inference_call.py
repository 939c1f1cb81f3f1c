"""The time of one call of a traced model on one NeuronCore, part by part, and the throughput of an instance.

call = products + element-wise work + reading of weights that nothing hides + overhead of the call
       + transfer of the answer to the host, all divided by the speed of the Neuron version

Each core has a copy of the model and answers one call after the other. Element-wise work is counted in fp32 bytes, as
a third of those of a training step (`engines`). The compiler keeps most of it on chip, so the modelled rate may be
higher than the memory's bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InvalidInput, NotCalibrated
from ..instances import GIB, InstanceType
from .architectures import Architecture
from .engines import FFN_PASSES, HIDDEN_PASSES, PARTITIONS

MODELLED_FAMILIES = ("encoder", "vision", "decoder")
"""For a decoder, one pass over the whole sequence is modelled, not the generation of tokens one by one."""
LARGEST_BATCH = 1024
_FORWARD = 1 / 3
_SCORE_PASSES = 25 * _FORWARD
"""How often a score is read or written: a third of the prior for training on trn1 (`fitting.PRIORS`). Not fitted."""
_STORED, _READ = 4, 2
"""Bytes of an element in memory and in products: AWS's tables store fp32, and the compiler casts the operands of
products to bf16 (since Neuron 2.27 only if a model is traced with ``--auto-cast=matmult``)."""
_ERA_STARTS = ((2, 10), (2, 22))
"""The Neuron versions from which on most configurations are faster."""


@dataclass(frozen=True)
class Inference:
    """Calls of a traced model.

    Args:
        architecture: dimensions of the model.
        batch_size: sequences (or images) of a call.
        sequence_length: tokens (or patches) of each.
        hidden_output: the answer is the last hidden states, as with ``AutoModel``; otherwise it is a few numbers.

    Raises:
        InvalidInput: a number out of range.
        NotCalibrated: a family of models that generates token by token.
    """

    architecture: Architecture
    batch_size: int
    sequence_length: int
    hidden_output: bool = False

    def __post_init__(self) -> None:
        """Check every field."""
        if not 1 <= self.batch_size <= LARGEST_BATCH:
            raise InvalidInput(f"batch_size must be from 1 to {LARGEST_BATCH}, not {self.batch_size}")
        if not 1 <= self.sequence_length <= 2**17:
            raise InvalidInput(f"sequence_length must be from 1 to {2**17:,}, not {self.sequence_length}")
        if self.architecture.family not in MODELLED_FAMILIES:
            raise NotCalibrated(
                f"Inference is modelled for the families {', '.join(MODELLED_FAMILIES)}, not for "
                f"{self.architecture.family}: no throughput of such a model is among the published rows."
            )

    @property
    def flops(self) -> float:
        """FLOPs of the matrix products of one call."""
        model, length = self.architecture, self.sequence_length
        per_token = model.layers * (2 * model.layer_weights + 4 * length * model.hidden_size)
        return per_token * length * self.batch_size

    @property
    def moved_bytes(self) -> float:
        """Bytes of element-wise work of one call."""
        model, length = self.architecture, self.sequence_length
        per_token = _FORWARD * (HIDDEN_PASSES * model.hidden_size + FFN_PASSES * model.ffn_hidden_size)
        padded = math.ceil(length / PARTITIONS) * PARTITIONS
        scores = _SCORE_PASSES * model.attention_heads * padded
        return _STORED * model.layers * length * self.batch_size * (per_token + scores)

    @property
    def weight_bytes(self) -> float:
        """Bytes of the layers' weights that the products read."""
        return _READ * self.architecture.layers * self.architecture.layer_weights

    @property
    def activation_bytes(self) -> float:
        """The least bytes of the largest tensor of a layer: what is inside the feed-forward network, or the scores.

        No library gives the modelled families a flash attention kernel on NeuronCores, so a layer's scores are written
        out. Only one tensor counts, in 16 bits: the compiler may split or avoid the others.
        """
        model = self.architecture
        per_token = max(model.ffn_hidden_size, model.attention_heads * self.sequence_length)
        return _READ * self.batch_size * self.sequence_length * per_token

    @property
    def answer_bytes(self) -> float:
        """Bytes of the answer that go back to the host; 0 unless it is the hidden states."""
        tokens = self.batch_size * self.sequence_length
        return _STORED * tokens * self.architecture.hidden_size if self.hidden_output else 0.0


@dataclass(frozen=True)
class InferenceConstants:
    """The constants of NeuronCores-v2 in inference, fitted by `calibration.inference_fitting`.

    Args:
        tensor: reached part of the matrix engine's peak.
        vector: bytes of element-wise work a second, as a part of the HBM bandwidth.
        weights: part of the time to read the weights that no computation hides.
        answer: reached part of `ANSWER_BYTES_PER_S` for answers to the host.
        call_s: overhead of each call, seconds.
        inferentia2: time of the same computation on Inferentia2, relative to Trainium1.
        early: speed of Neuron 2.8 and 2.9, relative to 2.10 to 2.21.
        late: speed of Neuron 2.22 and later, relative to 2.10 to 2.21.
    """

    tensor: float
    vector: float
    weights: float
    answer: float
    call_s: float
    inferentia2: float
    early: float
    late: float


ANSWER_BYTES_PER_S = 10e9
_INFERENTIA2 = "Inferentia2"


@dataclass(frozen=True)
class CallTime:
    """Seconds of one call on one core; the parts add up."""

    parts: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """Seconds from the input on the host to the answer on the host."""
        return math.fsum(self.parts.values())


def stored_gib(model: Architecture) -> float:
    """GiB of a model's weights in a core's memory."""
    return _STORED * model.parameters / GIB


def misfit(inference: Inference, instance: InstanceType) -> str | None:
    """Why a call does not fit a core's memory, and what does; None: it fits."""
    weights_gib = stored_gib(inference.architecture)
    free_gib = instance.core_memory_gib - weights_gib
    has = f"a {instance.core_name} of {instance.name} has {instance.core_memory_gib:g} GiB"
    if free_gib < 0:
        needed = f"the weights need {weights_gib:.1f} GiB in fp32"
        return f"{needed}, {has}: a model that is split over cores is not modelled"
    layer_gib, batch = inference.activation_bytes / GIB, inference.batch_size
    if layer_gib <= free_gib:
        return None
    most = int(free_gib / layer_gib * batch)
    return (
        f"the activations of one layer need {layer_gib:.1f} GiB with batches of {batch} and "
        f"{inference.sequence_length:,} tokens, the weights {weights_gib:.1f} GiB, and {has}: "
        f"{f'batches of up to {most:,} fit' if most else 'take shorter sequences'}"
    )


def call_time(
    inference: Inference,
    instance: InstanceType,
    constants: InferenceConstants,
    neuron_version: tuple[int, int] | None = None,
) -> CallTime:
    """The modelled time of one call on one core. ``neuron_version``: None: the newest.

    Raises:
        InvalidInput: the call does not fit a core's memory.
    """
    if why := misfit(inference, instance):
        raise InvalidInput(why)
    slower = constants.inferentia2 if instance.accelerator.name == _INFERENTIA2 else 1.0
    bandwidth = instance.core_memory_bandwidth
    parts = {
        "products": slower * inference.flops / (instance.core_peak_flops("bf16") * constants.tensor),
        "element-wise work": slower * inference.moved_bytes / (bandwidth * constants.vector),
        "weights": inference.weight_bytes / bandwidth * constants.weights,
        "answer to the host": inference.answer_bytes / (ANSWER_BYTES_PER_S * constants.answer),
        "the call itself": constants.call_s,
    }
    speed = _speed(constants, neuron_version)
    return CallTime({name: seconds / speed for name, seconds in parts.items()})


def _speed(constants: InferenceConstants, version: tuple[int, int] | None) -> float:
    first, last = _ERA_STARTS
    if version is None or version >= last:
        return constants.late
    return constants.early if version < first else 1.0


@dataclass(frozen=True)
class Served:
    """Throughput and latency of an instance under steady load. ``throughput_per_s``: sequences, not calls."""

    throughput_per_s: float
    latency_p50_s: float


def served(inference: Inference, call_s: float, cores: int, in_flight: int | None = None) -> Served:
    """What an instance serves. ``in_flight``: calls at a time; None: one a core. More calls than cores have to wait."""
    calls = cores if in_flight is None else in_flight
    throughput = min(calls, cores) * inference.batch_size / call_s
    return Served(throughput, call_s * max(1.0, calls / cores))
