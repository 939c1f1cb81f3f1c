"""The bill and the report of a Slurm job."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bert_large import bert_large_counters
from tests.fakes.reports import screen_of
from tests.fakes.slurm_job import slurm_job
from tests.fakes.split_job import split_counters
from tests.unit.conftest import Invoke
from windtunnel.cli import cluster as command
from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import FullScale, Price, PriceBook
from windtunnel.priceperf.money.offerings import CAPACITY_BLOCK
from windtunnel.priceperf.money.prices import BUILT_IN
from windtunnel.reports.cluster.report import ClusterReport, cluster_report
from windtunnel.reports.modelled.fitted_notes import LINES

WARNED = {
    "kind": "host_read",
    "severity": "warning",
    "line": "train.py:36",
    "message": "a value is read in each step, which holds the device up until it is there. " * 2,
    "advice": "Read it every 100 steps.",
    "count": 24,
}


def report(
    counters: dict[str, Any] | None = None, size: FullScale | None = None, **job: Any
) -> ClusterReport:
    return cluster_report(slurm_job(counters, **job), size, prices=PriceBook(), user_calibration=None)


def trial(counters: dict[str, Any]) -> dict[str, Any]:
    ledger = [{"flops": {"bf16": 4e12}, "cached": False}, {"flops": {}, "cached": False}]
    program = {"script": "train.py", "world_size": 8, "steps": 5, "training_steps": 5, "trial": True}
    return {**counters, "programs": [program], "graphs": {"count": 2, "cached": 0, "ledger": ledger}}


BERT = bert_large_counters(8, 4)
SIZE = FullScale(train_samples=460_800_000)


@pytest.mark.parametrize(
    ("counted", "size", "job"),
    [
        (BERT, None, {}),
        (BERT, SIZE, {}),
        (split_counters(4, 2), FullScale(200_000_000), {}),
        (split_counters(4, 2), FullScale(460_800_000_000_000), {}),
        ({**BERT, "diagnostics": [WARNED, WARNED]}, SIZE, {"state": "RUNNING", "capacity_type": "SPOT"}),
        (trial(BERT), None, {}),
        (None, None, {}),
        (None, None, {"state": "PENDING", "started": None}),
        ({**bert_large_counters(1, 1), "instance_type": "ml.trn1.2xlarge"}, None, {"nodes": 1}),
    ],
)
def test_the_first_screen_has_25_lines(
    counted: dict[str, Any] | None, size: FullScale | None, job: dict[str, Any]
) -> None:
    """Of 100 columns, whatever there is to say; all else is behind --full."""
    found = report(counted, size, **job)
    text = found.to_text()
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 100
    assert not re.search(r"^ {9}", text, re.M)  # no row of a table breaks
    assert len(found.to_text(full=True).splitlines()) >= len(text.splitlines()) - 1


def test_node_seconds_at_list_prices() -> None:
    """The job's own, its dynamic nodes' coming and leaving, and the cluster's with its static node."""
    (bill,) = report(BERT).to_dict()["bill"]
    assert bill["node_seconds"] == {
        "job": 1200,
        "coming": 40,
        "leaving": 400,
        "cluster_up": 2140,
        "cluster_busy": 1300,
        "cluster_idle_static": 400,
        "cluster_idle_dynamic": 440,
    }
    assert bill["ec2_usd"]["job"] == pytest.approx(1200 / 3600 * 21.5, abs=1e-4)
    assert bill["ec2_usd"]["idle"] == pytest.approx(440 / 3600 * 21.5, abs=1e-4)
    assert bill["sagemaker_usd"]["job"] == pytest.approx(1200 / 3600 * 24.725, abs=1e-4)
    assert "us-west-2" in bill["notes"][0] and "us-east-1" in bill["notes"][0]
    text = report(BERT).to_text()
    assert "4 nodes x 300 s = 1,200 node-seconds, 440 more idle" in text
    assert "a simulation's seconds say nothing of trn1's" in " ".join(text.replace("│", " ").split())


