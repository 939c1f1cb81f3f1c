"""A description as a rehearsal would count it: FLOPs, bytes of products, collectives, and no shapes.

Both count by the same rule, so that constants carry over: FLOPs are those of matrix products
(2mkn for m x k by k x n); bytes are the operands and results of the products and the inputs
and outputs of the graph, everything element-wise being fused into them. A backward pass runs
two such products for each one forward.
"""

from __future__ import annotations

from .collectives import Collective
from .predict import training_flops
from .step import StepWork
from .training import DTYPE_BYTES, OPTIMIZER_BYTES, Training

_PRODUCTS = 3  # one forward, two backward, of the same size and over the same three matrices
_WEIGHT_MOVES = 5  # operand of two products, result of one; input and gradient output of the graph


def step_work(training: Training) -> StepWork:
    """One microbatch of a data-parallel worker, the optimizer's and the reduction's share included."""
    accumulated = training.microbatches
    share = training.data_parallel * accumulated
    moves = _WEIGHT_MOVES + (1 if accumulated > 1 else 0)  # accumulating reads the old gradient
    state = training.parameters * (
        moves * DTYPE_BYTES[training.storage_dtype] + OPTIMIZER_BYTES / accumulated
    )
    payload = training.parameters * training.gradient_bytes / accumulated
    return StepWork(
        samples=training.microbatch,
        flops={training.matmul_dtype: training_flops(training) / share},
        bytes_moved=product_elements(training) * training.vector_bytes + state,
        collectives=(Collective("all_reduce", 1 / accumulated, payload),),
        state_bytes=state,
    )


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
