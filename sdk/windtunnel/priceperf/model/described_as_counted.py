"""Convert a description into the counts that a rehearsal would make: products, fused element-wise work, collectives.

Both follow the same rules, so that constants of one hold for the other: FLOPs are those of matrix
products (2mkn for m x k by k x n); bytes are the operands and results of the products and the inputs
and outputs of the graph, with all element-wise work fused into these. A backward pass runs
two products for each forward one.
"""

from __future__ import annotations

from collections.abc import Mapping

from .architectures import ModelFamily
from .collectives import Collective
from .counted_step import StepWork
from .described_step import training_flops, training_products
from .engines import Scores
from .training_settings import DTYPE_BYTES, OPTIMIZER_BYTES, Training

ATTENTION_PRODUCTS = 6  # scores, and their product with the values; two backward for each
_PRODUCTS = 3  # one forward, two backward, of the same size and over the same three matrices
_WEIGHT_MOVES = 5  # operand of two products, result of one; input and gradient output of the graph

FUSED_PASSES: Mapping[ModelFamily, tuple[float, float]] = {
    "encoder": (65.0, 15.0),
    "decoder": (79.2, 15.3),
    "llama": (68.6, 10.3),
    "vision": (57.2, 10.0),
}
"""Bytes that fused element-wise work reads and writes for each byte of a layer's hidden state, and of its attention
scores: counted by the simulator in the training graphs of Hugging Face's BERT, GPT-2 (both with dropout),
Llama and ViT (without), with eager attention, at two to three sequence lengths each."""
HEAD_FUSED_PASSES = 4.7
"""The same for each byte of a logit, from BERT's masked-language head."""


def step_work(training: Training) -> StepWork:
    """The work of one microbatch on a data-parallel worker, with its share of the optimizer and the reduction."""
    accumulated = training.microbatches
    share = training.data_parallel * accumulated
    moves = _WEIGHT_MOVES + (1 if accumulated > 1 else 0)  # accumulating reads the old gradient
    state = training.parameters * (
        moves * DTYPE_BYTES[training.storage_dtype] + OPTIMIZER_BYTES / accumulated
    )
    payload = training.parameters * training.gradient_bytes / accumulated
    products = tuple(training_products(training))
    return StepWork(
        samples=training.microbatch,
        flops={training.matmul_dtype: training_flops(training) / share},
        bytes_moved=product_elements(training) * training.vector_bytes + state,
        collectives=(Collective("all_reduce", 1 / accumulated, payload),),
        state_bytes=state,
        products={training.matmul_dtype: products},
        fused_bytes=fused_bytes(training),
        scores=Scores.of(products, ATTENTION_PRODUCTS),
        score_bytes=training.score_bytes,
    )


def fused_bytes(training: Training) -> float:
    """Bytes of one microbatch's element-wise work as the fusion model counts them, with eager attention."""
    model = training.architecture
    hidden, scores = FUSED_PASSES[model.family]
    per_token = model.layers * (
        hidden * model.hidden_size * training.vector_bytes
        + scores * model.attention_heads * training.sequence_length * training.score_bytes
    )
    head = training.head_part * HEAD_FUSED_PASSES * model.vocabulary * training.vector_bytes
    return training.tokens * (per_token + head)


def product_elements(training: Training) -> float:
    """Elements of one microbatch that are operands or results of products and grow with the batch."""
    model, hidden = training.architecture, training.architecture.hidden_size
    per_token = (
        4 * hidden  # query and output projection: in and out
        + 2 * (hidden + model.kv_hidden_size)  # key and value projection
        + (model.up_projections + 1) * (hidden + model.ffn_hidden_size)
        + 4 * hidden  # queries, keys, values and result of attention
    )
    if training.attention == "eager":  # scores: out of one product, into the next
        per_token += 2 * model.attention_heads * training.sequence_length
    head = training.head_part * (hidden + model.vocabulary) if model.vocabulary else 0
    return _PRODUCTS * training.tokens * (model.layers * per_token + head)
