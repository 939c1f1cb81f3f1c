"""FLOPs and bytes of a graph are read from its HLO text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim.counters import hlo
from neuron_sim.counters.hlo.products import Product

DIMS = st.integers(1, 64)


def module(instructions: list[str], layout: str = "()->()") -> str:
    """A module's text around instructions."""
    body = "\n".join(f"  {line}" for line in instructions)
    return f"HloModule M.1, entry_computation_layout={{{layout}}}\n\nENTRY %M.1 () -> f32[] {{\n{body}\n}}\n"


@given(batch=DIMS, m=DIMS, k=DIMS, n=DIMS, dtype=st.sampled_from(["f32", "bf16", "f64"]))
def test_a_matrix_product_costs_two_flops_a_multiply_add(
    batch: int, m: int, k: int, n: int, dtype: str
) -> None:
    """2*b*m*k*n, by the dtype of its operands; the bytes of operands and result. A double is fp32 on the device."""
    text = module(
        [
            f"%a.1 = {dtype}[{batch},{m},{k}]{{2,1,0}} parameter(0)",
            f"%b.2 = {dtype}[{batch},{k},{n}]{{2,1,0}} parameter(1)",
            f"ROOT %dot.3 = {dtype}[{batch},{m},{n}]{{2,1,0}} dot(%a.1, %b.2), lhs_batch_dims={{0}}, "
            "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ]
    )
    cost = hlo.cost(text)
    assert cost.flops == {"bf16" if dtype == "bf16" else "fp32": 2 * batch * m * k * n}
    assert cost.bytes_accessed == (2 if dtype == "bf16" else 4) * batch * (m * k + k * n + m * n)


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


A = "f32[8,64]{1,0}"
BYTES = 8 * 64 * 4


def product_flops(cost: hlo.Cost) -> dict[str, int]:
    """What the listed products amount to."""
    sums: dict[str, int] = {}
    for batch, rows, inner, columns, dtype, times in cost.work.record()["products"]:
        sums[dtype] = sums.get(dtype, 0) + 2 * batch * rows * inner * columns * times
    return sums


SMALL = st.integers(1, 6)


@given(
    batch=SMALL, rows=SMALL, inner=SMALL, columns=SMALL, times=st.integers(1, 4),
    features=SMALL, filters=SMALL, size=st.integers(3, 9), kernel=st.integers(1, 3), groups=st.integers(1, 3),
)  # fmt: skip
def test_the_products_are_the_flops(
    batch: int, rows: int, inner: int, columns: int, times: int,
    features: int, filters: int, size: int, kernel: int, groups: int,
) -> None:  # fmt: skip
    """Equal products are one entry; their sum is exactly the FLOPs, also of grouped convolutions."""
    left, right = (f"[{batch},{inner},{rows}]{{2,1,0}}", f"[{batch},{columns},{inner}]{{2,1,0}}")
    out = size - kernel + 1
    lines = [f"%a.1 = bf16{left} parameter(0)", f"%b.2 = bf16{right} parameter(1)"]
    lines += [
        f"%dot.{n + 3} = bf16[{batch},{rows},{columns}]{{2,1,0}} dot(%a.1, %b.2), lhs_batch_dims={{0}}, "
        "lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}"
        for n in range(times)
    ]
    lines += [
        f"%x.90 = f32[{batch},{features * groups},{size}]{{2,1,0}} parameter(2)",
        f"%w.91 = f32[{filters * groups},{features},{kernel}]{{2,1,0}} parameter(3)",
        f"%conv.92 = f32[{batch},{filters * groups},{out}]{{2,1,0}} convolution(%x.90, %w.91), "
        f"window={{size={kernel}}}, dim_labels=bf0_oi0->bf0, feature_group_count={groups}",
        f"ROOT %all.93 = () tuple(%conv.92, {', '.join(f'%dot.{n + 3}' for n in range(times))})",
    ]
    cost = hlo.cost(module(lines))
    assert cost.work.products[Product(batch, rows, inner, columns, "bf16")] == times
    convolved = Product(groups, batch * out, features * kernel, filters, "fp32", convolved=True)
    assert cost.work.products[convolved] == 1
    assert cost.work.record()["convolutions"] == [[*convolved[:5], 1]]
    assert product_flops(cost) == cost.flops
    assert cost.flops["fp32"] == 2 * batch * out * filters * groups * features * kernel


CONV_X, CONV_W, CONV_Y = "f32[4,16,16,16]{3,2,1,0}", "f32[8,16,3,3]{3,2,1,0}", "f32[4,8,8,8]{3,2,1,0}"
# As torch_xla writes Conv2d(16, 8, 3, stride=2, padding=1) and its gradients.
CONVOLUTIONS = [
    (CONV_X, CONV_W, CONV_Y, "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
    (CONV_Y, "f32[3,3,16,8]{3,2,1,0}", CONV_X,
     "window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=bf01_01oi->bf01"),
    (CONV_X, CONV_Y, "f32[3,3,16,8]{3,2,1,0}",
     "window={size=8x8 pad=1_0x1_0 rhs_dilate=2x2}, dim_labels=fb01_io01->01bf"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "result", "attributes"), CONVOLUTIONS)
def test_a_convolution_and_both_its_gradients_cost_the_same(
    left: str, right: str, result: str, attributes: str
) -> None:
    """The zeros that a stride's gradient puts between elements are no work."""
    lines = [f"%a.1 = {left} parameter(0)", f"%b.2 = {right} parameter(1)"]
    cost = hlo.cost(module([*lines, f"ROOT %c.3 = {result} convolution(%a.1, %b.2), {attributes}"]))
    assert cost.flops == {"fp32": 2 * 4 * 8 * 8 * 8 * 16 * 9}
    assert product_flops(cost) == cost.flops


def test_what_nothing_is_made_of_is_not_run() -> None:
    """torch_xla writes the gradient of images beside that of the first layer's weights; compilers drop it."""
    lines = [
        f"%p.1 = {A} parameter(0)",
        "%w.2 = f32[64,64]{1,0} parameter(1)",
        f"%unused.3 = {A} dot(%p.1, %w.2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        f"%unused.4 = {A} exponential(%unused.3)",
        f"ROOT %dot.5 = {A} dot(%p.1, %w.2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
    ]
    cost = hlo.cost(module(lines))
    assert cost.flops == {"fp32": 2 * 8 * 64 * 64}
    assert cost.work.activations.fused_bytes == 0


def test_the_weights_gradient_of_a_grouped_convolution() -> None:
    """Conv2d(64, 64, 3, padding=1, groups=4): its groups are those of the batch."""
    lines = [
        "%x.1 = f32[4,64,8,8]{3,2,1,0} parameter(0)",
        "%g.2 = f32[4,64,8,8]{3,2,1,0} parameter(1)",
        "ROOT %c.3 = f32[3,3,16,64]{3,2,1,0} convolution(%x.1, %g.2), window={size=8x8 pad=1_1x1_1}, "
        "dim_labels=fb01_io01->01bf, batch_group_count=4",
    ]
    cost = hlo.cost(module(lines))
    assert list(cost.work.products) == [(4, 3 * 3 * 16, 4 * 8 * 8, 16, "fp32", True)]


def elementwise(lines: list[str], layout: str = "()->()", kind: str = "activations") -> dict[str, int]:
    """That part of the cost of a module."""
    found: dict[str, int] = hlo.cost(module(lines, layout)).work.record()["elementwise"][kind]
    return found


def test_a_chain_is_one_kernel() -> None:
    """Every array once, and no value between; reshapes and transposes are orders of reading."""
    found = elementwise(
        [
            f"%p.1 = {A} parameter(0)",
            f"%q.2 = {A} parameter(1)",
            f"%sum.3 = {A} add(%p.1, %q.2)",
            f"%exp.4 = {A} exponential(%sum.3)",
            "%r.5 = f32[512]{0} reshape(%exp.4)",
            "%one.6 = f32[] constant(1)",
            "%ones.7 = f32[512]{0} broadcast(%one.6), dimensions={}",
            "ROOT %m.8 = f32[512]{0} multiply(%r.5, %ones.7)",
        ]
    )
    assert found == {
        "fused_bytes": 3 * BYTES,
        "unfused_bytes": (3 + 2 + 2) * BYTES,
        "vector_elements": 2 * 512,
        "scalar_elements": 512,
    }


def test_a_reduction_ends_a_kernel_and_a_product_bounds_it() -> None:
    """Softmax's exponential is written beside its sum, and read again; the product's reading is the product's."""
    found = elementwise(
        [
            f"%p.1 = {A} parameter(0)",
            f"%exp.2 = {A} exponential(%p.1)",
            "%zero.3 = f32[] constant(0)",
            "%sum.4 = f32[8]{0} reduce(%exp.2, %zero.3), dimensions={1}, to_apply=%Add.1",
            f"%sums.5 = {A} broadcast(%sum.4), dimensions={{0}}",
            f"%soft.6 = {A} divide(%exp.2, %sums.5)",
            "%w.7 = f32[64,64]{1,0} parameter(1)",
            f"ROOT %dot.8 = {A} dot(%soft.6, %w.7), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        ]
    )
    assert found["fused_bytes"] == (BYTES + BYTES + 32) + (BYTES + 32 + BYTES)
    assert found["vector_elements"] == 512 + 512


@pytest.mark.parametrize(("opcode", "passes"), [("negate", 2 + 2), ("tanh", 3 + 2)])
def test_what_is_cheap_is_computed_again_rather_than_written(opcode: str, passes: int) -> None:
    """A value needed before and behind a reduction: p is read again, or the expensive value kept."""
    found = elementwise(
        [
            f"%p.1 = {A} parameter(0)",
            f"%v.2 = {A} {opcode}(%p.1)",
            "%zero.3 = f32[] constant(0)",
            "%max.4 = f32[8]{0} reduce(%v.2, %zero.3), dimensions={1}, to_apply=%Max.1",
            f"%m.5 = {A} broadcast(%max.4), dimensions={{0}}",
            f"%s.6 = {A} subtract(%v.2, %m.5)",
            f"ROOT %e.7 = {A} exponential(%s.6)",
        ]
    )
    # The first kernel reads p and writes the maxima, and v where it is kept; the second reads and writes.
    assert found["fused_bytes"] == (passes - 1) * BYTES + 2 * 32


UPDATE = [
    f"%p.1 = {A} parameter(0)",
    f"%m.2 = {A} parameter(1)",
    "%x.3 = f32[32,8]{1,0} parameter(2)",
    "%y.4 = f32[32,64]{1,0} parameter(3)",
    "%relu.5 = f32[32,8]{1,0} negate(%x.3)",
    f"%g.6 = {A} dot(%relu.5, %y.4), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
    "%rate.7 = f32[] parameter(4)",
    f"%rates.8 = {A} broadcast(%rate.7), dimensions={{}}",
    f"%decayed.9 = {A} multiply(%p.1, %rates.8)",
    f"%m.10 = {A} add(%m.2, %g.6)",
    f"%p.11 = {A} subtract(%decayed.9, %m.10)",
    f"ROOT %t.12 = ({A}, {A}) tuple(%p.11, %m.10)",
]


def test_the_optimizers_work_is_told_from_what_grows_with_the_batch() -> None:
    """One kernel reads parameter, moment and gradient and writes two; the batch's is apart."""
    layout = f"({A}, {A}, f32[32,8]{{1,0}}, f32[32,64]{{1,0}}, f32[])->({A}, {A})"
    state = elementwise(UPDATE, layout, "state")
    assert state["fused_bytes"] == 5 * BYTES + 4
    assert (state["vector_elements"], state["scalar_elements"]) == (3 * 512, 0)
    assert elementwise(UPDATE, layout) == {
        "fused_bytes": 2 * 32 * 8 * 4,
        "unfused_bytes": 2 * 32 * 8 * 4,
        "vector_elements": 32 * 8,
        "scalar_elements": 0,
    }


def test_a_bucket_of_gradients_is_state() -> None:
    """DistributedDataParallel's: gradients are written into one array, and the optimizer reads slices of it."""
    bucket = "f32[1536]{0}"
    filled = [
        f"%b.1 = {bucket} parameter(0)",
        "%x.2 = f32[32,8]{1,0} parameter(1)",
        "%y.3 = f32[32,64]{1,0} parameter(2)",
        f"%w.4 = {A} parameter(3)",
        f"%g.5 = {A} dot(%x.2, %y.3), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        "%flat.6 = f32[512]{0} reshape(%g.5)",
        "%at.7 = s64[] constant(1024)",
        f"%b.8 = {bucket} dynamic-update-slice(%b.1, %flat.6, %at.7)",
        "%view.9 = f32[512]{0} slice(%b.8), slice={[1024:1536]}",
        f"%g.10 = {A} reshape(%view.9)",
        f"ROOT %t.11 = ({bucket}, {A}) tuple(%b.8, %g.10)",
    ]
    layout = f"({bucket}, f32[32,8]{{1,0}}, f32[32,64]{{1,0}}, {A})->({bucket}, {A})"
    assert elementwise(filled, layout)["fused_bytes"] == 0
    assert elementwise(filled, layout, "state")["fused_bytes"] == (3 + 1 + 3 + 1) * BYTES
    updated = [
        f"%b.1 = {bucket} parameter(0)",
        f"%w.2 = {A} parameter(1)",
        "%view.3 = f32[512]{0} slice(%b.1), slice={[1024:1536]}",
        f"%g.4 = {A} reshape(%view.3)",
        f"ROOT %w.5 = {A} subtract(%w.2, %g.4)",
    ]
    layout = f"({bucket}, {A})->{A}"
    assert elementwise(updated, layout)["fused_bytes"] == 0
    assert elementwise(updated, layout, "state")["fused_bytes"] == 3 * BYTES


def test_a_barrier_moves_nothing() -> None:
    """torch_xla's FSDP and its checkpointing put one around all that lives."""
    lines = [
        f"%p.1 = {A} parameter(0)",
        "%q.2 = f32[16]{0} parameter(1)",
        f"%t.3 = ({A}, f32[16]{{0}}) tuple(%p.1, %q.2)",
        f"%o.4 = ({A}, f32[16]{{0}}) opt-barrier(%t.3)",
        f"%p.5 = {A} get-tuple-element(%o.4), index=0",
        f"ROOT %e.6 = {A} exponential(%p.5)",
    ]
    assert elementwise(lines)["fused_bytes"] == 2 * BYTES


def test_activations_of_a_parameters_dimensions_are_no_state() -> None:
    """64 tokens of a hidden size of 8, beside a parameter of 8 x 64: a product reads what the kernel makes."""
    lines = [
        f"%p.1 = {A} parameter(0)",
        "%w.2 = f32[64,8]{1,0} parameter(1)",
        "%x.7 = f32[64,8]{1,0} dot(%w.2, %w.2), lhs_contracting_dims={}, rhs_contracting_dims={}",
        "%h.3 = f32[64,8]{1,0} tanh(%x.7)",
        "%y.4 = f32[64,64]{1,0} dot(%h.3, %p.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        f"%p.5 = {A} negate(%p.1)",
        f"ROOT %t.6 = ({A}, f32[64,64]{{1,0}}) tuple(%p.5, %y.4)",
    ]
    layout = f"({A}, f32[64,8]{{1,0}})->({A}, f32[64,64]{{1,0}})"
    assert elementwise(lines, layout)["fused_bytes"] == 2 * BYTES
    assert elementwise(lines, layout, "state")["fused_bytes"] == 2 * BYTES


def test_zeros_that_become_a_gradient_and_the_norm_of_all_gradients_are_state() -> None:
    """A table's gradient is filled with zeros first; norms are reduced to scalars, stacked, and scale it."""
    lines = [
        f"%p.1 = {A} parameter(0)",
        "%ids.2 = s64[4]{0} parameter(1)",
        "%zero.3 = f32[] constant(0)",
        f"%zeros.4 = {A} broadcast(%zero.3), dimensions={{}}",
        "%rows.5 = f32[4,64]{1,0} parameter(2)",
        f"%g.6 = {A} scatter(%zeros.4, %ids.2, %rows.5), to_apply=%Add.1",
        f"%square.7 = {A} multiply(%g.6, %g.6)",
        "%norm.8 = f32[] reduce(%square.7, %zero.3), dimensions={0,1}, to_apply=%Add.1",
        "%one.9 = f32[1]{0} reshape(%norm.8)",
        "%all.10 = f32[2]{0} concatenate(%one.9, %one.9), dimensions={0}",
        "%norm.11 = f32[] reduce(%all.10, %zero.3), dimensions={0}, to_apply=%Add.1",
        f"%norms.12 = {A} broadcast(%norm.11), dimensions={{}}",
        f"%g.13 = {A} divide(%g.6, %norms.12)",
        f"ROOT %p.14 = {A} subtract(%p.1, %g.13)",
    ]
    layout = f"({A}, s64[4]{{0}}, f32[4,64]{{1,0}})->{A}"
    # Written as zeros; read for the norm; read with the parameter, which is written.
    scalars = elementwise(lines, layout, "state")["fused_bytes"] - (1 + 1 + 3) * BYTES
    assert 0 <= scalars < 64
    assert elementwise(lines, layout)["fused_bytes"] == 0


def test_a_batch_norm_is_a_reduction_and_an_elementwise_operation() -> None:
    """Forward reads its input twice and writes once; torch_xla writes layer norms so, too."""
    stats = "f32[64]{0}"
    found = elementwise(
        [
            f"%x.1 = {A} parameter(0)",
            f"%scale.2 = {stats} parameter(1)",
            f"%n.3 = ({A}, {stats}, {stats}) batch-norm-training(%x.1, %scale.2, %scale.2), "
            "epsilon=1e-5, feature_index=1",
            f"ROOT %g.4 = {A} get-tuple-element(%n.3), index=0",
        ]
    )
    statistics = 64 * 4
    assert found["fused_bytes"] == (BYTES + 2 * statistics) + (2 * BYTES + 3 * statistics)


def test_lookups_and_their_gradients_move_the_rows_they_touch() -> None:
    """Indices, and rows: not the table."""
    cost = hlo.cost(
        module(
            [
                "%table.1 = f32[1000,64]{1,0} parameter(0)",
                "%ids.2 = s64[8]{0} parameter(1)",
                f"%rows.3 = {A} gather(%table.1, %ids.2), offset_dims={{1}}, slice_sizes={{1,64}}",
                "ROOT %grad.4 = f32[1000,64]{1,0} scatter(%table.1, %ids.2, %rows.3), to_apply=%Add.1",
            ]
        )
    )
    assert cost.work.gather_bytes == 8 * 8 + 2 * BYTES
    assert cost.work.scatter_bytes == 8 * 8 + 3 * BYTES


def test_a_called_computation_counts_at_each_call_and_a_loop_of_unknown_length_once() -> None:
    """So do collectives in it; a reduction's own little computation is no work of its own."""
    text = (
        "HloModule M.1, entry_computation_layout={()->()}\n\n"
        f"%Body.1 (p: {A}) -> {A} {{\n"
        f"  %p.1 = {A} parameter(0)\n"
        f"  %r.2 = {A} all-reduce(%p.1), replica_groups={{}}, to_apply=%Add.1\n"
        f"  ROOT %n.3 = {A} negate(%r.2)\n"
        "}\n\n"
        "ENTRY %M.2 () -> f32[] {\n"
        f"  %a.1 = {A} parameter(0)\n"
        f"  %b.2 = {A} call(%a.1), to_apply=%Body.1\n"
        f"  %c.3 = {A} call(%b.2), to_apply=%Body.1\n"
        f"  ROOT %d.4 = {A} while(%c.3), condition=%Unknown.1, body=%Body.1\n"
        "}\n"
    )
    record = hlo.cost(text).work.record()
    assert record["collectives"] == {"all_reduce": {"count": 3, "bytes": 3 * BYTES}}
    assert record["elementwise"]["activations"]["fused_bytes"] == 3 * 2 * BYTES


def test_a_large_graph_is_read_in_a_moment() -> None:
    """BERT-large with its optimizer has 24,000 instructions, and was read in 0.5 s of one slow core."""
    lines = [f"%p.0 = {A} parameter(0)"]
    lines += [f"%v.{n} = {A} add({A} %v.{n - 1}, {A} %p.0)" for n in range(1, 24_000)]
    started = time.process_time()
    hlo.cost(module(lines))
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "dtype", ["f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e3m4"]
)
def test_every_kind_of_eight_bits_is_counted(dtype: str) -> None:
    """Names of XLA's types; one that is not known made a graph count nothing."""
    found = hlo.cost(
        f"HloModule m, entry_computation_layout={{({dtype}[2,3],{dtype}[3,5])->f32[2,5]}}\n\n"
        f"ENTRY %main {{\n  %a = {dtype}[2,3]{{1,0}} parameter(0)\n  %b = {dtype}[3,5]{{1,0}} parameter(1)\n"
        "  ROOT %c = f32[2,5]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    assert found.flops == {dtype: 60.0} and (found.input_bytes, found.output_bytes) == (21, 40)


def test_a_bounded_dynamic_dimension_counts_at_its_bound() -> None:
    """As memory is laid out for it."""
    found = hlo.cost(
        "HloModule m, entry_computation_layout={(f32[<=5,3])->f32[<=5,3]}\n\n"
        "ENTRY %main {\n  %p = f32[<=5,3]{1,0} parameter(0)\n  ROOT %a = f32[<=5,3]{1,0} add(%p, %p)\n}\n"
    )
    assert found.input_bytes == 60 and found.work.state.vector_elements == 15
