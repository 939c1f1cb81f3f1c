"""WINDTUNNEL_REHEARSE_STEPS: passes end early, and what they would have been is found."""

from __future__ import annotations

import re

import pytest
from conftest import SCRIPTS, records

STEPS = 6
WORKERS = 2


def loaders_of(torchrun, folder, shape, workers=1):
    """What the first core wrote of the script's loaders: those that trained, the others, and the whole record."""
    launch = torchrun(
        "short.py",
        shape,
        workers=workers,
        WINDTUNNEL_COUNTERS_DIR=str(folder),
        WINDTUNNEL_REHEARSE_STEPS=str(STEPS),
    )
    # Should it be stopped, the latest one stays: that it was a rehearsal, and what had been shown by the end of a pass.
    *kept, seen = records(folder, "loaders")
    assert kept and all(record["rehearsed_steps"] == STEPS for record in kept)
    assert all(record["ended_early"] == bool(record["loaders"]) for record in kept)
    seen["kept"] = [[loader["passes"] for loader in record["loaders"]] for record in kept]
    trained = [loader for loader in seen["loaders"] if loader["trains"]]
    others = [loader for loader in seen["loaders"] if not loader["trains"]]
    seen["steps"] = sum(step["optimizer"] for step in records(folder, "step"))
    return trained, others, seen, launch


def test_epochs_and_evaluation_are_counted_and_the_script_ends_by_itself(torchrun, tmp_path):
    (train,), (evaluated,), seen, launch = loaders_of(torchrun, tmp_path, "epochs", WORKERS)
    assert launch.output.count("the end") == WORKERS
    # Once, though there are two cores, and before all that the script prints.
    assert launch.output.count("mean nothing") == 1
    assert launch.output.index("mean nothing") < launch.output.index("the end")
    assert not seen["ended_early"]
    assert (train["batches"], train["samples"], train["passes"], train["split"]) == (500, 8, 3, True)
    assert seen["steps"] == train["taken"] == STEPS + 2
    assert seen["kept"] == [[], [1], [1, 1], [2, 1], [2, 2], [3, 2], [3, 3]]
    # The evaluation data have no sampler: each core goes through all of them.
    assert (evaluated["batches"], evaluated["passes"], evaluated["split"]) == (5, 3, False)
    # What is read with the first step of a pass is not read in each step, as two passes of a step each would have it.
    late = [step.get("late", False) for step in records(tmp_path, "step") if step["optimizer"]]
    assert late == [False] * STEPS + [True] * 2


def test_a_plain_loader(torchrun, tmp_path):
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "plain")
    assert (train["batches"], train["passes"], seen["steps"]) == (63, 1, STEPS)


def test_gradients_may_come_of_autograd_grad(torchrun, tmp_path):
    """The loader was taken for one that evaluates: of what the script trains on, nothing was known."""
    (train,), others, seen, _ = loaders_of(torchrun, tmp_path, "differentiated")
    assert not others
    assert (train["batches"], train["passes"], seen["steps"]) == (500, 3, STEPS + 2)


def test_a_stream_has_no_length(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "stream")
    assert (train["batches"], train["taken"]) == (None, STEPS)


def test_a_limit_in_the_loop_is_read(torchrun, tmp_path):
    trained, _, _, _ = loaders_of(torchrun, tmp_path, "break")
    assert trained[0]["bound"] == 200


def test_a_script_that_counts_its_own_steps_ends_where_it_wants_to(torchrun, tmp_path):
    trained, _, seen, _ = loaders_of(torchrun, tmp_path, "while", WORKERS)
    assert sum(loader["taken"] for loader in trained) == seen["steps"] == 20
    assert trained[-1]["left"]


