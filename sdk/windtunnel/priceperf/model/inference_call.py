"""One call of a traced model on one NeuronCore: its time, part by part; and what an instance makes of many.

call = products + element-wise work + weights that nothing hides + what the call itself costs
       + the answer's way to the host, faster or slower with the Neuron version

Each core has the model and answers one call after the other. Element-wise work is counted in bytes of fp32, as a
third of what a training step moves (`engines`): the compiler keeps most of it on chip, so it may seem to move more
than the memory could.
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
"""Of a decoder one pass over the whole sequence; not tokens one by one."""
LARGEST_BATCH = 1024
_FORWARD = 1 / 3
_SCORE_PASSES = 25 * _FORWARD
"""As `fitting.PRIORS` takes it for training on trn1. Counted, not fitted."""
_STORED, _READ = 4, 2
"""Bytes of an element: AWS's tables store fp32, and the compiler casts products' operands to bf16; since Neuron 2.27
a model is traced with ``--auto-cast=matmult`` for that."""
_ERA_STARTS = ((2, 10), (2, 22))
"""The first Neuron versions of which most configurations got faster together."""


@dataclass(frozen=True)
class Inference:
    """Calls of a traced model.

    Args:
        architecture: dimensions of the model.
        batch_size: sequences (or images) of a call.
        sequence_length: tokens (or patches) of each.
        hidden_output: the answer is the last hidden states, as of ``AutoModel``; otherwise a few numbers.

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
        """FLOPs of the products of one call."""
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
        """Bytes of the layers' weights as the products read them."""
        return _READ * self.architecture.layers * self.architecture.layer_weights

    @property
    def answer_bytes(self) -> float:
        """Bytes that go back to the host; a few numbers count as none."""
        tokens = self.batch_size * self.sequence_length
        return _STORED * tokens * self.architecture.hidden_size if self.hidden_output else 0.0


@dataclass(frozen=True)
class InferenceConstants:
    """What NeuronCores-v2 reach in inference; fitted (`calibration.inference_fitting`).

    Args:
        tensor: part of the matrix engine's peak.
        vector: bytes of element-wise work a second, as a part of the HBM bandwidth.
        weights: part of the time of reading the weights that no computing hides.
        answer: part of 10 GB/s at which answers reach the host.
        call_s: seconds of any call.
        inferentia2: how many times as long as Trainium1 an Inferentia2 computes.
        early: speed of Neuron 2.8 and 2.9 beside that of 2.10 to 2.21.
        late: speed from 2.22 on.
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
        """From the input on the host to the answer there."""
        return math.fsum(self.parts.values())


def call_time(
    inference: Inference,
    instance: InstanceType,
    constants: InferenceConstants,
    neuron_version: tuple[int, int] | None = None,
) -> CallTime:
    """The modelled time of one call on one core. ``neuron_version``: None: the newest.

    Raises:
        InvalidInput: the weights do not fit a core's memory.
    """
    stored_gib = _STORED * inference.architecture.parameters / GIB
    if stored_gib > instance.core_memory_gib:
        raise InvalidInput(
            f"the weights need {stored_gib:.1f} GiB in fp32, a {instance.core_name} of {instance.name} has "
            f"{instance.core_memory_gib:g} GiB: a model that is split over cores is not modelled"
        )
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
    """What an instance answers while calls keep it busy. ``throughput_per_s``: sequences, not calls."""

    throughput_per_s: float
    latency_p50_s: float


def served(inference: Inference, call_s: float, cores: int, in_flight: int | None = None) -> Served:
    """``in_flight``: calls at a time on the whole instance; None: one a core. More than cores wait for each other."""
    calls = cores if in_flight is None else in_flight
    throughput = min(calls, cores) * inference.batch_size / call_s
    return Served(throughput, call_s * max(1.0, calls / cores))