def test_a_job_that_runs() -> None:
    """What it has cost and done so far, and that it is so far."""
    found = report(BERT, state="RUNNING")
    assert found.to_dict()["job"]["so_far"] is True
    (bill,) = found.to_dict()["bill"]
    assert (bill["node_seconds"]["job"], bill["node_seconds"]["leaving"]) == (4 * 440, 0)
    assert "RUNNING, so far" in found.to_text() and "Here so far: 4 nodes" in found.to_text()


def test_a_model_that_cores_share_is_modelled_by_its_description() -> None:
    """On more nodes each copy has fewer passes; with its batch a node, as many."""
    found = report({**split_counters(8, 4), "instance_count": 4}, nodes=4)
    data = found.to_dict()["modelled"]
    assert (data["passes"], data["samples_per_pass"], data["published"]) == (64, 1, [])
    rows = {row["instances"]: row for row in data["strong"]["rows"]}
    assert rows[4]["global_batch"] == rows[16]["global_batch"] == 4 * 64
    assert 2 < rows[16]["samples_per_s"] / rows[4]["samples_per_s"] < 4
    assert "each copy of the model keeps its 64 passes of 1 sample," in screen_of(found)


def test_a_model_that_is_too_large_for_its_cores_has_no_figures() -> None:
    """On each of them stands the whole of a layer's half; with more nodes no more fits."""
    found = report(split_counters(2, 1), nodes=1)
    text = screen_of(found)
    assert " 1 no fit 1,024 no fit " in text and "no fit: a core needs " in text


def test_a_job_on_a_part_of_the_cores_has_its_bill_all_the_same() -> None:
    """Three stages of eight cores do not make whole copies of a node's 32."""
    found = report(split_counters(8, 3), nodes=1)
    assert found.bills and found.modelled is None
    assert "24 workers do not divide the 32 NeuronCores" in screen_of(found)


def test_a_job_without_counters_has_a_bill_only() -> None:
    """`hostname` trains nothing: no figure is made up."""
    found = report()
    data = found.to_dict()
    assert (data["modelled"], data["compilation"], data["measured"]) == (None, None, None)
    assert "The bill only: nothing of the job ran on a simulated device" in found.to_text()
    assert found.charts() == ()
    assert "job has not begun (PENDING)" in report(state="PENDING", started=None).to_text()


def test_a_job_that_compiles_says_so() -> None:
    """Its time is the compiler's on each of its nodes, and not that of a training."""
    found = report(trial(BERT))
    data = found.to_dict()
    assert data["modelled"] is None and data["compilation"]["seconds"] > 0
    assert data["job"]["compiled_only"] is True
    said = "compiled its script's graphs with neuron_parallel_compile, and trained nothing"
    assert said in screen_of(found)


def test_what_capacity_costs() -> None:
    """On-demand for want of a spot price, and said so; a Capacity Block at its own, wherever one is known."""
    spot = report(BERT, capacity_type="SPOT").bills[0].prices
    assert spot.ec2 is not None and spot.ec2.offering == "EC2 on-demand"
    assert any("Spot capacity has no list price" in note for note in spot.notes)
    block = report(BERT, capacity_type="CAPACITY_BLOCK").bills[0].prices
    assert block.ec2 is not None and (block.ec2.offering, block.ec2.usd_per_hour) == (CAPACITY_BLOCK, 15.49)
    listed = next(price for price in BUILT_IN if price.instance_type == "trn1.32xlarge")
    own = replace(listed, region="us-west-2", usd_per_hour=20.0, effective_from=date(2023, 1, 1))
    there = cluster_report(slurm_job(BERT), prices=PriceBook((*BUILT_IN, own)), user_calibration=None)
    assert isinstance(there.bills[0].prices.ec2, Price) and there.bills[0].prices.ec2.usd_per_hour == 20.0
    assert {row["cost"]["price"]["usd_per_hour"] for row in there.to_dict()["modelled"]["weak"]["rows"]} == {
        20.0
    }


