"""Operations that run one by one, by NEURON_USE_EAGER_DEBUG_MODE=1 or the script: the log says what that costs."""

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
    # torch_xla's own mode is told once the script trains, and is no graph that grows: more steps than may go without an
    # end where operations wait for one.
    folder = tmp_path / "mode"
    by_mode = torchrun("eager.py", "mode", WINDTUNNEL_COUNTERS_DIR=str(folder))
    found = {record["finding"]: record for record in records(folder, "finding")}
    assert set(found) == {"eager_mode"} and "torch_xla.compile(" in found["eager_mode"]["advice"]
    assert [said["loss"] for said in by_mode.said] == [said["loss"] for said in lazily.said]
    for counted in (tmp_path, folder):
        assert not [step for step in records(counted, "step") if step["graphs"]]


def test_what_is_compiled_amid_eager_operations_is_counted(torchrun, tmp_path):
    """XLA's files of these are not taken for those of the step."""
    torchrun("eager.py", "compiled", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert not records(tmp_path, "finding")
    graphs = {graph["graph"]: graph for graph in records(tmp_path, "graph")}
    steps = [step for step in records(tmp_path, "step") if step["optimizer"]]
    assert [step["samples"] for step in steps] == [2] * 12
    assert all(any(graphs[name]["flops"] for name in step["graphs"]) for step in steps)
