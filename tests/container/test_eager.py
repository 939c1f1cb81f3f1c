"""NEURON_USE_EAGER_DEBUG_MODE=1: operations run one by one, and the log says what that costs."""

from __future__ import annotations

from conftest import records


def test_operations_run_when_their_line_runs_and_nothing_is_counted(torchrun, tmp_path):
    """Also if the script sets it, before it imports torch_xla; two cores compute what they compute lazily."""
    lazily = torchrun("eager.py")
    assert [(said["eager"], said["lazy"]) for said in lazily.said] == [(False, False)] * 2
    assert "eager_debug" not in lazily.output and "EAGER" not in lazily.output
    by_job = torchrun("eager.py", NEURON_USE_EAGER_DEBUG_MODE="1", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    by_script = torchrun("eager.py", "set")
    for launch in (by_job, by_script):
        assert [(said["eager"], said["lazy"]) for said in launch.said] == [(True, False)] * 2
        assert [said["loss"] for said in launch.said] == [said["loss"] for said in lazily.said]
        assert (
            launch.output.count("warning: NEURON_USE_EAGER_DEBUG_MODE: each operation") == 2
        )  # when found, at the end
    assert not records(tmp_path, "graph")
    assert not [step for step in records(tmp_path, "step") if step["graphs"]]
