"""A loop's work is that of all its rounds, where their number is written in the graph."""

from __future__ import annotations

import pytest

from neuron_sim.counters import hlo

ROUNDS, SIDE = 7, 16
TUPLE = f"(s64[], f32[{SIDE},{SIDE}]{{1,0}}, f32[{ROUNDS},{SIDE},{SIDE}]{{2,1,0}})"
ROW = SIDE * SIDE * 4


def scanned(limit: str) -> str:
    """What torch_xla makes of `scan`: c = c @ c in each round, of which each is kept."""
    matrix, stack = f"f32[{SIDE},{SIDE}]{{1,0}}", f"f32[{ROUNDS},{SIDE},{SIDE}]{{2,1,0}}"
    row = f"f32[1,{SIDE},{SIDE}]{{2,1,0}}"
    return f"""HloModule M.1, entry_computation_layout={{({matrix})->({stack})}}

%Body.1 (p: {TUPLE}) -> {TUPLE} {{
  %p.1 = {TUPLE} parameter(0)
  %n.2 = s64[] get-tuple-element({TUPLE} %p.1), index=0
  %one.3 = s64[] constant(1)
  %next.4 = s64[] add(s64[] %n.2, s64[] %one.3)
  %c.5 = {matrix} get-tuple-element({TUPLE} %p.1), index=1
  %all.6 = {stack} get-tuple-element({TUPLE} %p.1), index=2
  %d.7 = {matrix} dot({matrix} %c.5, {matrix} %c.5), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %row.8 = {row} reshape({matrix} %d.7)
  %zero.9 = s64[] constant(0)
  %kept.10 = {stack} dynamic-update-slice({stack} %all.6, {row} %row.8, s64[] %n.2, s64[] %zero.9, s64[] %zero.9)
  ROOT %t.11 = {TUPLE} tuple(s64[] %next.4, {matrix} %d.7, {stack} %kept.10)
}}

%Condition.1 (p: {TUPLE}) -> pred[] {{
  %p.1 = {TUPLE} parameter(0)
  %n.2 = s64[] get-tuple-element({TUPLE} %p.1), index=0
  %limit.3 = s64[] {limit}
  ROOT %c.4 = pred[] compare(s64[] %n.2, s64[] %limit.3), direction=LT
}}

ENTRY %M.2 (p: {matrix}) -> {stack} {{
  %p.1 = {matrix} parameter(0)
  %zero.2 = s64[] constant(0)
  %nothing.3 = f32[] constant(0)
  %all.4 = {stack} broadcast(f32[] %nothing.3), dimensions={{}}
  %t.5 = {TUPLE} tuple(s64[] %zero.2, {matrix} %p.1, {stack} %all.4)
  %w.6 = {TUPLE} while({TUPLE} %t.5), condition=%Condition.1, body=%Body.1
  ROOT %r.7 = {stack} get-tuple-element({TUPLE} %w.6), index=2
}}
"""


@pytest.mark.parametrize(
    ("limit", "rounds"),
    [(f"constant({ROUNDS})", ROUNDS), ("get-tuple-element((s64[]) %p.1), index=0", 1)],
)
def test_a_loop_counts_as_many_rounds_as_the_graph_tells(limit: str, rounds: int) -> None:
    """`nn.GRU` is such a loop over its sequence: of 512 tokens one was counted."""
    assert hlo.cost(scanned(limit)).flops == {"fp32": rounds * 2.0 * SIDE**3}


def test_a_row_that_a_loop_keeps_is_all_that_it_writes() -> None:
    """And reads: not all that it has kept, in each round."""
    work = hlo.cost(scanned(f"constant({ROUNDS})")).work
    zeros = ROUNDS * ROW
    counters = 2 * 8 + 8  # the two numbers of a round, read and written, and compared
    assert work.activations.fused_bytes + work.state.fused_bytes == pytest.approx(
        ROUNDS * (2 * ROW) + zeros, abs=ROUNDS * 4 * counters
    )