@pytest.mark.parametrize(
    ("shape", "steps", "samples"),
    [
        # MpDeviceLoader ends a step where the next batch is asked for: behind the last one none is.
        ("next", 2999, 8),
        ("next_of_generator", 2999, 8),
        ("next_again", 500, 16),
        ("made", 3000, 8),
        ("made_by_a_process", 3000, 8),
        ("made_on_device", 400, 8),
        # Every second turn of the inner loop ends a step: of four passes, each with the 8 samples of a call.
        ("made_in_two_loops", 120, 16),
        ("made_while", None, 8),
    ],
)
def test_where_no_loop_is_over_a_loader_those_around_the_steps_say_how_many_there_are(
    torchrun, tmp_path, shape, steps, samples
):
    """Its user had to say the size. Of batches that are made on the device no samples were known at all. A process of
    the script's own, which it would have ended after its loop, is ended, too.
    """
    (train,), others, seen, launch = loaders_of(torchrun, tmp_path, shape)
    assert seen["ended_early"] and len(others) == (shape == "next_of_generator")
    assert "was not rehearsed" in launch.output
    assert (train["bound"], train["samples"], train["batches"]) == (steps, samples, None)


def test_a_loop_behind_a_first_batch_is_one_over_the_loader(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "next_and_loop")
    assert (train["batches"], train["bound"], train["passes"]) == (500, None, 1)


def test_evaluation_between_such_steps_goes_on_as_often(torchrun, tmp_path):
    (train,), (evaluated,), seen, _ = loaders_of(torchrun, tmp_path, "made_and_evaluated")
    assert (train["bound"], seen["steps"], train["taken"]) == (600, STEPS, STEPS)
    assert (evaluated["inside"], evaluated["every"]) == (evaluated["passes"], 3)


def test_a_loop_that_ends_no_step_is_ended(torchrun, tmp_path):
    """As soon as that is known: no more steps make an answer. What is wrong is told as in a whole run."""
    _, _, seen, launch = loaders_of(torchrun, tmp_path, "endless", WORKERS)
    assert seen["ended_early"]
    assert "10 optimizer steps without an end (torch_xla.sync()) are enough" in launch.output


def test_accumulation_takes_batches_until_the_optimizer_has_made_steps(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "accumulate")
    assert train["taken"] == 30


def test_so_it_does_where_the_script_makes_its_batches(torchrun, tmp_path):
    """As nanoGPT does, with forty passes for a step: it was ended before the first, and priced all the same."""
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "made_accumulate")
    assert seen["ended_early"] and seen["steps"] == 30
    assert (train["bound"], train["samples"]) == (2999, 8)


def test_a_list_is_as_long_as_it_is(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "list")
    assert (train["batches"], train["taken"]) == (60, STEPS)


def test_passes_that_the_script_counts_are_no_steps(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "while_epochs")
    assert (train["passes"], train["bound"], train["bound_between"]) == (3, None, None)


def test_limits_are_told_apart(torchrun, tmp_path):
    """Of a pass, of all updates with accumulation, and one that is looked at between passes. A loss is none."""
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "limits")
    assert (train["passes"], train["bound_of_pass"]) == (3, 101)
    assert (train["bound"], train["bound_between"]) == (350, 700)


def test_a_loop_that_trains_and_evaluates_by_turns(torchrun, tmp_path):
    """On one line, and on the training data too."""
    (train,), others, _, _ = loaders_of(torchrun, tmp_path, "by_turns")
    assert (train["batches"], train["passes"]) == (500, 3)
    assert sorted((loader["batches"], loader["passes"]) for loader in others) == [(20, 3), (500, 3)]


def test_a_loop_over_several_loaders_is_named(torchrun, tmp_path):
    (train,), (other,), _, _ = loaders_of(torchrun, tmp_path, "zip")
    assert train["wrapped"] == other["wrapped"] == "zip"


def test_a_generator_hands_each_batch_to_the_loop_that_counts(torchrun, tmp_path):
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "generator", WORKERS)
    assert seen["ended_early"]
    assert (train["bound"], train["bound_between"]) == (300, None)


