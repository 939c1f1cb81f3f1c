"""Prices from AWS's Price List API: real boto3 against a local price list, and the file they are kept in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.fakes.price_list import ec2, served, training
from windtunnel.errors import ConfigurationError, PricesUnavailable
from windtunnel.priceperf import PriceBook
from windtunnel.priceperf.money.offerings import HOSTING_ON_DEMAND
from windtunnel.priceperf.money.prices import BUILT_IN
from windtunnel.prices import aws_price_list, cache
from windtunnel.reports.prices import prices
from windtunnel.session.client_environment import SAVED

TRN1, P4D = "ml.trn1.32xlarge", "ml.p4d.24xlarge"
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", SAVED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(cache, "_now", lambda: NOW)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Products of a price list that boto3 asks; the test may change them."""
    products: list[dict[str, Any]] = []
    with served(products) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", url)
        yield products


def test_a_refresh_brings_dated_prices_of_both_offerings(aws: list[dict[str, Any]], tmp_path: Path) -> None:
    """SageMaker's and EC2's, each of its region, with AWS's own date; all pages are read."""
    aws += [
        training(TRN1, "24.7250000000", attributes={"usagetype": f"USE1-TrainingPlan:{TRN1}"}),
        training(TRN1, "23.5000000000", sku="TRN1SKU"),
        training(TRN1, "29.0000000000", region="eu-west-1"),
        ec2("p4d.24xlarge", "20.0000000000"),
        ec2("p4d.24xlarge", "1.0", attributes={"marketoption": "CapacityBlock"}),
        ec2("p4d.24xlarge", "2.0", attributes={"operatingSystem": "Windows"}),
        ec2("p4d.24xlarge", "0.0000000000", sku="FREE"),
    ]
    done = cache.refresh(instances=[TRN1, "p4d.24xlarge"])
    assert [(item.instance_type, item.usd_per_hour) for item in done.fetched] == [
        (TRN1, "23.5000000000"),
        ("p4d.24xlarge", "20.0000000000"),
    ]
    assert done.kept == ()
    loaded = cache.load(today=date(2026, 11, 24))
    price = loaded.book.price(TRN1)
    assert (price.usd_per_hour, price.status, price.region) == (23.5, "fetched", "us-east-1")
    assert (price.effective_from, price.fetched_on) == (date(2026, 11, 1), NOW.date())
    assert "SKU TRN1SKU" in price.source
    assert loaded.book.price("p4d.24xlarge").usd_per_hour == 20.0
    assert loaded.notes == ("Newest price fetched from AWS: 2026-11-21 (3 days ago).",)
    stored = json.loads((tmp_path / "home" / "prices.json").read_text())
    assert stored["prices"][0]["effective_date"] == "2026-11-01T00:00:00Z"
    assert stored["prices"][0]["fetched_at"] == "2026-11-21T12:00:00Z"


def test_an_hour_of_an_endpoint_is_another_price(aws: list[dict[str, Any]]) -> None:
    """Asked for by its own name, kept beside that of training, and neither is taken for the other."""
    hosting = {"component": "Hosting", "usagetype": f"USE1-Host:{TRN1}"}
    aws += [
        training(TRN1, "23.5000000000"),
        training(TRN1, "26.0000000000", attributes=hosting),
        training(TRN1, "1.0", attributes={**hosting, "usagetype": f"USE1-AsyncInf:{TRN1}"}),
    ]
    before = PriceBook().price(TRN1).usd_per_hour
    done = cache.refresh(instances=[TRN1], offering=HOSTING_ON_DEMAND)
    assert [(item.offering, item.usd_per_hour) for item in done.fetched] == [
        (HOSTING_ON_DEMAND, "26.0000000000")
    ]
    book = cache.load().book
    assert book.price(TRN1).usd_per_hour == before
    assert book.price(TRN1, offering=HOSTING_ON_DEMAND).usd_per_hour == 26.0
    cache.refresh(instances=[TRN1])
    assert cache.load().book.price(TRN1).usd_per_hour == 23.5
    shown = prices(on=NOW.date(), instances=[TRN1]).prices
    assert {price.offering: price.usd_per_hour for price in shown} == {
        "SageMaker training on-demand": 23.5,
        HOSTING_ON_DEMAND: 26.0,
    }


