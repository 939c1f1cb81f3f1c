"""Which recompilations are worth a warning, and that each is said once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.diagnostics.findings import Finding, Findings, worst_first
from neuron_sim.diagnostics.recompiles import Recompilations

FIRST = Reason("first", "the first graph")
SHAPE = Reason("shape", "input 0 was f32[8,4] and is f32[3,4]")
NUMBER = Reason("scalar", "a constant was 0.01 and is 0.02")
OTHER = Reason("control_flow", "other operations: +1 add")


def run(steps: list[list[Reason]], loader: Loader | None = None, passes: int = 1) -> list[Finding]:
    """What is found in steps, or passes of one, that compile graphs for these reasons, all on one line.

    ``loader``: whose batch the last of them computes with.
    """
    watched = Recompilations()
    found = []
    for number, reasons in enumerate(steps, start=1):
        for reason in reasons:
            watched.graph("train.py:7", reason, 0.5, loader=loader if number == len(steps) else None)
        found += watched.step(accumulates=number % passes > 0)
    return found


def ragged(*sizes: int) -> Loader:
    """A loader that has given batches of these sizes."""
    loader = Loader(made_at="train.py:3")
    for size in sizes:
        loader.came(size, "train.py:6")
    return loader


def test_warming_up_is_no_finding() -> None:
    """The first steps differ: no optimizer state, then some; many graphs a step where collectives cut it."""
    assert run([[FIRST, OTHER, OTHER, OTHER, OTHER, OTHER], [OTHER, OTHER], [], [], [], []]) == []


def test_a_warm_loop_that_compiles_again_is_named() -> None:
    """From the second time on, with count and seconds: once may be on purpose."""
    warming = [[FIRST], [SHAPE], [], []]
    assert run([*warming, [SHAPE], [], []]) == []
    (found,) = run([*warming, [SHAPE], [], [SHAPE]])
    assert (found.kind, found.severity, found.line, found.count) == ("recompiles", "warning", "train.py:7", 2)
    assert found.seconds == 1.0
    assert SHAPE.detail in found.message
    assert "2 graphs for the same cause in 2 of 7 steps" in found.message


def test_many_graphs_of_one_step_are_no_sign_that_it_goes_on() -> None:
    """Layers of one model, a graph each, and an evaluation's two meters: no batch had another shape."""
    assert run([[FIRST], [], [], [*[SHAPE] * 31, NUMBER], [], []]) == []


def test_a_set_up_warms_nothing_but_itself() -> None:
    """Wrapping a model ends steps too, of another line: the training after it still has its own warming up."""
    watched = Recompilations()
    found = []
    steps = [[FIRST], [], [], [FIRST, *[SHAPE] * 23], [SHAPE], [], [], [SHAPE], [SHAPE]]
    for number, reasons in enumerate(steps):
        for reason in reasons:
            watched.graph("train.py:2" if number < 3 else "train.py:7", reason, 0.5)
        found.append(watched.step())
    assert not any(found[:-1])
    assert found[-1][0].count == 2  # and not those of its warming up


@pytest.mark.parametrize("passes", [2, 3, 8, 32])
def test_gradient_accumulation_warms_up_for_two_of_its_steps(passes: int) -> None:
    """The first pass, the others and the last are graphs of their own, without and with gradients and state."""
    once = [[OTHER], [OTHER], *[[]] * (passes - 2)]
    cycle = [[OTHER], *[[]] * (passes - 2), [OTHER]]
    quiet: list[list[Reason]] = [[]] * (4 * passes)
    assert run([[FIRST], *once[1:-1], [OTHER], *cycle, [OTHER], *quiet], passes=passes) == []
    changing = [[FIRST], *[[OTHER]] * (5 * passes)]
    assert {one.severity for one in run(changing, passes=passes)} == {"warning"}


def test_a_loop_that_never_gets_warm_is_named() -> None:
    """Each step another length."""
    found = run([[FIRST], *[[SHAPE]] * 4])
    assert [one.severity for one in found] == ["warning"]


def test_a_number_that_changes_in_each_step_is_named_in_a_short_rehearsal() -> None:
    """The first two of its five warm up."""
    assert [one.severity for one in run([[FIRST], [OTHER], *[[NUMBER]] * 3])] == ["warning"]
    assert run([[FIRST], [OTHER], *[[NUMBER]] * 2]) == []


