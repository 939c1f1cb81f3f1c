"""FLOPs and bytes of a graph are read from its HLO text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim.counters import hlo

DIMS = st.integers(1, 64)


def module(instructions: list[str], layout: str = "()->()") -> str:
    """A module's text around instructions."""
    body = "\n".join(f"  {line}" for line in instructions)
    return f"HloModule M.1, entry_computation_layout={{{layout}}}\n\nENTRY %M.1 () -> f32[] {{\n{body}\n}}\n"


@given(batch=DIMS, m=DIMS, k=DIMS, n=DIMS, dtype=st.sampled_from(["f32", "bf16"]))
def test_a_matrix_product_costs_two_flops_a_multiply_add(
    batch: int, m: int, k: int, n: int, dtype: str
) -> None:
    """2*b*m*k*n, by the dtype of its operands; the bytes of operands and result."""
    text = module(
        [
            f"%a.1 = {dtype}[{batch},{m},{k}]{{2,1,0}} parameter(0)",
            f"%b.2 = {dtype}[{batch},{k},{n}]{{2,1,0}} parameter(1)",
            f"ROOT %dot.3 = {dtype}[{batch},{m},{n}]{{2,1,0}} dot(%a.1, %b.2), lhs_batch_dims={{0}}, "
            "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ]
    )
    cost = hlo.cost(text)
    assert cost.flops == {{"f32": "fp32", "bf16": "bf16"}[dtype]: 2 * batch * m * k * n}
    assert cost.bytes_accessed == (4 if dtype == "f32" else 2) * batch * (m * k + k * n + m * n)


def test_a_convolution_costs_its_kernel_for_each_output_element() -> None:
    """2 * outputs * input features * kernel area, also where the kernel is stored in another order."""
    text = module(
        [
            "%x.1 = f32[8,3,32,32]{3,2,1,0} parameter(0)",
            "%w.2 = f32[16,3,5,5]{3,2,1,0} parameter(1)",
            "ROOT %conv.3 = f32[8,16,28,28]{3,2,1,0} convolution(%x.1, %w.2), window={size=5x5}, "
            "dim_labels=bf01_oi01->bf01",
        ]
    )
    assert hlo.cost(text).flops == {"fp32": 2 * 8 * 16 * 28 * 28 * 3 * 5 * 5}


def test_inputs_and_outputs_come_from_the_entry_layout() -> None:
    """Scalars, tuples and comments in the layout are understood."""
    cost = hlo.cost(
        module([], "(f32[10]{0}, /*index=1*/bf16[4,2]{1,0}, pred[3]{0}, s64[])->(f32[2,2]{1,0}, f32[])")
    )
    assert (cost.input_bytes, cost.output_bytes) == (40 + 16 + 3 + 8, 20)
    assert cost.bytes_accessed == cost.input_bytes + cost.output_bytes
    assert cost.flops == {}


def test_operands_may_carry_their_shapes_and_instructions_return_tuples() -> None:
    """Both forms of HLO text; what returns a tuple is passed over."""
    text = module(
        [
            "%p.1 = f32[2,3]{1,0} parameter(0)",
            '%t.2 = (f32[2,3]{1,0}, u32[2]{0}) custom-call(%p.1), custom_call_target="x"',
            "%q.3 = f32[3,4]{1,0} get-tuple-element((f32[3,4]{1,0}, u32[2]{0}) %t.2), index=0",
            "ROOT %dot.4 = f32[2,4]{1,0} dot(f32[2,3]{1,0} %p.1, f32[3,4]{1,0} %q.3), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ]
    )
    assert hlo.cost(text).flops == {"fp32": 2 * 2 * 3 * 4}


def test_what_is_no_hlo_is_refused() -> None:
    """A wrong file does not count as a graph that costs nothing."""
    with pytest.raises(ValueError, match="not an HLO module"):
        hlo.cost("something else")


@given(dims=st.lists(DIMS, max_size=4))
def test_shapes_know_their_size(dims: list[int]) -> None:
    """A scalar has one element."""
    shape = hlo.Shape("bf16", tuple(dims))
    assert shape.elements == math.prod(dims)
    assert shape.bytes == 2 * math.prod(dims)
