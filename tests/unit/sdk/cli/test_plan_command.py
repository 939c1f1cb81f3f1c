"""`windtunnel plan` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.conftest import Invoke

JOB = ("plan", "--architecture", "Llama-3.1-8B", "--nodes", "1", "2", "4")


def test_plans_are_printed_and_written(invoke: Invoke, tmp_path: Path) -> None:
    """As text, JSON, a page and a chart; instance types with commas or spaces."""
    limits = ("--deadline", "2d", "--budget", "2000", "--tokens", "1B")
    assert "Cheapest within " in invoke(*JOB, "--instances", "trn1,p4d", *limits).out
    data = json.loads(invoke(*JOB, "--instances", "trn1", "p4d", *limits, "--json").out)
    assert data["deadline_hours"] == 48
    assert data["budget_usd"] == 2000
    assert {plan["instances"] for plan in data["plans"]} == {1, 2, 4}
    text = invoke(*JOB, "--instances", "trn1,p4d").out
    full = invoke(*JOB, "--instances", "trn1,p4d", "--full").out
    assert "PARETO FRONT" not in text and "PARETO FRONT" in full
    page, chart = tmp_path / "plan.html", tmp_path / "plan.png"
    invoke(*JOB, "--html", str(page), "--png", str(chart))
    assert "Pareto front" in page.read_text()
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_the_page_names_the_numbers_of_instances_that_are_tried(invoke: Invoke) -> None:
    """Of 1 to 64 only some take the batch: whoever wants 12 must know why there is no such plan."""
    data = json.loads(invoke("plan", "Llama-3.1-8B", "--instances", "trn1", "--json").out)
    tried = sorted({plan["instances"] for plan in data["plans"]})
    words = f"{', '.join(map(str, tried[:-1]))} and {tried[-1]} trn1.32xlarge"
    page = Path(__file__).parents[4] / "docs/how_to/plan_a_training.md"
    assert words in page.read_text()


def test_what_is_fixed_reaches_the_search(invoke: Invoke) -> None:
    """Each flag by its own name."""
    fixed = ("--tensor-parallel", "8", "--pipeline-parallel", "2", "--microbatch", "2", "--recompute", "full")
    size = ("--steps", "100", "--global-batch", "512", "--sequence-length", "2048", "--zero", "optimizer")
    adapters = ("--parameters", "8.03B", "--lora-rank", "16", "--lora-targets", "attention")
    data = json.loads(invoke(*JOB, "--instances", "trn1", *fixed, *size, *adapters, "--json").out)
    assert data["job"] == {
        "parameters": 8.03e9,
        "sequence_length": 2048,
        "global_batch": 512,
        "train_samples": 51_200,
        "lora": {"rank": 16, "targets": "attention"},
        "fixed": {
            "tensor_parallel": 8,
            "pipeline_parallel": 2,
            "microbatch": 2,
            "recompute": "full",
            "zero": "optimizer",
        },
    }
    assert {plan["tensor_parallel"] for plan in data["plans"]} == {8}


def test_each_instance_has_the_first_software_that_its_rows_name(invoke: Invoke) -> None:
    """NeMo's are of GPUs, neuronx-distributed's and its port's of trn1; with them intervals are narrower."""
    command = [*JOB, "--instances", "trn1", "p5", "--nodes", "8", "--json"]
    found = []
    for given in ([], ["--software", "neuronx-distributed", "nemo"]):
        found.append(json.loads(invoke(*command, *given).out))
    assert [place["software"] for place in found[0]["places"]] == [None, None]
    assert [place["software"] for place in found[1]["places"]] == ["neuronx-distributed", "Megatron-core"]
    for kind, faster in (("ml.trn1.32xlarge", 1.0), ("ml.p5.48xlarge", 1.1)):
        plain, named = (
            next(plan for plan in each["plans"] if plan["instance_type"] == kind) for each in found
        )
        assert plain["step_s"] >= faster * named["step_s"]
        ratios = [plan["hours_interval"][1] / plan["hours_interval"][0] for plan in (plain, named)]
        assert ratios[1] < ratios[0]
    said = invoke(*command[:-1], "--software", "nemo").out
    expected = "those of NeMo Megatron for Neuron on ml.trn1.32xlarge, Megatron-core on ml.p5.48xlarge"
    assert expected in " ".join(said.split())


def test_a_folder_of_results_hides_no_model(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is called as the model; one with a config.json is the model."""
    monkeypatch.chdir(tmp_path)
    Path("Phi-2").mkdir()
    assert "Windtunnel plan: Phi-2" in invoke("plan", "Phi-2", "--instances", "trn1", "--nodes", "1").out
    Path("Phi-2/config.json").write_text("{}")
    assert "model_type" in invoke("plan", "Phi-2", exits=2).err


def test_the_model_may_be_named_without_an_option(invoke: Invoke) -> None:
    """As to `inference`; one of both ways."""
    rest = (*JOB[3:], "--json")
    assert invoke("plan", "Llama-3.1-8B", *rest).out == invoke(*JOB, "--json").out
    for wrong in (("plan", *rest), ("plan", "Llama-3.1-8B", *JOB[1:])):
        invoke(*wrong, exits=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--software", "mine"), "software 'mine' has no published row"),
        (("--architecture", "GPT-9"), "architecture 'GPT-9' is not known. Did you mean 'GPT-2'"),
        (("--instances", "x9"), "No figures for instance type 'x9'"),
        (("--instances", "trn1=4"), "--nodes 4"),
        (("--instances", "inf2"), "Calibrated are ml.trn1.2xlarge"),
        (("--parameters", "8"), "about those of the architecture, 8.03 billion, not 8: 8 billion are 8e9"),
        (("--tokens", "1B", "--samples", "4"), "one size of the job, not tokens and samples"),
    ],
)
def test_what_cannot_be_is_refused(invoke: Invoke, given: tuple[str, ...], said: str) -> None:
    """In a line, with exit code 2."""
    assert said in invoke(*JOB, *given, exits=2).err
