"""What is said of a script, in words."""

from __future__ import annotations

import pytest

from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics import advice, for_graphs, for_operations
from neuron_sim.diagnostics.findings import Findings


@pytest.mark.parametrize(
    ("cuts", "again", "said"),
    [
        (0, 0, "9 steps, 1.00 s of waiting here. The host stops until the device has finished."),
        (2, 0, "9 steps, 1.00 s of waiting here. The host stops until the device has finished. It cut the step into "
         "separate graphs 2 times, each compiled and run on its own."),
        (2, 1, "of waiting here, and what it depends on, such as the forward pass, is computed again. The host stops "
         "until the device has finished. It cut the step into separate graphs 2 times, each compiled and run on its "
         "own."),
    ],
)  # fmt: skip
def test_a_value_that_is_read_repeats_work_only_where_some_is_left(cuts: int, again: int, said: str) -> None:
    """After a step's end, and in evaluation, nothing is."""
    found = advice.host_read("train.py:9", [".item()"], 9, 1.0, 9, cuts, again)
    assert found.message.endswith(said)


def test_long_compilations_are_explained() -> None:
    """They are this machine's affair, so it is a note. What helps is logged at once, and once."""
    assert for_graphs.slow_compile(59.0, "") is None
    said: list[str] = []
    findings = Findings(lambda _: None, said.append)
    for seconds in (61.0, 294.0):
        found = for_graphs.slow_compile(seconds, "")
        assert found is not None
        findings.note(found, at_once=True)
    (line,) = said
    assert line.startswith("note: XLA has compiled for 61 s here") and "no time of trn1" in line
    assert "xla_backend_optimization_level=0" in line
    (found,) = findings.ranked()
    assert (found.severity, found.seconds) == ("note", 294.0)
    assert "Very slow compile?" in found.message and "neuronx-cc" in found.message
    quick = for_graphs.slow_compile(
        61.0, "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
    )
    assert quick is not None and "XLA_FLAGS" not in quick.advice


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("slice with slice={[0:10]} is now with slice={[10:20]}", "data.index_select(0, torch.arange("),
        ("pad with padding=0_30 is now with padding=10_20", "index_copy_ to write them"),
        ("a constant was 0.01 (f32[]) and is 0.02 (f32[])", "torch.tensor(value, device=device)"),
    ],
)
def test_a_number_in_the_graph_becomes_an_input(detail: str, said: str) -> None:
    """A slice's bound does not by being a tensor: torch reads that, and the graph has the number."""
    found = for_graphs.recompiles(Reason("scalar", detail), "train.py:9", "", 9, 1.0, 9, 9)
    assert said in found.advice


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("", "torch.where instead of nonzero"),
        ("torch/optim/rprop.py:273", "Pass capturable=True to the optimizer"),
        ("torchmetrics/functional/classification/stat_scores.py:299", "pass validate_args=False"),
        ("some/other.py:1", "look for an argument of some that turns it off"),
    ],
)
def test_an_operation_that_a_library_calls_is_left_out_by_the_library(library: str, said: str) -> None:
    """The script has no such operation to replace."""
    found = for_operations.cpu_fallback("aten::nonzero", "train.py:9", 9, library)
    assert said in found.advice
    assert (f"(in {library})" in found.message) is bool(library)


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("torch/optim/asgd.py:260", "Pass capturable=True to the optimizer"),
        ("torch/optim/_adafactor.py:380", "transformers.optimization.Adafactor"),
        ("torch/optim/lbfgs.py:331", "keep LBFGS and its model on the CPU"),
        ("torch/amp/grad_scaler.py:356", "bf16 needs no scaling: leave it out"),
        ("torchmetrics/aggregation.py:93", 'nan_strategy="disable"'),
        ("torch/nn/utils/clip_grad.py:9", "look for an argument of torch that turns it off"),
    ],
)
def test_a_value_that_a_library_reads_is_left_out_by_its_argument(library: str, said: str) -> None:
    """Where the library has one; the script has no such line."""
    assert said in advice.host_read("train.py:9", [".item()"], 9, 1.0, 9, 0, 0, library).advice


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((), "something that the script cuts or makes on the device has another size"),
        (((0, "f32[8,27]", "f32[8,28]"),), "Give every batch the same shape"),
    ],
)
def test_a_piece_of_another_size_is_no_batch_of_another_shape(inputs: tuple, said: str) -> None:  # type: ignore[type-arg]
    """CutMix on the device: all inputs are as before, and to pad them changes nothing."""
    reason = Reason("shape", "broadcast was pred[8,3,27,64] and is pred[8,3,28,64]", None, inputs)
    assert said in for_graphs.recompiles(reason, "train.py:9", "", 9, 1.0, 9, 9).advice