@pytest.mark.parametrize(
    ("shape", "bound", "of_pass", "wrapped"),
    [
        ("sliced", None, 100, None),
        ("sliced_pairs", None, 200, None),
        ("sliced_once", 300, None, None),
        ("cycled", None, None, "cycle"),
    ],
)
def test_a_slice_that_is_made_before_the_loop_is_its_bound(
    torchrun, tmp_path, shape, bound, of_pass, wrapped
):
    """Of each pass, also where the loop has two batches at once; of all passes, where it is made once."""
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, shape)
    assert (train["bound"], train["bound_of_pass"], train["wrapped"]) == (bound, of_pass, wrapped)


def test_a_slice_of_an_iterator_with_which_another_loop_goes_on_is_no_bound(torchrun, tmp_path):
    """The job was said to have the slice's hundred batches, and no more."""
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "slice_then_rest")
    assert (train["bound"], train["wrapped"]) == (None, "islice")


def test_a_generator_that_yields_from_a_loader_ends_with_it(torchrun, tmp_path):
    """It was ended as a loop that asks by itself, before its later passes."""
    (train,), _, seen, launch = loaders_of(torchrun, tmp_path, "handed_on")
    assert launch.output.count("the end") == 1 and not seen["ended_early"]
    assert (train["passes"], train["planned"], train["taken"]) == (3, 3, STEPS + 2)


def test_a_loader_that_is_counted_before_it_trains_has_no_pass_more(torchrun, tmp_path):
    """Nor is the first that trains cut to one step, as a later one would be."""
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "counted_first")
    assert (train["passes"], train["taken"], seen["steps"]) == (3, STEPS + 2, STEPS + 2)


def test_a_batch_that_is_only_looked_at_is_no_pass(torchrun, tmp_path):
    """Nor are its samples any step's."""
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "looked")
    assert (train["passes"], train["taken"], train["left_after"]) == (3, STEPS + 2, None)
    assert {step["samples"] for step in records(tmp_path, "step") if step["optimizer"]} == {8}
    assert seen["steps"] == STEPS + 2


def test_a_loop_that_tries_something_first_is_not_the_one_that_trains(torchrun, tmp_path):
    """Learning rates, a warm-up: its limit of four batches would be that of the whole job."""
    trained, _, _, _ = loaders_of(torchrun, tmp_path, "tried_first")
    shown = [(loader["passes"], loader["bound"], loader["planned"]) for loader in trained]
    assert shown == [(1, 4, None), (3, None, 3)]
    assert len({loader["line"] for loader in trained}) == 2


def test_evaluation_within_training(torchrun, tmp_path):
    (train,), (evaluated,), _, _ = loaders_of(torchrun, tmp_path, "inside")
    assert (train["inside"], evaluated["inside"], evaluated["every"]) == (0, 2, 3)
    assert evaluated["bound_of_pass"] == 11


def test_evaluation_that_turns_gradients_off_in_its_loop_ends_after_three_batches(torchrun, tmp_path):
    (train,), (evaluated,), _, _ = loaders_of(torchrun, tmp_path, "within")
    assert (train["passes"], train["taken"]) == (2, STEPS + 1)
    assert (evaluated["passes"], evaluated["taken"], evaluated["batches"]) == (2, 3 + 1, 20)


@pytest.mark.parametrize(
    ("shape", "enough", "planned", "evaluations"),
    [("fourteen", 3, 14, 3), ("at_each_fifth", 13, 90, 2)],
)
def test_many_passes_are_not_all_gone_through(torchrun, tmp_path, shape, enough, planned, evaluations):
    """Their number is read from the loop around them. Three show all, unless the script looks at their number."""
    (train,), (evaluated,), seen, launch = loaders_of(torchrun, tmp_path, shape)
    assert seen["ended_early"] and f"{enough} passes of {planned} are enough" in launch.output
    assert (train["passes"], train["planned"], evaluated["passes"]) == (enough + 1, planned, evaluations)


