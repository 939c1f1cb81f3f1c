"""What trn1 would tell too late: found while the script runs, with the line to change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import SCRIPTS, records

GIB = 2**30
COMPUTED_AGAIN = r"such as the forward pass, is computed again\. .* separate graphs \d+ times"


def line_of(script: str, mark: str) -> str:
    """``script.py:12`` of the line that a comment marks."""
    lines = (SCRIPTS / script).read_text().splitlines()
    return f"{script}:{next(number for number, text in enumerate(lines, 1) if f'# line: {mark}' in text)}"


def findings(folder: Path) -> list[dict]:
    """Without that input or compiling was slow, which it is on a machine that does much else."""
    slow = ("input_bound", "slow_compile")
    return [record for record in records(folder, "finding") if record["finding"] not in slow]


def test_a_ragged_batch_and_a_value_read_in_the_loop_are_named(torchrun, tmp_path):
    """Both lines, in the log once when noticed and once at the end; what a step's closure reads is as advised. A value
    that is no number is told of either.
    """
    launch = torchrun("too_late.py", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record for record in findings(tmp_path)}
    assert found["ragged_batch"]["line"] == line_of("too_late.py", "made")
    assert line_of("too_late.py", "iterated") in found["ragged_batch"]["message"]
    assert "drop_last=True" in found["ragged_batch"]["advice"]
    read = found["host_read"]
    assert (read["line"], read["count"]) == (line_of("too_late.py", "read"), 10)
    assert "add_step_closure" in read["advice"]
    assert re.search(COMPUTED_AGAIN, read["message"]), "though here a collective has computed it"
    assert "in closures: 10" in launch.output
    lost = {record["line"]: record for record in findings(tmp_path) if record["finding"] == "no_number"}
    assert set(lost) == {line_of("too_late.py", "read"), line_of("too_late.py", "closure")}
    for line, how in (("read", ".item()"), ("closure", ".tolist()")):
        message = lost[line_of("too_late.py", line)]["message"]
        assert message.startswith(f"{how} has read nan since training step 6 (5 times).")
    assert set(found) == {"ragged_batch", "host_read", "no_number"}
    for kind in found.values():
        said = f"warning: {kind['line']}: {kind['message']}"[:60]
        assert len([line for line in launch.output.splitlines() if said in line]) == 2, launch.output
    assert launch.output.count("worst first") == 1
    # The smaller batch's graph says which input has another shape.
    reasons = [graph["reason"] for graph in records(tmp_path, "graph")]
    assert reasons[0]["kind"] == "first"
    shapes = [reason["detail"] for reason in reasons if reason["kind"] == "shape"]
    assert any("was f32[8,32] and is f32[3,32]" in detail for detail in shapes)


def test_what_was_told_of_a_line_ends_with_its_final_figures(torchrun, tmp_path):
    """Also of one that reads in each batch of an evaluation, few of all steps; and which file of torch reads for it."""
    script = tmp_path / "evaluates.py"
    script.write_text(
        "import torch, torch_xla\n"
        "import torch_xla.distributed.parallel_loader as pl\n"
        "from torch.utils.tensorboard._convert_np import make_np\n"  # as SummaryWriter.add_scalar calls it
        "device = torch_xla.device()\n"
        "model = torch.nn.Linear(4, 2).to(device)\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(3):\n"
        "    for batch in pl.MpDeviceLoader([torch.ones(2, 4)] * 16, device):\n"
        "        model(batch).sum().backward()\n"
        "        optimizer.step()\n"
        "    for batch in pl.MpDeviceLoader([torch.ones(2, 4)] * 5, device):\n"
        "        make_np(model(batch).sum())\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    told = [record["message"] for record in findings(tmp_path) if record["finding"] == "host_read"]
    assert (
        ": 3 times in 3 steps," in told[0]
        and " in a loop that only evaluates: 15 times in 15 steps," in told[-1]
    ), told
    assert told[0].startswith(".cpu() (in torch/utils/tensorboard/_convert_np.py) on a device tensor in ")


@pytest.mark.parametrize(("how", "graphs"), [("sharded", "1 more graph"), ("unended", "2 more graphs")])
def test_a_ragged_batch_has_the_graphs_that_it_adds_on_trn1(torchrun, tmp_path, how, graphs):
    """One where collectives cut it here, and none of those that are new before and after it in a step without end."""
    torchrun("ragged.py", how, workers=2 if how == "sharded" else 1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record for record in findings(tmp_path)}["ragged_batch"]
    assert found["line"] == line_of("ragged.py", "made")
    assert f"ends with a batch of 6 instead of 16: another shape, so {graphs} (" in found["message"]


def test_batches_of_any_kind_reach_the_script_as_they_are(torchrun):
    """Iterators are not used up, and objects with attributes of the names that tensors have are no error."""
    (said,) = torchrun("batches.py", workers=1).said
    assert said["zipped"] == [2, 2] and said["generated"] == [32, 32]
    assert said["objects"] == ["Values", "Values"]
    assert said["sizes"] == [8, 7, 6, 1, 0, 0, 0, 0, 4]


def test_dynamic_shapes_fallbacks_branches_and_slow_input_are_named(torchrun, tmp_path):
    """A loop that never gets warm is noticed while it runs; an operation that XLA lacks has its line."""
    torchrun("shapes.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {(record["finding"], record["line"]): record for record in records(tmp_path, "finding")}
    assert "padding" in found["recompiles", line_of("shapes.py", "dynamic")]["advice"]
    branch = found["host_read", line_of("shapes.py", "branch")]
    assert "`if tensor:`" in branch["message"]
    assert "separate graphs" in branch["message"]
    assert "again" not in branch["message"]  # the product is there by then
    fallback = found["cpu_fallback", line_of("shapes.py", "fallback")]
    assert "aten::nonzero" in fallback["message"]
    slow = found["input_bound", line_of("shapes.py", "slow")]
    assert slow["seconds"] > 0.5
    assert "num_workers" in slow["advice"]
    assert "pl.MpDeviceLoader(loader, device)" in slow["advice"]
    assert "prefetch_size" not in slow["advice"]  # there is no MpDeviceLoader whose size could be raised


def test_an_operation_that_xla_lacks_has_its_line_also_on_values_that_are_there(torchrun, tmp_path):
    """Nothing pending runs before it, so torch_xla names no line. What XLA has with other arguments is told so."""
    torchrun("lacking.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["line"]: record for record in findings(tmp_path) if record["finding"] == "cpu_fallback"}
    assert sorted(found) == sorted(
        line_of("lacking.py", mark) for mark in ("mask", "unique", "addmm", "most", "step")
    )
    assert "aten::nonzero has no XLA form" in found[line_of("lacking.py", "mask")]["message"]
    assert "aten::_unique2" in found[line_of("lacking.py", "unique")]["message"]
    addmm = found[line_of("lacking.py", "addmm")]
    assert "aten::addmm has an XLA form only with alpha and beta of 1" in addmm["message"]
    assert "beta * input + alpha * (mat1 @ mat2)" in addmm["advice"]
    most = found[line_of("lacking.py", "most")]
    assert "include_self=True" in most["message"]
    step = found[line_of("lacking.py", "step")]
    assert step["count"] == 4 and "(in torch/optim/rprop.py" in step["message"]
    assert "capturable=True" in step["advice"]  # as the second one has it


def test_a_text_that_grows_is_told_while_it_does(torchrun, tmp_path):
    """The script calls nothing that is listened to for as long as it lasts, and no step ends. A short rehearsal says
    where it is.
    """
    environment = {"WINDTUNNEL_COUNTERS_DIR": str(tmp_path), "WINDTUNNEL_REHEARSE_STEPS": "6"}
    launch = torchrun("growing.py", workers=1, **environment)
    found = {record["finding"]: record for record in findings(tmp_path)}["growing_graphs"]
    assert (found["severity"], found["line"]) == ("warning", line_of("growing.py", "cut"))
    before, _, after = launch.output.partition("generated")
    assert f"warning: {found['line']}: graphs keep growing: 8 graphs" in before
    said = r"short rehearsal: training step 1 has not ended after \d+ s \(.*\)\. The script is at growing\.py:\d+\."
    assert 1 <= len(re.findall(said, before)) < 6
    assert f"{found['count']} graphs so far" in after and found["count"] > 8


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("cpu", {("device_unused", "step")}),
        ("before", {("optimizer_before_move", "optimizer")}),
        ("saved", {("optimizer_before_move", "left")}),
        ("forgotten", {("no_gradients", "exchanged")}),
        ("apart", {("no_exchange", "step"), ("same_data", "made")}),
        ("by_hand", {("no_exchange", "backward"), ("same_data", "made")}),
        ("drawn", {("same_data", "made")}),
        ("streamed", {("no_exchange", "step"), ("same_data", "made")}),
        ("own", {("no_exchange", "step"), ("same_data", "went")}),
        ("unseeded", {("unequal_weights", "moved")}),
        ("placeholder", set()),
        ("unseeded_placeholder", {("unequal_weights", "moved")}),
        ("sent", set()),
        ("averaged", set()),
        ("ported", set()),
    ],
)
def test_a_script_that_is_not_ported_is_told_while_it_runs(torchrun, tmp_path, how, expected):
    """Each with its line, in the log before the script ends, and again in the summary."""
    # Other weights are found whatever the device makes of them: those of two scripts are bf16 there.
    launch = torchrun("unported.py", how, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record["line"] for record in findings(tmp_path)} if expected else {}
    assert set(found.items()) == {(kind, line_of("unported.py", mark)) for kind, mark in expected}
    if how == "before":
        assert f"({line_of('unported.py', 'moved')})" in launch.output
    assert how.startswith("unseeded") is (
        "ranks 0 and 1 sum their gradients, but their weights differ (weight)" in launch.output
    )
    assert (how == "streamed") is ("takes no sampler" in launch.output)
    assert (how == "own") is ("Let this loader give each core a part" in launch.output)
    assert (how == "drawn") is ("let a sample follow from its index" in launch.output)
    lines = launch.output.splitlines()
    ended = next(number for number, line in enumerate(lines) if "loss" in line and "windtunnel" not in line)
    for line in found.values():
        assert any(f": {line}: " in said for said in lines[:ended]), launch.output
        assert len([said for said in lines if f": {line}: " in said]) == 2, launch.output


@pytest.mark.parametrize(
    ("how", "said", "waited"),
    [
        ("sync", "torch_xla.sync(wait=True) in the loop: 8 times in 8 steps", 8),
        # The last is behind the last step.
        ("ops", "xm.wait_device_ops() in the loop: 8 times in 7 steps", 7),
        ("seldom", None, 1),
        ("closure", None, 0),
        ("never", None, 0),
    ],
)
def test_a_wait_for_the_device_behind_each_step_is_told_and_counted(torchrun, tmp_path, how, said, waited):
    """The host records no next step meanwhile: on trn1 both take their time one after the other."""
    torchrun("waits.py", how, workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    # Twice: when it was seen, and at the end with the final figures.
    found = [record for record in findings(tmp_path) if record["finding"] == "host_read"]
    assert [record["line"] for record in found] == ([line_of("waits.py", how)] * 2 if said else [])
    for record in found[1:]:
        assert record["message"].startswith(said)
        assert record["advice"].startswith("Leave the wait out")
    steps = [step for step in records(tmp_path, "step") if step["optimizer"]]
    assert len(steps) == 8 and sum(step.get("waited", False) for step in steps) == waited


def test_steps_that_compile_where_no_optimizer_steps(torchrun, tmp_path):
    """They are no passes of one step that accumulates gradients, of which the graphs may differ."""
    torchrun("changed_by_hand.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    *_, found = [record for record in findings(tmp_path) if "steps keep compiling" in record["message"]]
    assert found["line"] == line_of("changed_by_hand.py", "run")
    assert "data[i : i + n]" in found["advice"]


@pytest.mark.parametrize("how", ["whole", "by_hand", "shared", "unseeded"])
def test_the_same_gradients_are_told_where_there_is_no_loader(torchrun, tmp_path, how):
    """And so are first weights that each core draws, which only cores with other data are compared for."""
    torchrun("whole_graph.py", how, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record for record in findings(tmp_path)}
    assert set(found) == {"shared": set(), "unseeded": {"unequal_weights"}}.get(how, {"same_data"})
    if "same_data" in found:
        line = line_of("whole_graph.py", "backward" if how == "by_hand" else "step")
        assert found["same_data"]["line"] == line
        assert "rank 1 exchanged the same gradients as rank 0" in found["same_data"]["message"]


def test_where_no_step_ends_the_rest_is_told_at_the_end(torchrun, tmp_path):
    """Of all steps at once: who ends them is not to find the next mistake in the next job."""
    launch = torchrun("unported.py", "unended", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record["line"] for record in findings(tmp_path)}
    step, made = line_of("unported.py", "step"), line_of("unported.py", "made")
    assert found == {"step_without_end": step, "no_exchange": step, "same_data": made}
    before, _, _ = launch.output.partition("loss")
    assert f"error: {step}: the optimizer made 10 steps, and nothing ended a step" in before


def test_weights_that_a_move_has_untied_are_named(torchrun, tmp_path):
    """Unless the script ties them again, or trains none of them; a module that stands twice is moved once."""
    launch = torchrun("tied.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    weights = {"left": 400 + 400 + 72, "again": 400 + 72, "frozen": 400 + 400 + 72}
    assert {said["how"]: said["weights"] for said in launch.said} == weights
    (found,) = {record["line"]: record for record in findings(tmp_path)}.values()
    assert (found["finding"], found["line"]) == ("untied_weights", line_of("tied.py", "left"))
    assert "embedding.weight and head.weight were one parameter" in found["message"]
    assert "trains 400 more weights" in found["message"]


@pytest.mark.parametrize("asked", ["", "0"])
def test_pieces_that_are_other_ones_on_trn1_are_named(torchrun, tmp_path, asked):
    """Here they are right, whatever a script asks for; with functionalization they are so on trn1."""
    launch = torchrun("splits.py", asked, workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert all(launch.said[0]["right"])
    found = {(record["finding"], record["line"]) for record in findings(tmp_path)}
    lines = [line_of("splits.py", f"{count} dimensions") for count in ("two", "three")]
    assert found == (set() if asked == "0" else {("wrong_split", line) for line in lines})


def test_nothing_is_said_of_steps_that_are_not_seen(torchrun, tmp_path):
    """Who asks for torch_xla's own debug output gets it, and no graphs are counted: no alarm comes of that."""
    debug = {"PT_XLA_DEBUG_LEVEL": "1", "PT_XLA_DEBUG_FILE": str(tmp_path / "debug.txt")}
    launch = torchrun("unported.py", "ported", WINDTUNNEL_COUNTERS_DIR=str(tmp_path), **debug)
    assert "error:" not in launch.output and "warning:" not in launch.output, launch.output


