"""`windtunnel inference` on the command line."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.unit.conftest import Invoke


def test_the_table_shows_every_row(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 rows with their verdicts, readable in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    out = invoke("inference").out
    assert out.count(" agrees  ") == 12 and "OFF" not in out
    assert "12 of 12 rows agree" in out and "bert-base-cased-finetuned-mrpc " in out


def test_the_table_as_data(invoke: Invoke) -> None:
    """Published, recomputed and error, and the rule of agreement in words."""
    data = json.loads(invoke("inference", "--json").out)
    first = data["rows"][0]
    assert (first["published"], first["recomputed"]) == (0.138, 0.138218)
    assert first["error_percent"] == pytest.approx((0.138218 / 0.138 - 1) * 100, abs=1e-3)
    assert all(row["agrees"] for row in data["rows"]) and "±0.5" in data["agreement"]
    assert data["book_price"]["usd_per_hour"] == 1.34375


def test_a_figure_of_ones_own(invoke: Invoke) -> None:
    """From the book's price with its date, or from a price given; a training price is called that."""
    own = ["inference", "--throughput", "2693", "--instance", "trn1.2xlarge"]
    assert json.loads(invoke(*own, "--on", "2023-01-01", "--json").out)["usd_per_million"] == 0.138605
    out = invoke(*own, "--usd-per-hour", "1.34").out
    assert "$0.1382" in out and "$1.34, as you state it" in out and "on-demand" not in out
    assert "SageMaker's price of training" in invoke(*own[:-1], "ml.trn1.2xlarge").out
    said = invoke(*own[:-1], "ml.trn1.2xlarge", "--usd-per-hour", "1.9").out
    assert "SageMaker's price of training" not in said


def test_a_price_of_ones_own_needs_no_instance(invoke: Invoke) -> None:
    """Nothing is said of an instance that nobody named."""
    own = ("inference", "--throughput", "100", "--usd-per-hour", "3")
    out = invoke(*own).out
    assert "$3.00, as you state it" in out and "Cost of inference on" not in out and "on-demand" not in out
    data = json.loads(invoke(*own, "--json").out)
    assert data["usd_per_million"] == pytest.approx(3e6 / 100 / 3600, rel=1e-4)
    assert (data["price"]["instance_type"], data["price"]["offering"]) == (None, None)
    assert "price of an hour must be above 0" in invoke(*own[:-1], "0", exits=2).err


def test_large_amounts_have_no_exponent(invoke: Invoke) -> None:
    """Of a slow model on a large instance, of a fast one, and of a high rate."""
    assert "$59,720" in invoke("inference", "--throughput", "0.1", "--instance", "trn1.32xlarge").out
    said = invoke("inference", "--throughput", "2000000", "--instance", "trn1.32xlarge").out
    assert "2,000,000 inferences/s" in said
    assert "2,000,000 requests/s" in invoke("inference", "BERT-Base", "--rate", "2e6").out


def estimated(invoke: Invoke, *words: str) -> dict[str, Any]:
    """What `windtunnel inference WORDS --json` prints."""
    found: dict[str, Any] = json.loads(invoke("inference", *words, "--json").out)
    return found


def test_a_model_of_the_hub_has_its_published_name(invoke: Invoke) -> None:
    """Whoever has it there."""
    models = [
        estimated(invoke, name, "--batch-size", "1") for name in ("roberta-base", "FacebookAI/roberta-base")
    ]
    assert models[0]["estimates"] == models[1]["estimates"]


def test_a_model_by_batch_size(invoke: Invoke) -> None:
    """Each figure in its interval, marked as modelled, and the cost is throughput and price."""
    twice = ("--instances", "trn1.2xlarge", "inf2.xlarge", "trn1.2xlarge")
    data = estimated(invoke, "roberta-base", "--batch-size", "1", "8", "1", *twice)  # each once
    assert data["kind"] == "modelled" and data["interval_percent"] == 80
    assert [(row["instance_type"], row["batch_size"]) for row in data["estimates"]] == [
        ("trn1.2xlarge", 1), ("trn1.2xlarge", 8), ("inf2.xlarge", 1), ("inf2.xlarge", 8),
    ]  # fmt: skip
    for row in data["estimates"]:
        for figure in ("latency_p50", "throughput", "usd_per_million"):
            low, high = row[f"{figure}_interval"]
            names = {"latency_p50": "latency_p50_seconds", "throughput": "throughput_per_second"}
            assert low < row[names.get(figure, figure)] < high
        cost = 1e6 / row["throughput_per_second"] * row["price"]["usd_per_hour"] / 3600
        assert row["usd_per_million"] == pytest.approx(cost, rel=1e-4)
        assert sum(row["call_seconds"].values()) == pytest.approx(row["latency_p50_seconds"], rel=1e-4)


def test_a_rate_of_requests_becomes_instances_and_a_cost_a_day(invoke: Invoke) -> None:
    """Rounded up; the ends of the interval on either side."""
    data = estimated(
        invoke, "BERT-Large", "--rate", "5000", "--instances", "trn1.2xlarge", "--batch-size", "4"
    )
    (row,) = data["estimates"]
    assert row["instances"] == math.ceil(5000 / row["throughput_per_second"])
    low, high = row["instances_interval"]
    assert low <= row["instances"] <= high
    assert row["usd_per_day"] == pytest.approx(row["instances"] * 24 * 1.34375)
    out = invoke("inference", "BERT-Large", "--rate", "5000").out
    assert "MODELLED" in out.upper() and "5,000 requests/s: " in out and " a day." in out