def test_the_jobs_own_batch_is_scaled() -> None:
    """Strong keeps that of the nodes that it ran on, weak that of each worker; both agree on those nodes."""
    modelled = report(BERT, SIZE).to_dict()["modelled"]
    strong, weak = modelled["strong"]["rows"], modelled["weak"]["rows"]
    assert [row["instances"] for row in strong] == [1, 2, 4, 8, 16, 32, 64]
    assert {row["global_batch"] for row in strong} == {16 * 32 * 4 * 8}
    assert [row["global_batch"] for row in weak] == [
        16 * 32 * 8 * nodes for nodes in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert strong[2]["samples_per_s"] == weak[2]["samples_per_s"]
    assert all(a["samples_per_s"] < b["samples_per_s"] for a, b in pairwise(strong))
    for row in strong:
        ratio = row["sagemaker_cost"]["usd"] / row["cost"]["usd"]
        assert ratio == pytest.approx(24.725 / 21.5, rel=1e-4)
        low, high = row["cost"]["interval_usd"]
        assert low < row["cost"]["usd"] < high


def test_a_pass_that_is_the_only_one_shrinks_on_more_nodes() -> None:
    """Of a job that accumulates nothing there are no fewer passes: the first screen said so."""
    found = report(bert_large_counters(1, 4), SIZE)
    rows = {row["instances"]: row for row in found.to_dict()["modelled"]["strong"]["rows"]}
    assert found.to_dict()["modelled"]["passes"] == 1
    assert rows[8]["global_batch"] == rows[4]["global_batch"]  # so of half the samples
    assert (
        "stays; more nodes need fewer passes of 16 samples, or one smaller pass."
        in found.to_text().replace("\n   ", " ")
    )


def test_awss_figures_stand_beside_their_configuration() -> None:
    """The job's global batch of 16,384 is that of AWS's figure on one node; none took part in its prediction."""
    modelled = report(BERT).to_dict()["modelled"]
    first = modelled["strong"]["rows"][0]["published"]
    assert (first["published_samples_per_s"], first["left_out"]) == (3705.1, True)
    assert abs(first["from_rehearsal_error"]) < 0.15
    assert modelled["strong"]["rows"][1]["published"] is None
    printed = [item["published_samples_per_s"] for item in modelled["published"]]
    assert set(printed) >= {53655.8, 48414.0, 41242.0, 7522.0}
    small = report(bert_large_counters(8, 4, samples=4)).to_dict()["modelled"]["published"]
    assert all(item["from_rehearsal_samples_per_s"] is None for item in small)
    assert "AWS printed 53,656/s on 16 nodes" in report(BERT).to_text()
    other = {**BERT, "parameters": {"count": 1e8, "parameter_bytes": 2e8}}
    assert report(other).to_dict()["modelled"]["published"] == []


def test_pages_and_charts(tmp_path: Path) -> None:
    """One HTML file with both charts, on which AWS's figures are marks of their own."""
    found = report(BERT, SIZE)
    charts = found.charts()
    assert [chart.kind for chart in charts] == ["strong", "weak"]
    assert "published on 16 (LAMB, batch 65,536): 41,242" in charts[0].words
    page = found.to_html(tmp_path / "report.html")
    assert page.count("<svg") == 2 and "published, LAMB, batch 65,536" in page
    assert json.loads(found.to_json())["schema"] == "windtunnel.cluster_report/1"


def test_another_version_of_the_backend_is_named() -> None:
    """Instead of a figure that is none."""
    with pytest.raises(ConfigurationError, match="different versions"):
        cluster_report({**slurm_job(BERT), "schema": "windtunnel.slurm_job/2"})


def test_the_command(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """Text, JSON; a cluster that is not there is one clean message of the backend's."""
    asked: list[tuple[str, str]] = []

    def job(name: str, number: str) -> dict[str, Any]:
        asked.append((name, number))
        return slurm_job(BERT)

    monkeypatch.setattr(command, "_job", job)
    said = invoke("cluster", "report", "post", "3", "--full-scale-samples", "1e6").out
    assert "Windtunnel cluster report: post, job 3 (wrap), COMPLETED" in said
    assert json.loads(invoke("cluster", "report", "post", "3", "--json").out)["job"]["id"] == 3
    invoke("cluster", "report", "post", "3", "--epochs", "2", exits=2)
    assert asked == [("post", "3"), ("post", "3")]


def test_the_backend_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, invoke: Invoke) -> None:
    """By its own command line: what it complains of is what is said."""
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path))
    err = invoke("cluster", "report", "post", "3", exits=1).err
    assert err.startswith("windtunnel: Cluster 'post' does not exist") and "Traceback" not in err