def test_data_that_ends_with_an_error_is_named(torchrun, tmp_path):
    """torch_xla ends the loop in silence, and the job completes: the finding is all that says so."""
    launch = torchrun("failing_data.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert "the script has not noticed" in launch.output
    found = {record["finding"]: record for record in findings(tmp_path)}["loader_failed"]
    assert (found["severity"], found["line"]) == ("error", line_of("failing_data.py", "made"))
    assert "KeyError: 'img'" in found["message"]


def test_data_that_ends_with_an_error_on_one_core_is_what_the_others_name(torchrun, tmp_path):
    """Its loop ends early, so the others wait for it in a collective: not the collectives are to be corrected."""
    launch = torchrun("failing_data.py", check=False, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    line = line_of("failing_data.py", "made")
    assert f"[windtunnel] error: {line}: on rank 1 the DataLoader raised KeyError: 'img'" in launch.output
    assert (
        f"PeerLostError: rank 1 ended after its DataLoader ({line}) raised KeyError: 'img', which ended its loop; "
        "rank 0 waited in all_reduce at failing_data.py:" in launch.output
    )
    assert "equally often" not in launch.output
    (found,) = records(tmp_path, "finding", rank=1)
    assert found["finding"] == "loader_failed"
    assert (found["severity"], found["line"]) == ("error", line)


def test_what_a_library_reads_is_said_to_be_its_own(torchrun, tmp_path):
    """The script's line, the library's file and line, and what to do there: the script has nothing to move."""
    torchrun("masked.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    (found,) = {record["line"]: record for record in findings(tmp_path)}.values()
    assert (found["finding"], found["line"]) == ("host_read", line_of("masked.py", "model"))
    assert "in transformers/modeling_attn_mask_utils.py:" in found["message"]
    assert "sdpa" in found["advice"]


@pytest.mark.parametrize(
    ("script", "file", "argument"),
    [
        ("causal.py", "torch/nn/modules/transformer.py", "is_causal=True"),
        ("drawing.py", "torch/distributions/distribution.py", "validate_args=False"),
    ],
)
def test_what_torch_reads_by_itself_is_left_out_by_its_argument(torchrun, tmp_path, script, file, argument):
    """Its file, and the argument: the script's own line has no `if` to move."""
    torchrun(script, "untold", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    (found,) = {record["line"]: record for record in findings(tmp_path)}.values()
    assert (found["finding"], found["line"]) == ("host_read", line_of(script, "model"))
    assert f"in {file}:" in found["message"]
    assert argument in found["advice"]
    torchrun(script, "told", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path / "told"))
    assert findings(tmp_path / "told") == []


def test_what_mesh_reduce_sends_is_no_finding(torchrun, tmp_path):
    """Its graphs are torch_xla's own: a payload of another length is nothing that the script could pad."""
    torchrun("reducing.py", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("how", "use"),
    [
        ("lazy", "tensors"),
        ("moved", "tensors"),
        ("activations", "scratchpad"),
    ],
)
def test_what_does_not_fit_fails_as_on_the_device(torchrun, tmp_path, how, use):
    """More than a core has ends the job with the runtime's words, the parts, the line, and what to do."""
    launch = torchrun("too_big.py", how, workers=1, check=False, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert launch.code != 0
    assert "went on" not in launch.output
    (error,) = re.findall(r"^neuron_sim\.errors\.DeviceMemoryError: (.*)$", launch.output, re.MULTILINE)
    assert re.match(r"RESOURCE_EXHAUSTED: Failed to allocate [12]\d\.", error)
    assert f"usage: {use}) on ND 0:NC 0 (simulated): at {line_of('too_big.py', how)} " in error
    assert "and has 16.000GB" in error
    assert "To fit: " in error
    assert len(error) < 900  # a FailureReason has 1,024 characters
    (found,) = [record for record in findings(tmp_path) if record["finding"] == "device_memory"][-1:]
    assert (found["severity"], found["line"]) == ("error", line_of("too_big.py", how))
    assert records(tmp_path, "end")[0]["exit"] == "error"


def test_what_fits_runs_and_is_counted_by_use(torchrun, tmp_path):
    """Parameters, gradients and Adam's two states of each; xm.get_memory_info answers."""
    launch = torchrun("too_big.py", "small", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert "went on" in launch.output
    memory = records(tmp_path, "memory")[-1]
    size = (64 * 64 + 64) * 4
    assert (memory["parameters"], memory["gradients"], memory["limit"]) == (size, size, 16 * GIB)
    assert 2 * size <= memory["optimizer_state"] <= 2 * size + 64
    assert f"'bytes_limit': {16 * GIB}" in launch.output
    assert not findings(tmp_path)
