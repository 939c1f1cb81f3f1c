"""Bills to the cent, and prices that always carry their date."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    InvalidInput,
    Price,
    PriceBook,
    PriceUnknown,
    UnknownInstance,
    billable_seconds,
    cost_usd,
    instance_type,
    spot_savings_percent,
)
from windtunnel.priceperf.money.offerings import LISTED, name_for
from windtunnel.priceperf.money.prices import BUILT_IN

SECONDS = st.floats(0, 1e7, allow_nan=False)
BOOK = PriceBook()


def test_a_begun_second_is_billed_and_rounding_noise_is_not() -> None:
    """Whole seconds, from times in milliseconds."""
    assert [billable_seconds(value) for value in (0, 0.2, 1.0, 1.0000000002, 61.001)] == [0, 1, 1, 1, 62]


def test_spot_savings_as_aws_shows_them() -> None:
    """(1 - billable / training) x 100."""
    assert spot_savings_percent(1000, 300) == pytest.approx(70.0)
    with pytest.raises(InvalidInput, match="billable seconds must lie between 0 and the 10 trained"):
        spot_savings_percent(10, 11)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_impossible_durations_are_refused(value: float) -> None:
    """Never a bill from nonsense."""
    with pytest.raises(InvalidInput):
        billable_seconds(value)


@given(seconds=SECONDS, price=st.floats(0, 1000), factor=st.integers(1, 9))
def test_cost_is_linear_in_price_and_instances(seconds: float, price: float, factor: int) -> None:
    """Twice the price is twice the bill."""
    assert cost_usd(price * factor, seconds) == pytest.approx(factor * cost_usd(price, seconds))
    assert cost_usd(price, seconds, factor) == pytest.approx(factor * cost_usd(price, seconds))


@given(duration=SECONDS, longer=SECONDS)
def test_longer_never_bills_less(duration: float, longer: float) -> None:
    """Billable seconds grow with the duration, and are less than one second above it."""
    assert billable_seconds(duration + longer) >= billable_seconds(duration)
    assert -0.001 <= billable_seconds(duration) - duration < 1.001


def test_lookup_takes_the_nearest_earlier_price() -> None:
    """p4d before and after its reduction; without a date the newest."""
    p4d = "ml.p4d.24xlarge"
    assert BOOK.price(p4d, date(2025, 5, 31)).usd_per_hour == 37.69
    assert BOOK.price(p4d, date(2025, 6, 1)).usd_per_hour == 25.251286
    assert BOOK.price(p4d).status == "seen"
    assert BOOK.price("p5.48xlarge").usd_per_hour == 55.04  # AWS's own words of May 2026


def test_derived_prices_follow_from_those_of_ec2() -> None:
    """SageMaker's hour costs a fixed part more than EC2's; which part, the source says."""
    derived = [price for price in PriceBook()._prices if price.status == "derived"]
    for price in derived:
        uplift = float(re.match(r"EC2 price x ([\d.]+)", price.source)[1])  # type: ignore[index]
        own = BOOK.price(price.instance_type.removeprefix("ml."), price.effective_from)
        assert price.usd_per_hour == pytest.approx(uplift * own.usd_per_hour, rel=1e-5)
    assert len(derived) == 11


def test_no_price_before_the_first() -> None:
    """A date before the book says so instead of guessing; an unknown type lists the known."""
    with pytest.raises(PriceUnknown, match="the first in the book is of 2022-10-10"):
        BOOK.price("ml.trn1.32xlarge", date(2020, 1, 1))
    with pytest.raises(PriceUnknown, match=r"It has: ml\.g5\.12xlarge, .*ml\.trn1n\.32xlarge\.$"):
        BOOK.price("ml.trn2.48xlarge")
    with pytest.raises(
        PriceUnknown, match=r"EC2 Capacity Block, in us-east-2 in the book\. It has: p4d\.24xlarge, "
    ):
        BOOK.price("p5.48xlarge", region="us-east-2", offering="EC2 Capacity Block")


def test_dates_start_where_all_have_a_price() -> None:
    """Comparing needs a price of each at the same day."""
    assert BOOK.dates(["ml.trn1.32xlarge", "ml.p4d.24xlarge"]) == (date(2022, 10, 10), date(2025, 6, 1))
    assert BOOK.dates(["ml.trn1n.32xlarge", "ml.p4d.24xlarge"]) == (date(2023, 4, 1), date(2025, 6, 1))
    assert BOOK.dates(["ml.trn1.32xlarge", "ml.trn2.48xlarge"]) == ()


def test_a_price_of_nothing_is_refused() -> None:
    """Zero and NaN are no prices."""
    for value in (0.0, float("nan")):
        with pytest.raises(InvalidInput):
            Price("x", value, "us-east-1", "test", date(2025, 1, 1), "seen", "test")


def test_cores_share_what_the_instance_has() -> None:
    """A NeuronCore has 95 TFLOPS and 16 GiB, an A100 312 and 40."""
    trn1, p4d = instance_type("trn1.32xlarge"), instance_type("ml.p4d.24xlarge")
    assert (trn1.core_peak_flops("bf16"), trn1.core_memory_gib) == (95e12, 16)
    assert (p4d.core_peak_flops("bf16"), p4d.core_memory_gib) == (312e12, 40)
    assert p4d.network_bandwidth == 50e9
    with pytest.raises(UnknownInstance, match=r"Known: ml\.trn1\.2xlarge"):
        instance_type("ml.g5.xlarge")


def test_each_line_of_the_built_in_prices_is_of_something_known() -> None:
    """A slip of the pen in the file would be a price that nobody finds."""
    for price in BUILT_IN:
        instance_type(price.instance_type)
        assert (
            price.offering in LISTED and name_for(price.instance_type, price.offering) == price.instance_type
        )
        assert price.status in ("published", "derived", "seen") and price.source
        assert price.until is None or price.effective_from < price.until


def test_no_built_in_price_is_of_a_day_to_come() -> None:
    """Where no day is named the newest one counts: a price that is announced would be taken before its day."""
    assert max(price.effective_from for price in BUILT_IN) <= date.today()
