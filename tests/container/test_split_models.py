"""A model whose layers several cores share, as NxD Core's are: who shares what is no mistake, and is counted."""

from __future__ import annotations

import pytest
from conftest import records


@pytest.mark.parametrize(
    ("how", "told"), [("apart", set()), ("same", {"rank 2 got the same first 3 batches"})]
)
def test_only_copies_of_the_model_need_other_batches(torchrun, tmp_path, how, told):
    """Cores that share its layers share the batches: they are no finding, a second copy that has them is."""
    launch = torchrun("split.py", how, workers=4, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["message"].partition(" as rank 0")[0] for record in records(tmp_path, "finding")}
    assert found == told
    assert ("got the same" in launch.output) == bool(told)


def test_microbatches_are_the_batch_and_not_besides_it(torchrun, tmp_path):
    """Each pass has its piece's samples; the loader is the script's own, and nothing is a loader of pieces."""
    torchrun("split.py", "pieces", workers=4, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    steps = records(tmp_path, "step")
    assert [step["samples"] for step in steps if step["samples"]] == [2] * 40
    assert all(step["microbatch"] for step in steps if step["samples"])
    assert sum(step["optimizer"] and not step.get("updated", False) for step in steps) == 40
    (loader,) = records(tmp_path, "loaders")[-1]["loaders"]
    assert (loader["batches"], loader["samples"], loader["taken"]) == (10, 8, 10)
    assert loader["trains"] and loader["split"] and loader["line"].startswith("split.py")
    held = records(tmp_path, "parameters")[-1]
    stage, other = 6 * 8 * 2 + 6, 3 * 6 + 3
    assert (held["count"], held["model"], held["frozen"], held["cores"]) == (6 * 8 + 6, stage + other, 0, 2)
    config = {"model_type": "llama", "hidden_size": 8}
    split = {"tensor_parallel": 2, "pipeline_parallel": 1, "zero1": False, "lora_rank": 4}
    assert held["split"] == {**split, "config": config}


def test_a_short_rehearsal_does_not_cut_a_batch_in_pieces(torchrun, tmp_path):
    """It ends the passes over the script's own loader: a pipeline waits for all its microbatches."""
    torchrun(
        "split.py", "pieces", workers=4, WINDTUNNEL_COUNTERS_DIR=str(tmp_path), WINDTUNNEL_REHEARSE_STEPS="3"
    )
    (loader,) = records(tmp_path, "loaders")[-1]["loaders"]
    assert (loader["taken"], loader["batches"], loader["left"]) == (3, 10, False)
    assert [step["samples"] for step in records(tmp_path, "step") if step["samples"]] == [2] * 12
