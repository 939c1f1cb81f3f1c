"""The example's user side sends what its script takes."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import run

SCRIPT = run.HERE / "scripts" / "train.py"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))


def options_of_the_script() -> set[str]:
    """What train.py gives to add_argument, read from its text: importing it needs torch."""
    calls = (node for node in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(node, ast.Call))
    return {
        call.args[0].value.removeprefix("--")
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "add_argument"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


@pytest.mark.parametrize("hyperparameters", [run.SMALL, run.REAL, run.BASE])
def test_every_hyperparameter_is_an_option_of_the_script(hyperparameters: dict[str, Any]) -> None:
    """An option misspelt would end the job on the instance, after its start was paid."""
    assert set(hyperparameters) <= options_of_the_script()


def test_request_is_one_for_a_trn1(tmp_path: Path) -> None:
    """Both channels, two cores' instance, AWS's own image, torchrun: as SageMaker would be sent it."""
    for channel in ("train", "val"):
        (tmp_path / channel).mkdir()
        (tmp_path / channel / "x.csv").write_text("title,content,label\n")
    channels = {channel: str(tmp_path / channel) for channel in ("train", "val")}
    request = run.make_estimator(run.SMALL).fit(channels, dry_run=True).to_dict()
    assert [channel["ChannelName"] for channel in request["InputDataConfig"]] == ["train", "val"]
    assert request["ResourceConfig"]["InstanceType"] == "ml.trn1.2xlarge"
    assert "pytorch-training-neuronx:2.9" in request["AlgorithmSpecification"]["TrainingImage"]
    assert json.loads(request["HyperParameters"]["sagemaker_torch_distributed_enabled"]) is True


def test_metrics_are_found_in_the_lines_of_the_script() -> None:
    """The names in the script's prints and in the metric definitions agree."""
    text = SCRIPT.read_text()
    request = run.make_estimator(run.SMALL).request().to_dict()
    for definition in request["AlgorithmSpecification"]["MetricDefinitions"]:
        name = definition["Regex"].split("=")[0]
        assert f'"{name}"' in text or f"{name}=" in text
    accuracy = request["AlgorithmSpecification"]["MetricDefinitions"][1]["Regex"]
    found = re.search(accuracy, "epoch 2 val_accuracy=0.9540 val_loss=0.1290 train_seconds=67.5")
    assert found is not None
    assert found.group(1) == "0.9540"