def grown(sizes: list[tuple[int, int]]) -> list[Finding]:
    """What is found of graphs of so many instructions and bytes of input, all of one step and line."""
    watched = Recompilations()
    found = (watched.grown("train.py:7", "", *size, 0.5) for size in sizes)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("more", [(0, 8), (126, 640), (126, 0)])
def test_a_sequence_that_grows_in_one_step_is_named(more: tuple[int, int]) -> None:
    """Token by token: its input alone, or with all that led to it, as nothing ends a step."""
    found = grown([(900, 7), *((50 + n * more[0], 6000 + n * more[1]) for n in range(10))])
    assert [(one.kind, one.line, one.count) for one in found] == [
        ("growing_graphs", "train.py:7", count) for count in (8, 9, 10)
    ]
    assert found[-1].seconds == 5.0


def test_a_sequence_need_not_grow_by_the_same() -> None:
    """What is computed of a token hangs on its values: a mask that is empty is another graph."""
    sizes = [(13, 664)]
    for n in range(10):
        sizes.append((sizes[-1][0] + (63, 69)[n % 2], sizes[-1][1] + (16, 80)[n % 2]))
    assert [one.count for one in grown(sizes)] == [8, 9, 10, 11]


def test_layers_that_become_larger_are_no_sequence() -> None:
    """Each by another amount, or some of them alike, or smaller again."""
    assert grown([(50 + 2**n, 100 * n) for n in range(20)]) == []
    assert grown([(50, 100 * (n % 7)) for n in range(20)]) == []
    watched = Recompilations()
    for n in range(20):
        assert watched.grown("train.py:7", "", 50, 100 * n, 0.5) is None
        watched.step()


def test_lines_that_compile_for_one_loaders_batches_are_one_finding() -> None:
    """A read cuts the step, so each length compiles two graphs of two lines; another loader's are another finding."""
    lengths = replace(SHAPE, inputs=((0, "f32[8,4]", "f32[8,3]"),))
    watched, padded, other = Recompilations(), Loader(), Loader()
    found = []
    for reason in (FIRST, *[lengths] * 5):
        watched.graph("train.py:9", reason, 0.5, loader=padded)
        watched.graph("train.py:7", reason, 1.0, loader=padded)
        watched.graph("train.py:20", reason, 2.0, loader=other)
        found += watched.step()
    told = {one.line: one for one in found}
    assert {line: (one.count, one.seconds) for line, one in told.items()} == {
        "train.py:9": (10, 7.5),
        "train.py:20": (5, 10.0),
    }
    assert "steps keep compiling (also at train.py:7): 10 graphs" in told["train.py:9"].message
    assert "in 5 of 6 steps" in told["train.py:9"].message


def test_loops_inside_of_a_library_are_told_apart() -> None:
    """`trainer.train()` is one line of the script: what its loops compile while they warm up does not add up."""
    watched = Recompilations()
    found = []
    for step in range(8):
        watched.graph(
            "train.py:7", FIRST if step < 4 else OTHER, 0.5, f"loop{step % 4} of transformers/trainer.py:9"
        )
        found += watched.step()
    assert found == []


def test_the_tensor_that_an_evaluation_joins_is_named() -> None:
    """The library's place, and its own argument: there is nothing in the script to pad."""
    watched = Recompilations()
    found = []
    for reason in (FIRST, *[SHAPE] * 4):
        watched.graph("train.py:7", reason, 0.5, "evaluation_loop of transformers/trainer.py:4260")
        found += watched.step()
    (said,) = found
    assert "(in evaluation_loop of transformers/trainer.py:4260)" in said.message
    assert "eval_accumulation_steps=1" in said.advice


def test_other_work_on_a_warm_line_is_let_pass() -> None:
    """A function that trains and evaluates runs other operations now and then."""
    assert run([[FIRST], [], [], [OTHER, OTHER], [OTHER], []]) == []


def test_a_ragged_batch_that_lowers_to_other_operations_is_one_all_the_same() -> None:
    """XLA may need a transpose more for another batch size: that is no other work of the script."""
    (found,) = run([[FIRST], [], [], [OTHER]], ragged(8, 8, 3))
    assert (found.kind, found.line) == ("ragged_batch", "train.py:3")