def test_thirteen_passes_are_gone_through_for_what_follows_them(torchrun, tmp_path):
    """A model that cannot be saved is found in a rehearsal, not at the end of the job."""
    (train,), _, seen, launch = loaders_of(torchrun, tmp_path, "thirteen", WORKERS)
    assert launch.output.count("the end") == WORKERS and not seen["ended_early"]
    assert (train["passes"], train["planned"]) == (13, 13)


def test_what_a_rehearsal_itself_causes_is_not_the_scripts(torchrun, tmp_path):
    """A script that stops when nothing improves has its own number of passes, what is read once a pass is not read in
    each step, and a smaller last batch is told though no pass got there.
    """
    (train,), (evaluated,), _, launch = loaders_of(torchrun, tmp_path, "stops", WORKERS)
    assert (train["passes"], train["planned"], train["last"], train["batches"]) == (3, 40, 6, 63)
    assert (evaluated["passes"], evaluated["split"], evaluated["last"]) == (3, True, 10)
    assert "on a device tensor in" not in launch.output
    assert "will end with a batch of 6 instead of 8" in launch.output


@pytest.mark.parametrize("shape", ["read_within", "read_after"])
def test_a_value_that_is_read_with_each_batch_of_an_evaluation_is_named(torchrun, tmp_path, shape):
    """As in a whole run; one that is read after each evaluation, of three on the same line, is none of the loop's."""
    *_, launch = loaders_of(torchrun, tmp_path, shape)
    text = (SCRIPTS / "short.py").read_text().splitlines()
    line = next(number for number, line in enumerate(text, 1) if "# line: within" in line)
    named = re.findall(r"warning: (short\.py:\d+): \.item\(\) on a device tensor in .* loop", launch.output)
    assert set(named) == ({f"short.py:{line}"} if shape == "read_within" else set()), launch.output


def test_workers_that_persist_are_not_read_by_the_pass_that_was_cut(torchrun, tmp_path):
    (train,), _, _, launch = loaders_of(torchrun, tmp_path, "persistent")
    assert (train["passes"], train["taken"]) == (3, STEPS + 2)
    assert "Traceback" not in launch.output


def test_a_model_that_is_saved_ends_no_step_of_the_loop(torchrun, tmp_path):
    """All steps became one of many batches; where the script itself ends one after four, they are what it wants."""
    for shape in ("saved", "grouped"):
        folder = tmp_path / shape
        folder.mkdir()
        *_, launch = loaders_of(torchrun, folder, shape)
        is_named = "the optimizer made 7 steps, and nothing ended a step" in launch.output
        assert is_named == (shape == "saved"), launch.output


def test_a_pass_that_ends_steps_in_its_middle_is_one(torchrun, tmp_path):
    """Forward and backward: the parts belong to the step that the optimizer ends, whose batch came in the first."""
    environment = {"WINDTUNNEL_COUNTERS_DIR": str(tmp_path), "WINDTUNNEL_REHEARSE_STEPS": "6"}
    torchrun("cut_passes.py", workers=2, **environment)
    steps = [step for step in records(tmp_path, "step") if step["graphs"]]
    parts = [step for step in steps if step.get("part")]
    whole = [step for step in steps if step["optimizer"]]
    assert len(whole) == 6 and {(step["samples"], step["updated"]) for step in whole} == {(2, True)}
    assert len(parts) == 6 * 2 and not any(step["optimizer"] or step["samples"] for step in parts)
    (loader,) = [*records(tmp_path, "loaders")][-1]["loaders"]
    assert (loader["samples"], loader["taken"], loader["bound"]) == (2, 6, 42)
    # The first model is put aside for another: what reads the loop's variables does not keep it.
    assert {found["count"] for found in records(tmp_path, "parameters")} == {8 * 16 + 16 + 16 * 8 + 8}
