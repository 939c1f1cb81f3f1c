"""results.json of AWS's public scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from utilities.reporting import Metric, post_metrics, results_file


def test_results_grow_with_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file that the script was given, in the form that AWS's other samples write."""
    path = tmp_path / "output_3" / "results.json"
    monkeypatch.setattr("sys.argv", ["train.py", "--steps_this_run", "5", "--metrics_file", str(path)])
    first = Metric("Loss", 2.5, units="", additional={"Global step": 1})
    post_metrics([first], parameters={"Seed": 1}, report_v1=False, report_v2=True)
    expected = Metric("AverageThroughput", 50.0, units="seq/s", expected=60, derived=57.0, additional={})
    post_metrics([expected], parameters={"Model": Path("BERT")}, enable_cloudwatch=False)
    results = json.loads(path.read_text())["results"]
    assert results["parameters"] == {"Seed": 1, "Model": "BERT"}
    loss, throughput = results["metrics"]
    assert loss.pop("Timestamp") <= throughput["Timestamp"]
    assert loss == {
        "MetricName": "Loss",
        "MeasuredValue": 2.5,
        "Units": "",
        "AdditionalData": {"Global step": 1},
    }
    assert (throughput["Expected"], throughput["Derived"]) == (60, 57.0)
    assert [file.name for file in path.parent.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--metrics_file=a/b.json", "--output_dir", "out"], "a/b.json"),
        (["--output_dir", "gpt_1p5B", "--seed", "1"], "gpt_1p5B/results.json"),
        (["--metrics", "no"], "results.json"),
    ],
)
def test_the_file_is_the_script_s_or_beside_its_output(arguments: list[str], expected: str) -> None:
    """By the arguments that AWS's scripts have."""
    assert results_file(arguments) == Path(expected)


def test_a_file_that_is_none_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one, as `touch` leaves it."""
    path = tmp_path / "results.json"
    path.touch()
    monkeypatch.setattr("sys.argv", ["train.py", "--metrics_file", str(path)])
    post_metrics([Metric("Loss", 1.0)])
    assert len(json.loads(path.read_text())["results"]["metrics"]) == 1
