"""Why a graph is new, told from two HLO texts."""

from __future__ import annotations

import pytest

from neuron_sim.counters.why_new import Comparer, Reason


def module(
    batch: int = 8, dtype: str = "f32", constant: str = "2", operation: str = "add", start: int = 0
) -> str:
    """A small module as torch_xla dumps it."""
    x = f"{dtype}[{batch},4]"
    return f"""HloModule SyncTensors.9, buffer_donor={{ (0, {{}}) }}, entry_computation_layout={{({x}{{1,0}})->{x}}}

%Add.1 (x.2: f32[], y.3: f32[]) -> f32[] {{
  %x.2 = f32[] parameter(0)
  %y.3 = f32[] parameter(1)
  ROOT %add.4 = f32[] add(%x.2, %y.3)
}}

ENTRY %SyncTensors.9 (p0.5: {x}) -> {x} {{
  %p0.5 = {x}{{1,0}} parameter(0)
  %constant.6 = {dtype}[] constant({constant})
  %broadcast.7 = {x}{{1,0}} broadcast(%constant.6), dimensions={{}}
  %slice.8 = {dtype}[1,4]{{1,0}} slice(%p0.5), slice={{[{start}:{start + 1}], [0:4]}}
  ROOT %op.9 = {x}{{1,0}} {operation}(%p0.5, %broadcast.7), metadata={{op_type="aten__add" source_line={start}}}
}}
"""


def why(*texts: str, sources: tuple[str, ...] = ()) -> Reason:
    """The reason of the last of several graphs."""
    comparer = Comparer()
    places = sources or ("train.py:5",) * len(texts)
    for number, (text, place) in enumerate(zip(texts, places, strict=True)):
        reason = comparer.explain(f"hash{number}", place, text)
    return reason


def test_the_first_graph_is_new_because_it_is_the_first() -> None:
    """Nothing to compare with."""
    assert why(module()).kind == "first"


def test_a_changed_input_shape_is_told_with_both_shapes() -> None:
    """The input's number, what it was and what it is."""
    reason = why(module(batch=8), module(batch=3))
    assert (reason.kind, reason.detail) == ("shape", "input 0 was f32[8,4] and is f32[3,4]")
    assert reason.inputs == ((0, "f32[8,4]", "f32[3,4]"),)
    assert reason.than == "hash0"


@pytest.mark.parametrize(
    ("new", "kind", "words"),
    [
        (module(dtype="bf16"), "dtype", "input 0 was f32[8,4] and is bf16[8,4]"),
        (module(constant="3"), "scalar", "a constant was 2 (f32[]) and is 3 (f32[])"),
        (module(start=1), "scalar", "slice={[0:1], [0:4]} is now with slice={[1:2], [0:4]}"),
        (module(operation="multiply"), "control_flow", "+1 multiply, -1 add"),
    ],
)
def test_what_else_may_differ(new: str, kind: str, words: str) -> None:
    """A dtype, a number baked into the graph, other operations."""
    reason = why(module(), new)
    assert reason.kind == kind
    assert words in reason.detail or set(words.split(", ")) <= set(
        reason.detail.partition(": ")[2].split(", ")
    )


def test_the_closest_earlier_graph_is_compared_with() -> None:
    """Not the latest, when an earlier one differs less."""
    reason = why(module(), module(operation="multiply"), module(batch=3))
    assert (reason.kind, reason.than) == ("shape", "hash0")


def test_other_work_on_another_line_is_the_first_of_that_line() -> None:
    """An evaluation is no recompilation of the training."""
    reason = why(module(), module(operation="multiply"), sources=("train.py:5", "train.py:9"))
    assert (reason.kind, reason.detail) == ("first", "the first graph of train.py:9")


def test_a_text_that_is_no_module_explains_nothing_and_breaks_nothing() -> None:
    """Diagnosing must never end a job."""
    assert why(module(), "").kind
