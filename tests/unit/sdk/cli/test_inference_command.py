"""`windtunnel inference` and `windtunnel report --inference` on the command line."""

from __future__ import annotations

import json

import pytest

from windtunnel.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_the_table_shows_every_row(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 rows with their verdicts, readable in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["inference"]) == 0
    out = capsys.readouterr().out
    assert out.count(" agrees  ") == 12 and "OFF" not in out
    assert "12 of 12 rows agree" in out and "bert-base-cased-finetuned-mrpc " in out


@pytest.mark.parametrize("words", [["inference"], ["report", "--inference"]])
def test_the_table_as_data(capsys: Capture, words: list[str]) -> None:
    """Published, recomputed and error, and the rule of agreement in words."""
    assert main([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    first = data["rows"][0]
    assert (first["published"], first["recomputed"]) == (0.138, 0.138218)
    assert first["error_percent"] == pytest.approx((0.138218 / 0.138 - 1) * 100, abs=1e-3)
    assert all(row["agrees"] for row in data["rows"]) and "±0.5" in data["agreement"]
    assert data["book_price"]["usd_per_hour"] == 1.34375


def test_a_figure_of_ones_own(capsys: Capture) -> None:
    """From the book's price with its date, or from a price given; a training price is called that."""
    own = ["inference", "--throughput", "2693", "--instance", "trn1.2xlarge"]
    assert main([*own, "--on", "2023-01-01", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["usd_per_million"] == 0.138605
    assert main([*own, "--usd-per-hour", "1.34"]) == 0
    out = capsys.readouterr().out
    assert "$0.1382" in out and "stated by the user" in out
    assert main([*own[:-1], "ml.trn1.2xlarge"]) == 0
    assert "SageMaker's price of training" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["inference", "--throughput", "5"], 2, "needs --throughput N and --instance TYPE"),
        (["inference", "--usd-per-hour", "5"], 2, "needs --throughput N and --instance TYPE"),
        (["inference", "--throughput", "0", "--instance", "trn1.2xlarge"], 1, "must be above 0"),
        (["inference", "--throughput", "5", "--instance", "inf1.xlarge"], 1, "No price of inf1.xlarge"),
        (["inference", "--on", "2020-01-01"], 1, "first in the book is of 2022-10-10"),
        (["report", "job", "--inference"], 2, "takes no job"),
    ],
)
def test_mistakes_name_the_fix(capsys: Capture, words: list[str], code: int, message: str) -> None:
    """One line on stderr."""
    assert main(words) == code
    assert message in capsys.readouterr().err
