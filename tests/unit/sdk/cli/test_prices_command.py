"""`windtunnel prices` on the command line."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.fakes.price_list import served, training
from tests.unit.conftest import Invoke
from windtunnel.prices import cache

TRN1 = "ml.trn1.32xlarge"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials for boto3, and nothing of the machine's."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "WINDTUNNEL_ENV_BEFORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(cache, "_now", lambda: datetime(2026, 11, 21, tzinfo=timezone.utc))


def test_the_book_shows_price_date_status_and_source(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every built-in price, and where it comes from, in words that do not break where a shell's COLUMNS are few."""
    monkeypatch.setenv("COLUMNS", "40")
    out = invoke("prices").out
    assert " instance " in out
    for word in ("ml.trn1n.32xlarge", "$24.725", "us-west-2", "2025-06-01", "derived ", "Entries: built-in"):
        assert word in out
    assert "up to 64%" in " ".join(out.split()) and "no price is known here" in " ".join(out.split())


def test_the_book_of_a_day_as_data(invoke: Invoke) -> None:
    """What was in force then, with the claims apart."""
    data = json.loads(invoke("prices", "list", "--on", "2023-01-01", "--region", "us-east-1", "--json").out)
    prices = {item["instance_type"]: item["usd_per_hour"] for item in data["prices"]}
    assert prices["ml.p4d.24xlarge"] == 37.69 and "ml.trn1n.32xlarge" not in prices
    assert [claim["up_to"] for claim in data["claims"]] == [0.64, 0.9]
    assert data["newest_fetch"] is None


def test_a_name_without_a_price_is_said_beside_those_with_one(invoke: Invoke) -> None:
    """One that is mistyped, or that had no price that day: else a reader takes it for left out by chance."""
    asked = [
        "prices",
        "--on",
        "2023-01-01",
        "--instances",
        TRN1,
        "ml.trn1n.32xlarge",
        "--region",
        "us-east-1",
    ]
    assert "Nothing here for ml.trn1n.32xlarge." in invoke(*asked).out
    said = invoke(*asked, "eu-west-9", "--json").out
    assert json.loads(said)["missing"] == ["ml.trn1n.32xlarge", "eu-west-9"]
    assert "Nothing here" not in invoke("prices").out


@pytest.mark.usefixtures("keys")
def test_refresh_says_what_changed_and_what_stays(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fetched beside what it was before; what AWS does not list is kept; then the book shows it."""
    with served([training(TRN1, "23.5000000000", sku="S1")]) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", url)
        out = invoke("prices", "refresh", "--instances", TRN1, "trn1.32xlarge").out
        assert "$23.50 an hour since 2026-11-01  (before $24.725, published, since 2022-10-10)" in out
        assert "kept as it was: trn1.32xlarge us-east-1: AWS lists no EC2 on-demand price" in out
        assert "1 price of 2 fetched in " + str(tmp_path / "home") in out
        said = invoke("prices", "refresh", "--instances", TRN1, "--json").out
        assert json.loads(said)["fetched"][0]["usd_per_hour"] == 23.5
        said = invoke("prices", "refresh", "--instances", "ml.nothing", exits=1).out
        assert "0 prices of 1 fetched; nothing was written" in said
    monkeypatch.setenv("COLUMNS", "300")  # a long path fits
    shown = invoke("prices", "--instances", TRN1).out
    assert "fetched 2" in shown and "SKU S1" in shown and "prices.json" in shown


@pytest.mark.usefixtures("keys")
def test_without_network_the_command_fails_and_the_book_serves(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 and one line; the book is as it was."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", "http://127.0.0.1:1")
    assert "pricing:GetProducts" in invoke("prices", "refresh", "--instances", TRN1, exits=1).err
    invoke("prices")


def test_a_family_is_all_its_types(invoke: Invoke) -> None:
    """As SageMaker training and as EC2, and not those whose names only begin so. What is not there is named."""
    listed = json.loads(invoke("prices", "--instances", "trn1", "ml.p4d", "p5.48x", "--json").out)
    assert {one["instance_type"] for one in listed["prices"]} == {
        "ml.trn1.2xlarge", "ml.trn1.32xlarge", "trn1.2xlarge", "trn1.32xlarge", "ml.p4d.24xlarge",
    }  # fmt: skip
    assert listed["missing"] == ["p5.48x"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--region", "us-east-1", "refresh"], 2, "refresh comes first"),
        (["refresh", "--on", "2023-01-01"], 2, "takes no --on"),
        (["refresh", "--hosting"], 2, "needs --instances"),
        (["refresh", "--hosting", "--instances", "trn1.32xlarge"], 2, "e.g. ml.c5.xlarge"),
        (["--hosting"], 2, "goes with refresh"),
        (["--on", "2010-01-01"], 1, "Nothing in the book for 2010-01-01"),
        (["--instances", "ml.trn2.48xlarge"], 1, "windtunnel prices refresh --instances"),
        (
            ["--instances", "trn1", "--region", "us-east1"],
            1,
            "us-east1. Did you mean 'us-east-1'?",
        ),
    ],
)
def test_mistakes_name_the_fix(invoke: Invoke, words: list[str], code: int, message: str) -> None:
    """One line on stderr."""
    assert message in invoke("prices", *words, exits=code).err


def test_a_day_that_is_none_is_refused(invoke: Invoke) -> None:
    """argparse's own exit, with the form."""
    assert "write it as 2023-01-31" in invoke("prices", "--on", "tomorrow", exits=2).err