def test_what_was_written_can_be_read(aws: list[dict[str, Any]]) -> None:
    """Whatever characters AWS's description has: a file that cannot be read costs all that was fetched before."""
    listed = training(TRN1, "23.5", sku="")
    (term,) = listed["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    dimension["description"] = "$23.5\u00a0per\n\u200bhour"
    aws.append(listed)
    cache.refresh(instances=[TRN1])
    loaded = cache.load()
    assert loaded.path is not None and loaded.book.price(TRN1).usd_per_hour == 23.5
    assert json.loads(loaded.path.read_text())["prices"][0]["description"] == "$23.5 per hour"


def test_the_past_stays(aws: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second refresh adds; the built-in and the first answer keep their days."""
    aws.append(training(TRN1, "23.0"))
    cache.refresh(instances=[TRN1])
    aws[:] = [training(TRN1, "20.0", since="2027-02-01T00:00:00Z")]
    monkeypatch.setattr(cache, "_now", lambda: datetime(2027, 2, 3, tzinfo=timezone.utc))
    cache.refresh(instances=[TRN1])
    cache.refresh(instances=[TRN1])
    book = cache.load().book
    days = (date(2026, 10, 31), date(2026, 11, 1), date(2027, 1, 31), date(2027, 2, 1))
    assert [book.price(TRN1, day).usd_per_hour for day in days] == [24.725, 23.0, 23.0, 20.0]
    assert len(book.prices) == len(BUILT_IN) + 2


def test_what_aws_does_not_say_clearly_is_not_taken(aws: list[dict[str, Any]], tmp_path: Path) -> None:
    """The old price stays, and the answer says why."""
    client = aws_price_list.pricing_client()
    unclear: list[tuple[list[dict[str, Any]], str]] = [
        ([], "AWS lists no SageMaker training on-demand price"),
        ([training(TRN1, "24.0", unit="GB-Mo")], "AWS lists no"),
        ([training(TRN1, "24.0", since="2030-01-01T00:00:00Z")], "AWS lists no"),
        ([training(TRN1, "24.0", attributes={"component": "Hosting"})], "AWS lists no"),
        ([training(TRN1, "24.0", sku="A"), training(TRN1, "25.0", sku="B")], "several prices .*SKU B"),
    ]
    for products, reason in unclear:
        aws[:] = products
        done = cache.refresh(instances=[TRN1], client=client)
        assert done.fetched == () and not (tmp_path / "home" / "prices.json").exists()
        assert re.search(reason, done.kept[0].reason)
    assert cache.load().book.price(TRN1).usd_per_hour == 24.725


def test_products_without_an_instance_name_are_found(aws: list[dict[str, Any]]) -> None:
    """Older products name the instance in instanceType only."""
    aws.append(training(TRN1, "24.0", attributes={"instanceName": ""}))
    assert cache.refresh(instances=[TRN1]).fetched[0].usd_per_hour == "24.0"


def test_a_refusal_says_what_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AWS's word, the permission, and that all goes on."""
    refused = "AccessDeniedException"
    with served([], (400, refused)) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", url)
        with pytest.raises(PricesUnavailable, match=rf"{refused}.*pricing:GetProducts.*reports go on"):
            cache.refresh(instances=[TRN1])
    assert not (tmp_path / "home").exists()


def test_no_network_and_no_credentials_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear error for both, never a traceback of botocore."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", "http://127.0.0.1:1")
    with pytest.raises(PricesUnavailable, match="cannot be asked: Could not connect"):
        cache.refresh(instances=[TRN1])
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(PricesUnavailable, match="credentials"):
        cache.refresh(instances=[TRN1])
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(PricesUnavailable, match="nobody"):
        cache.refresh(instances=[TRN1])


def test_a_local_backend_is_not_taken_for_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint of all services does not lead the price list away; `windtunnel env`'s keys are refused."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert aws_price_list.pricing_client().meta.endpoint_url == "https://api.pricing.us-east-1.amazonaws.com"
    monkeypatch.setenv(SAVED, "{}")
    with pytest.raises(ConfigurationError, match="windtunnel env --unset"):
        aws_price_list.pricing_client()
    own = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b")
    assert aws_price_list.pricing_client(own).meta.region_name == "us-east-1"


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"schema": "other/9", "prices": []}', '{"schema": "windtunnel.prices/1", "prices": [1]}'],
)
def test_a_damaged_file_costs_no_report(tmp_path: Path, content: str) -> None:
    """The built-in book serves, with a note; a refresh does not write over what it cannot read."""
    path = tmp_path / "home" / "prices.json"
    path.parent.mkdir()
    path.write_text(content)
    loaded = cache.load()
    assert loaded.book.prices == PriceBook().prices and loaded.path is None
    assert "cannot be read" in loaded.notes[0] and "built-in prices serve" in loaded.notes[0]
    with pytest.raises(ConfigurationError, match="Move the file away"):
        cache.refresh(instances=[TRN1])
    assert path.read_text() == content


def test_a_file_is_replaced_as_a_whole(
    aws: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure while writing leaves the file that was there, and nothing beside it."""
    aws.append(training(TRN1, "24.0"))
    cache.refresh(instances=[TRN1])
    path = tmp_path / "home" / "prices.json"
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        cache.refresh(instances=[TRN1])
    assert path.read_text() == before
    assert sorted(item.name for item in path.parent.iterdir()) == ["prices.json", "prices.json.lock"]


def test_old_prices_say_that_they_are_old(aws: list[dict[str, Any]]) -> None:
    """After a month the note names the command."""
    aws.append(training(TRN1, "24.0"))
    cache.refresh(instances=[TRN1])
    assert (
        "(31 days ago). Older than a month: windtunnel prices refresh"
        in (cache.load(today=date(2026, 12, 22)).notes[0])
    )
    assert "(today)" in cache.load(today=NOW.date()).notes[0]
    (note,) = cache.load(Path("/nowhere")).notes
    assert "nothing was fetched" in note
    of = [price for price in BUILT_IN if price.offering == "SageMaker training on-demand"]
    newest = max(price.effective_from for price in of)
    assert max(price.effective_from for price in BUILT_IN) > newest  # EC2's
    assert f"whose newest SageMaker on-demand entry is of {newest};" in note