def test_a_ragged_batch_names_where_the_loader_was_made() -> None:
    """At once, also before the loop is warm: the batch is smaller than the others."""
    (found,) = run([[FIRST], [SHAPE]], ragged(8, 8, 3))
    assert (found.kind, found.line) == ("ragged_batch", "train.py:3")
    assert "drop_last=True at train.py:3" in found.advice
    assert "iterated at train.py:6" in found.message
    assert "3 instead of 8" in found.message


def test_what_collectives_cut_is_one_graph() -> None:
    """As trn1 compiles it, and `uncut` has it: FSDP's seven layers made eleven of a ragged batch's one."""
    watched = Recompilations()
    watched.graph("train.py:7", FIRST, 0.5, whole=0)
    assert watched.step() == []
    loader = ragged(8, 8, 3)
    for _ in range(11):
        watched.graph("train.py:7", SHAPE, 0.5, loader=loader, whole=1)
    found = watched.step()
    assert (found[-1].kind, found[-1].count, found[-1].seconds) == ("ragged_batch", 1, 5.5)
    assert "1 more graph (" in found[-1].message
    for whole in range(2, 6):
        for _ in range(3):
            watched.graph("train.py:7", SHAPE, 0.5, whole=whole)
        found = watched.step()
    assert (found[-1].kind, found[-1].count) == ("recompiles", 4)


def test_a_ragged_batch_is_no_cause_of_graphs_before_and_after_it() -> None:
    """Where nothing ends a step, all are judged together."""
    watched, loader = Recompilations(), Loader(made_at="train.py:3")
    for number, size in enumerate((8, 8, 3, 8, 8, 3, 8)):
        loader.came(size, "train.py:6")
        watched.graph("train.py:7", OTHER if number else FIRST, 0.5, loader=loader)
    loader.came(3, "train.py:6")
    for _ in "weight", "bias":  # saved after the loop
        watched.graph("train.py:9", OTHER, 0.5, loader=loader)
    found = watched.step()
    assert {one.kind for one in found} == {"ragged_batch"}
    assert found[-1].count == 2
    assert "a batch of 3 instead of 8" in found[-1].message


def test_a_loader_whose_batches_vary_by_design_is_not_ragged() -> None:
    """Many sizes are dynamic shapes."""
    loader = Loader()
    for size in (8, 5, 7, 3):
        loader.came(size, "?")
    assert not loader.ragged


def finding(line: str, severity: str = "warning", seconds: float = 0.0) -> Finding:
    return Finding("recompiles", severity, line, "message.", "advice.", 1, seconds)


def test_a_finding_of_no_line_names_none() -> None:
    """What one cannot point at is said without a place."""
    assert finding("?").text == "warning: message. advice."


def test_a_finding_is_said_once_and_summed_up_worst_first() -> None:
    """However often it is noted; errors before warnings, then what cost most."""
    said: list[str] = []
    written: list[dict[str, Any]] = []
    findings = Findings(written.append, said.append)
    for seconds in (1.0, 2.0, 3.0):
        findings.note(finding("a.py:1", seconds=seconds))
    findings.note(finding("b.py:1", seconds=9.0))
    findings.note(finding("c.py:1", "note"))
    findings.note(finding("d.py:1", "error"))
    assert [line.split(": ")[1] for line in said] == ["a.py:1", "b.py:1", "d.py:1"]
    del said[:], written[:]
    findings.close()
    assert [record["line"] for record in written] == ["d.py:1", "b.py:1", "a.py:1", "c.py:1"]
    assert written[2]["seconds"] == 3.0
    assert "worst first (4 found" in said[0]


def test_a_wrong_result_stands_before_lost_seconds() -> None:
    """Cores that train on the same data cost no second more here, and waste all but one on trn1."""
    slow = finding("a.py:1", seconds=20.0)
    assert sorted([slow, replace(slow, kind="same_data", seconds=0.0)], key=worst_first)[1] is slow


def test_the_log_is_never_flooded() -> None:
    """A thousand lines that compile: twenty warnings, and a summary of ten."""
    said: list[str] = []
    findings = Findings(lambda _: None, said.append)
    for number in range(1000):
        findings.note(finding(f"a.py:{number}"))
    assert len(said) == 20
    findings.close()
    assert len(said) == 20 + 1 + 10 + 1


def test_nothing_found_nothing_said() -> None:
    """A clean job's log stays clean."""
    said: list[str] = []
    Findings(lambda _: None, said.append).close()
    assert said == []
