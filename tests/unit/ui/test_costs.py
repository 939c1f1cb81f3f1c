"""What each job would have cost on AWS: the report's own figure, worked out once."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.counters import Counters
from tests.fakes.objects import FakeObjects
from tests.fakes.split_job import split_counters
from windtunnel.priceperf.money.offerings import TRAINING_ON_DEMAND
from windtunnel.prices.aws_price_list import ListedPrice
from windtunnel.prices.cache import SCHEMA, cache_path
from windtunnel.reports.for_job import report_for_job
from windtunnel_local.ui.costs import CostBook
from windtunnel_local.ui.job_outputs import Ended

BEGIN = datetime(2026, 7, 31, tzinfo=timezone.utc)
LONG_S = 60.0


@pytest.fixture
def objects(tmp_path: Path) -> FakeObjects:
    return FakeObjects(tmp_path, "out")


def described(name: str, status: str = "Completed") -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "TrainingJobStatus": status,
        "CreationTime": BEGIN,
        "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1},
        "OutputDataConfig": {"S3OutputPath": "s3://out/models/"},
    }


def store(objects: FakeObjects, name: str, document: Any) -> None:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    objects.put("out", f"models/{name}/windtunnel/counters.json", BytesIO(data))


def test_it_is_the_figure_of_the_report(objects: FakeObjects, counters: Counters) -> None:
    """With its interval and the day of its price."""
    store(objects, "one", counters())
    job = described("one")
    cost = CostBook(objects).of([job], LONG_S)["one"]
    comparison = report_for_job(Ended(job, counters()), instances=("ml.trn1.32xlarge",)).comparison
    assert comparison is not None
    on, (wanted,) = comparison.costs[-1]
    assert cost is not None
    assert wanted is not None
    assert (cost.usd, cost.low_usd, cost.high_usd, cost.on) == (
        wanted.usd,
        wanted.low_usd,
        wanted.high_usd,
        on,
    )


def test_it_is_worked_out_once(objects: FakeObjects, counters: Counters) -> None:
    """What has ended does not change: its file is not read again, however little time there is."""
    store(objects, "one", counters())
    book = CostBook(objects)
    first = book.of([described("one")], LONG_S)
    objects.delete("out", "models/one/windtunnel/counters.json")
    assert book.of([described("one")], 0.0) == first


def test_it_follows_the_users_prices(objects: FakeObjects, counters: Counters) -> None:
    """Fetched while the backend runs: the report has them at once, and so has the list."""
    store(objects, "one", counters())
    book = CostBook(objects)
    before = book.of([described("one")], LONG_S)["one"]
    listed = ListedPrice(
        "ml.trn1.32xlarge", "us-east-1", TRAINING_ON_DEMAND, "12.3625", "2026-07-01", "2026-07-02", "SKU"
    )
    cache_path().parent.mkdir()
    cache_path().write_text(json.dumps({"schema": SCHEMA, "prices": [asdict(listed)]}))
    after = book.of([described("one")], LONG_S)["one"]
    assert before is not None and after is not None
    assert after.usd == pytest.approx(before.usd / 2)


def test_a_first_paint_does_not_wait(objects: FakeObjects, counters: Counters) -> None:
    """Without time what is not known is missing, and comes later."""
    store(objects, "one", counters())
    book = CostBook(objects)
    assert book.of([described("one")], -1.0) == {}
    assert book.of([described("one")], LONG_S)["one"] is not None


def test_what_goes_on_has_none_yet(objects: FakeObjects, counters: Counters) -> None:
    """It is asked again once it has ended."""
    store(objects, "one", counters())
    book = CostBook(objects)
    assert book.of([described("one", "InProgress")], LONG_S) == {}
    assert book.of([described("one")], LONG_S)["one"] is not None


@pytest.mark.parametrize(
    "document",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": "other"}',
        b'{"schema": "windtunnel.counters/1"}',
        b"\xff\xfe",
    ],
)
def test_what_cannot_be_modelled_has_no_figure(objects: FakeObjects, document: bytes | None) -> None:
    """A job's code may have written anything there."""
    if document is not None:
        store(objects, "one", document)
    assert CostBook(objects).of([described("one")], LONG_S) == {"one": None}


def test_a_type_without_figures_has_none(objects: FakeObjects, counters: Counters) -> None:
    """It is no failure of the list."""
    store(objects, "one", counters(instance_type="ml.made.up"))
    assert CostBook(objects).of([described("one")], LONG_S) == {"one": None}


def test_what_does_not_fit_the_memory_has_no_cost(objects: FakeObjects) -> None:
    """Llama-2-7B on two cores."""
    own = {**split_counters(2, 1), "instance_type": "ml.trn1.2xlarge", "instance_cores": 2}
    store(objects, "large", own)
    assert CostBook(objects).of([described("large")], LONG_S)["large"] is None
    store(objects, "split", split_counters())
    assert CostBook(objects).of([described("split")], LONG_S)["split"] is not None


def test_a_job_of_unknown_size_has_no_cost(objects: FakeObjects, counters: Counters) -> None:
    """What a short rehearsal took is not what the whole job would; stopped before a pass ended, it shows no size."""
    for name, loaders in (
        ("stopped", []),
        ("known", [{"line": "train.py:9", "samples": 4, "bound": 99_999}]),
    ):
        listed = [{**loader, "passes": 1, "trains": True} for loader in loaders]
        store(objects, name, counters(input={"rehearsed_steps": 16, "loaders": listed}))
    costs = CostBook(objects).of([described("stopped", "Stopped"), described("known")], LONG_S)
    assert costs["stopped"] is None and costs["known"] is not None
