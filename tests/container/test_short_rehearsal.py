"""WINDTUNNEL_REHEARSE_STEPS: passes end early, and what they would have been is found."""

from __future__ import annotations

import json

import pytest

STEPS = 6
WORKERS = 2


def loaders_of(torchrun, folder, shape, **environment):
    """What the first core wrote of the script's loaders: those that trained, the others, and the whole record."""
    launch = torchrun(
        "short.py",
        shape,
        WINDTUNNEL_COUNTERS_DIR=str(folder),
        WINDTUNNEL_REHEARSE_STEPS=str(STEPS),
        **environment,
    )
    records = [json.loads(line) for line in (folder / "rank-0.jsonl").read_text().splitlines()]
    (seen,) = [record for record in records if record["kind"] == "loaders"]
    trained = [loader for loader in seen["loaders"] if loader["trains"]]
    others = [loader for loader in seen["loaders"] if not loader["trains"]]
    seen["steps"] = sum(bool(record.get("optimizer")) for record in records if record["kind"] == "step")
    return trained, others, seen, launch


def test_epochs_and_evaluation_are_counted_and_the_script_ends_by_itself(torchrun, tmp_path):
    (train,), (evaluated,), seen, launch = loaders_of(torchrun, tmp_path, "epochs")
    assert launch.output.count("the end") == WORKERS
    assert not seen["ended_early"]
    assert (train["batches"], train["samples"], train["passes"], train["split"]) == (500, 8, 3, True)
    assert seen["steps"] == train["taken"] == STEPS + 2
    # The evaluation data have no sampler: each core goes through all of them.
    assert (evaluated["batches"], evaluated["passes"], evaluated["split"]) == (5, 3, False)


def test_a_plain_loader(torchrun, tmp_path):
    (train,), _, seen, _ = loaders_of(torchrun, tmp_path, "plain")
    assert (train["batches"], train["passes"], seen["steps"]) == (63, 1, STEPS)


def test_a_stream_has_no_length(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "stream")
    assert (train["batches"], train["taken"]) == (None, STEPS)


def test_a_limit_in_the_loop_is_read(torchrun, tmp_path):
    trained, _, _, _ = loaders_of(torchrun, tmp_path, "break")
    assert trained[0]["bound"] == 200


def test_a_script_that_counts_its_own_steps_ends_where_it_wants_to(torchrun, tmp_path):
    trained, _, seen, _ = loaders_of(torchrun, tmp_path, "while")
    assert sum(loader["taken"] for loader in trained) == seen["steps"] == 20
    assert trained[-1]["left"]


@pytest.mark.parametrize("shape", ["next", "made"])
def test_a_loop_without_passes_is_ended(torchrun, tmp_path, shape):
    _, _, seen, launch = loaders_of(torchrun, tmp_path, shape)
    assert seen["ended_early"] and seen["steps"] == STEPS
    assert "was not rehearsed" in launch.output


def test_accumulation_takes_batches_until_the_optimizer_has_made_steps(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "accumulate")
    assert train["taken"] == 30


def test_a_list_is_as_long_as_it_is(torchrun, tmp_path):
    (train,), _, _, _ = loaders_of(torchrun, tmp_path, "list")
    assert (train["batches"], train["taken"]) == (60, STEPS)
