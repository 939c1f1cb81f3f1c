"""Classes of HLO instructions, by what they are to an accelerator's engines."""

from __future__ import annotations

TRANSCENDENTAL = frozenset(
    (
        "atan2",
        "cbrt",
        "cosine",
        "erf",
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "power",
        "rsqrt",
        "sine",
        "sqrt",
        "tan",
        "tanh",
    )
)
"""What a NeuronCore's scalar engine computes."""

ARITHMETIC = frozenset(
    (
        "abs",
        "add",
        "and",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "convert",
        "count-leading-zeros",
        "divide",
        "floor",
        "imag",
        "is-finite",
        "map",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "real",
        "reduce-precision",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "stochastic-convert",
        "subtract",
        "xor",
    )
)
"""What a NeuronCore's vector engine computes."""

MOVING = frozenset(
    ("broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "iota", "pad", "reverse", "slice")
)
"""Element-wise instructions that only move data."""

ELEMENTWISE = TRANSCENDENTAL | ARITHMETIC | MOVING

VIEWS = frozenset(
    (
        "add-dependency",
        "bitcast",
        "bitcast-convert",
        "copy",
        "domain",
        "opt-barrier",
        "reshape",
        "transpose",
    )
)
"""The same elements under another shape: their reader goes through memory in another order."""

FOLDED = frozenset(("broadcast", "reverse", "slice"))
"""Also read in place by a product: they repeat, skip or reverse elements in memory."""

GIVEN = frozenset(("constant", "parameter", "partition-id", "replica-id", "after-all"))
"""Values that exist without computation."""

PRODUCTS = frozenset(("convolution", "dot"))

COLLECTIVES = {
    "all-reduce": "all_reduce",
    "all-reduce-start": "all_reduce",
    "all-gather": "all_gather",
    "all-gather-start": "all_gather",
    "all-to-all": "all_to_all",
    "collective-broadcast": "broadcast",
    "collective-permute": "collective_permute",
    "collective-permute-start": "collective_permute",
    "reduce-scatter": "reduce_scatter",
}
"""HLO's collectives, and their names in the counters."""

ENDS_OF_COLLECTIVES = frozenset(("all-reduce-done", "all-gather-done", "collective-permute-done"))

GATHERS = frozenset(("gather",))
SCATTERS = frozenset(("scatter",))

CALLS = frozenset(("call", "conditional", "fusion", "while", "async-start"))
"""Instructions that run other computations, which are counted themselves."""

UNCOUNTED = PRODUCTS | frozenset(COLLECTIVES) | ENDS_OF_COLLECTIVES | GATHERS | SCATTERS | CALLS | GIVEN
"""Boundaries of fusion whose bytes do not count as element-wise work."""
