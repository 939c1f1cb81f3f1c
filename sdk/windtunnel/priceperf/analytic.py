"""What a published row computes in one microbatch of one worker, counted from its dimensions.

Used only to calibrate: a rehearsed job is counted from its own graphs. Both
count by the same rule, so that the constants carry over: FLOPs are those of
matrix products (2mkn for m x k by k x n); bytes are the operands and results of
the products and the inputs and outputs of the graph, everything elementwise
being fused into them. A backward pass runs two such products for each one forward.
"""

from __future__ import annotations

from .collectives import Collective
from .errors import InvalidInput
from .published_rows import ARCHITECTURES, Architecture, PublishedRow
from .step import StepWork

_PRODUCTS = 3  # one forward, two backward, of the same size and over the same three matrices
_WEIGHT_MOVES = 5  # operand of two products, result of one; input and gradient output of the graph
_OPTIMIZER_BYTES = 28  # fp32 Adam: weight, gradient, two moments in; weight, two moments out
_MASKED_PART = 0.156  # 20 of 128 (80 of 512) positions reach the MLM head of NVIDIA's BERT


def step_work(row: PublishedRow) -> StepWork:
    """FLOPs, bytes and collectives of one microbatch, the optimizer's share included.

    Raises:
        InvalidInput: a row with tensor or pipeline parallelism, which this first model does not cover.
    """
    if row.tensor_parallel != 1 or row.pipeline_parallel != 1:
        raise InvalidInput(f"{row.config}: only data parallel rows can be counted")
    model = ARCHITECTURES[row.architecture]
    batch, length, head = row.microbatch, row.sequence_length, _head_part(row)
    element = 2 if row.storage_dtype == "bf16" or row.matmul_dtype == "fp16" else 4
    activations = activation_elements(model, batch, length, head, flash="FlashAttention" in row.config)
    moves = _WEIGHT_MOVES + (1 if row.accumulation > 1 else 0)  # accumulating reads the old gradient
    return StepWork(
        samples=batch,
        flops={row.matmul_dtype: training_flops(model, batch, length, head)},
        bytes_moved=activations * element
        + row.parameters * (moves * element + _OPTIMIZER_BYTES / row.accumulation),
        collectives=(
            Collective(
                "all_reduce", 1 / row.accumulation, row.parameters * row.gradient_bytes / row.accumulation
            ),
        ),
    )


def training_flops(model: Architecture, batch: float, length: int, head_part: float = 1.0) -> float:
    """FLOPs of the products, forward and backward, of ``batch`` sequences of ``length`` tokens.

    ``head_part``: the part of the positions for which the vocabulary head runs.
    """
    hidden = model.hidden_size
    per_token = model.layers * (2 * _layer_weights(model) + 4 * length * hidden)
    if model.vocabulary:
        transform = hidden if model.family == "encoder" else 0
        per_token += 2 * hidden * (model.vocabulary + transform) * head_part
    return _PRODUCTS * per_token * batch * length


def activation_elements(
    model: Architecture, batch: float, length: int, head_part: float = 1.0, *, flash: bool = False
) -> float:
    """Elements that are operands or results of products and grow with the batch, forward and backward.

    ``flash``: attention scores never reach memory.
    """
    hidden = model.hidden_size
    up_projections = 2 if model.family == "llama" else 1
    per_token = (
        4 * hidden  # query and output projection: in and out
        + 2 * (hidden + model.kv_hidden_size)  # key and value projection
        + (up_projections + 1) * (hidden + model.ffn_hidden_size)
        + 4 * hidden  # queries, keys, values and result of attention
        + (0 if flash else 2 * model.attention_heads * length)  # scores: out of one product, into the next
    )
    head = head_part * (hidden + model.vocabulary) if model.vocabulary else 0
    return _PRODUCTS * batch * length * (model.layers * per_token + head)


def _layer_weights(model: Architecture) -> float:
    hidden = model.hidden_size
    matrices = 3 if model.family == "llama" else 2
    return 2 * hidden * (hidden + model.kv_hidden_size) + matrices * hidden * model.ffn_hidden_size


def _head_part(row: PublishedRow) -> float:
    """NVIDIA's BERT gathers the masked positions first; Neuron's tutorial runs the head on all."""
    return _MASKED_PART if row.instance_type == "ml.p4d.24xlarge" and "BERT" in row.config else 1.0