def test_an_endpoint_has_no_price_until_it_was_asked_for(invoke: Invoke) -> None:
    """Times stand without one; what to do is said."""
    words = ["BERT-Base", "--instances", "ml.trn1.2xlarge", "--batch-size", "1"]
    (row,) = estimated(invoke, *words)["estimates"]
    assert row["usd_per_million"] is None and row["throughput_per_second"] > 0
    out = " ".join(invoke("inference", *words).out.split())
    assert "No price of ml.trn1.2xlarge, SageMaker hosting on-demand, in the book" in out
    assert "windtunnel prices refresh --hosting --instances ml.trn1.2xlarge" in out
    assert "It has: " not in out  # the book has its price as training, and named it in the same breath


def test_the_model_says_how_right_it_is(invoke: Invoke) -> None:
    """Left-out errors of throughput and P50, coverage, rows and groups; and the rows that were set aside."""
    data = estimated(invoke, "--validate")
    assert set(data["summary"]) == {"throughput", "latency_p50"}
    for figure in data["summary"].values():
        assert {level: (item["rows"], item["groups"]) for level, item in figure.items()} == {
            "in_sample": (563, 0), "alone": (563, 13), "family": (563, 4), "unseen": (84, 3),
        }  # fmt: skip
        assert figure["in_sample"]["mean_percent"] < figure["alone"]["mean_percent"]
        assert figure["alone"]["mean_percent"] < figure["family"]["mean_percent"] < 5
        assert figure["alone"]["coverage_percent"] >= 80
    assert "set aside" in invoke("inference", "--validate").out


def test_a_model_that_a_comparison_knows_is_known_here(invoke: Invoke) -> None:
    """ViT-Large has no published row, and its family has: its range is wider where it lies outside of them."""
    (row,) = estimated(
        invoke, "google/vit-large-patch16-224", "--instances", "trn1.2xlarge", "--batch-size", "1"
    )["estimates"]
    assert row["sequence_length"] == 197 and row["throughput_per_second"] > 0


def test_a_sequence_longer_than_the_models_positions_is_said(invoke: Invoke) -> None:
    """Its time is modelled all the same: another model of that shape may take such sequences."""
    ask = ("inference", "bert-base-uncased", "--sequence-length")
    assert "assumed: positions for 4,096 tokens (the model has 512)" in invoke(*ask, "4096").out
    assert "positions" not in invoke(*ask, "512").out
    assert "(the model has 512)" in invoke("inference", "BERT-Large", "--sequence-length", "513").out


def test_batches_that_do_not_fit_are_left_out_by_name(invoke: Invoke) -> None:
    """The cheapest is one that can run; where none can, that is the answer."""
    words = ("BERT-Large", "--sequence-length", "4096", "--instances", "inf2.xlarge", "--batch-size")
    data = estimated(invoke, *words, "1", "32", "64")
    assert [row["batch_size"] for row in data["estimates"]] == [1]
    assert [row["batch_size"] for row in data["left_out"]] == [32, 64]
    out = " ".join(invoke("inference", *words, "1", "32", "64").out.split())
    assert "Cheapest: inf2.xlarge with batches of 1," in out
    assert "Left out of inf2.xlarge: batches of 32, 64: the activations of one layer need" in out
    assert "batches of up to 29 fit" in invoke("inference", *words, "64", exits=2).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inference", "BERT-Huge"], "GPT-2-Medium, ViT-Base, MPT-125m"),  # GPT3's weights fit no core
        (["inference", "meta-llama/Llama-3.2-1B"], "not for llama"),
        (["inference", "Llama2-7B"], "not for llama"),
        (["inference", "BERT-Base", "--instances", "p4d.24xlarge"], "Calibrated are ml.trn1.2xlarge"),
        (["inference", "BERT-Base", "--instances", "p5"], "Inference on ml.p5.48xlarge is not calibrated"),
        (
            ["inference", "BERT-Base", "--instances", "trn1"],
            "Name the type: trn1.2xlarge or trn1.32xlarge.",
        ),
        (
            ["inference", "BERT-Base", "--instances", "x9", "trn1.2xlarge", "y8"],
            "No figures for instance type 'x9'. No figures for instance type 'y8'.",
        ),
        (["inference", "BERT-Base", "--throughput", "5"], "needs no ARCHITECTURE; given: --throughput"),
        (["inference", "BERT-Base", "--rate", "0"], "a rate must be above 0"),
        (["inference", "BERT-Base", "--rate", "1e30"], "at most 1e+15, not 1e+30"),
        (["inference", "--rate", "5"], "figures need an ARCHITECTURE"),
        (["inference", "--rate", "0"], "figures need an ARCHITECTURE"),
        (["inference", "--validate", "--rate", "5"], "takes only --json and --html; given: --rate"),
        (["inference", "--throughput", "5"], "needs --throughput N and --instance TYPE"),
        (["inference", "--usd-per-hour", "5"], "needs --throughput N and --instance TYPE"),
        (["inference", "--throughput", "0", "--instance", "trn1.2xlarge"], "must be above 0"),
        (["inference", "--throughput", "5", "--instance", "inf1.xlarge"], "No price of inf1.xlarge"),
        (["inference", "--on", "2020-01-01"], "first in the book is of 2022-10-10"),
    ],
)
def test_mistakes_name_the_fix(invoke: Invoke, words: list[str], message: str) -> None:
    """One line on stderr."""
    assert message in invoke(*words, exits=2).err
