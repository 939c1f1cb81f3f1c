"""What an hour costs by offering and day: list prices stay apart from what is assumed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    CountedWorkload,
    FullScale,
    InvalidInput,
    Offering,
    Price,
    PriceBook,
    PriceUnknown,
    UnknownInstance,
    Workload,
    by_offering,
    compare,
    sensitivity,
)
from windtunnel.priceperf.money.offerings import name_for
from windtunnel.priceperf.money.prices import BUILT_IN

P4D = "ml.p4d.24xlarge"
DAYS = st.dates(date(2019, 1, 1), date(2030, 1, 1))


def fetched(usd: float, since: date, on: date, region: str = "us-east-1", name: str = P4D) -> Price:
    """A price as AWS would answer it; the figures of these tests are made up."""
    return Price(name, usd, region, "SageMaker training on-demand", since, "fetched", "test", on)


def test_a_name_without_ml_is_an_ec2_price() -> None:
    """The offering decides the name where both are given."""
    book = PriceBook()
    assert book.price("trn1.32xlarge").offering == "EC2 on-demand"
    assert book.price("ml.trn1.32xlarge", offering="EC2 on-demand").usd_per_hour == 21.50
    assert book.price("trn1.32xlarge", offering="SageMaker training on-demand").usd_per_hour == 24.725


@pytest.mark.parametrize(
    ("offering", "claim"), [("SageMaker savings plan", 0.64), ("SageMaker managed spot", 0.9)]
)
def test_a_claim_of_aws_is_never_a_price(offering: Offering, claim: float) -> None:
    """Without a stated discount there is no figure; with one it is marked, dated and explained."""
    book = PriceBook()
    with pytest.raises(InvalidInput, match="which is no price: state a discount"):
        book.price(P4D, date(2023, 1, 1), offering=offering)
    price = book.assuming(offering, 0.5).price(P4D, date(2023, 1, 1))
    assert (price.usd_per_hour, price.status, price.offering) == (37.69 / 2, "assumed", offering)
    assert price.effective_from == date(2022, 10, 10)
    assert "stated by the user" in price.source and "37.69, published" in price.source
    for wrong in (0, -0.1, claim + 0.01, float("nan")):
        with pytest.raises(InvalidInput, match="at most"):
            book.assuming(offering, wrong)
    with pytest.raises(InvalidInput, match="takes no discount"):
        book.assuming("EC2 on-demand", 0.2)


def test_a_savings_plan_that_somebody_has_read_is_a_price() -> None:
    """An entry of the book beats the assumption."""
    own = Price(P4D, 20.0, "us-east-1", "SageMaker savings plan", date(2024, 1, 1), "seen", "our contract")
    book = PriceBook((*BUILT_IN, own))
    assert book.price(P4D, offering="SageMaker savings plan") == own
    assert book.price(P4D).status == "seen" and book.price(P4D).usd_per_hour == 25.251286


@given(day=DAYS, part=st.floats(0.01, 0.64))
def test_a_book_of_a_day_and_an_assumed_book_agree_with_the_lookup(day: date, part: float) -> None:
    """`at` is `on`, and a discount is linear and leaves EC2 alone."""
    book = PriceBook()
    try:
        plain = book.price(P4D, day)
    except PriceUnknown:
        with pytest.raises(PriceUnknown):
            book.at(day).price(P4D)
        return
    assert book.at(day).price(P4D) == plain
    assumed = book.assuming("SageMaker savings plan", part)
    assert assumed.price(P4D, day).usd_per_hour == pytest.approx(plain.usd_per_hour * (1 - part))
    assert assumed.price("p4d.24xlarge", day) == book.price("p4d.24xlarge", day)


@given(usd=st.floats(1, 100), since=DAYS, later=st.integers(0, 900), day=DAYS)
def test_fetched_prices_never_change_the_past(usd: float, since: date, later: int, day: date) -> None:
    """Before the date that AWS names, the book says what it said; from the answer's day on, AWS's answer."""
    built_in, on = PriceBook(), since + timedelta(days=later)
    book = built_in.adding([fetched(usd, since, on)])
    if day >= on >= date(2025, 6, 1):  # a later price of the book beats an earlier answer
        assert book.price(P4D, day).usd_per_hour == usd
    elif date(2022, 10, 10) <= day < since:
        assert book.price(P4D, day) == built_in.price(P4D, day)
    assert set(built_in.prices) < set(book.prices)


def test_a_price_confirmed_adds_no_date_of_comparison() -> None:
    """Only days on which a price changed are worth a row."""
    names = ["ml.trn1.32xlarge", P4D]
    before = PriceBook().dates(names)
    same = fetched(25.251286, date(2026, 11, 1), date(2026, 11, 20))
    assert PriceBook().adding([same]).dates(names) == before
    changed = fetched(20.0, date(2026, 11, 1), date(2026, 11, 20))
    assert PriceBook().adding([changed]).dates(names) == (*before, date(2026, 11, 1))
    assert PriceBook().dates([]) == ()


def test_prices_of_other_regions_count_only_where_they_are_asked_for() -> None:
    """A price fetched for Ireland does not enter a comparison that names no region."""
    ireland = fetched(41.0, date(2026, 11, 1), date(2026, 11, 20), "eu-west-1")
    book = PriceBook().adding([ireland])
    assert book.price(P4D).region == "us-west-2"
    assert book.price(P4D, region="eu-west-1") == ireland
    other = PriceBook().adding([fetched(5.0, date(2026, 1, 1), date(2026, 1, 2), "eu-west-1", "ml.x")])
    assert other.price("ml.x").region == "eu-west-1"


def test_what_if_prices_are_marked_as_assumed(counters: Any) -> None:
    """Cuts and spot of the sensitivity are no prices; spot names its offering, EC2's is not SageMaker's."""
    workload = CountedWorkload.from_counters(counters())
    for name, offering in ((P4D, "SageMaker managed spot"), ("p4d.24xlarge", "EC2 spot")):
        comparison = compare(workload, ["ml.trn1.32xlarge", name], FullScale(train_samples=1_000_000))
        rows = sensitivity(workload, comparison, FullScale(train_samples=1_000_000))
        spot = [row.costs[1] for row in rows if row.assumed and "p4d" in row.change and row.costs[1]]
        assert [cost.price.offering for cost in spot] == [offering]
        assert spot[0].price.status == "assumed" and "up to 90%" in spot[0].price.source
        cuts = [row.costs[1] for row in rows if "33 %" in row.change and "p4d" in row.change and row.costs[1]]
        assert [cost.price.status for cost in cuts] == ["assumed"]


@pytest.mark.parametrize("offering", ["EC2 on-demand", "EC2 Capacity Block", "SageMaker training on-demand"])
def test_a_book_that_buys_one_way_prices_every_name_so(offering: Offering) -> None:
    """As a lookup that names the offering; its dates are those of that offering's changes alone."""
    book, bought = PriceBook(), PriceBook().buying(offering)
    for name in (P4D, "p4d.24xlarge", "ml.trn1.32xlarge"):
        assert bought.price(name) == book.price(name, offering=offering)
    if offering != "EC2 Capacity Block":  # which no name stands for
        assert bought.dates([P4D]) == book.dates([name_for(P4D, offering)])
    assert all(bought.price(P4D, day).offering == offering for day in bought.dates([P4D]))
    assert bought.at(date(2025, 7, 1)).price(P4D).offering == offering
    assert bought.dates([P4D])


def test_buying_what_has_no_list_price_needs_a_discount_and_nothing_else_takes_one() -> None:
    """A claim of AWS's is no price."""
    spot = PriceBook().buying("SageMaker managed spot", 0.5)
    assert spot.price(P4D).usd_per_hour == PriceBook().price(P4D).usd_per_hour / 2
    with pytest.raises(InvalidInput, match="state a discount"):
        PriceBook().buying("SageMaker managed spot")
    with pytest.raises(InvalidInput, match="takes no discount"):
        PriceBook().buying("EC2 on-demand", 0.5)


def test_what_is_no_offering_and_no_part_is_said_at_once() -> None:
    """Not by a later lookup, which would find no price."""
    with pytest.raises(InvalidInput, match=r"an offering is one of EC2 on-demand, .*, not 'ec2'"):
        PriceBook().buying("ec2")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"at most 0\.9 .*, not '30%'"):
        PriceBook().buying("SageMaker managed spot", "30%")  # type: ignore[arg-type]


def test_a_discount_leaves_the_list_price_what_it_is() -> None:
    """Who asks for on-demand by name gets AWS's price, and spot is below that alone."""
    job = Workload.transformer("Llama-3.1-8B", global_batch=1024)
    size = FullScale(1_000_000)
    for book in (
        PriceBook().buying("SageMaker managed spot", 0.65),
        PriceBook().buying("EC2 Capacity Block"),
    ):
        assert book.price(P4D, offering="SageMaker training on-demand") == PriceBook().price(P4D)
        found = compare(job, [P4D, "ml.trn1.32xlarge"], size, prices=book)
        (on_demand,) = [
            answer for offering, answer in by_offering(found.estimates, book) if "training" in offering
        ]
        assert on_demand.whole.costs == compare(job, [P4D, "ml.trn1.32xlarge"], size).costs[-1][1]
        assert not [row for row in sensitivity(job, found, size, prices=book) if row.change.endswith("spot")]


def test_the_last_way_to_buy_holds() -> None:
    """For every name, and without the discount of the one before."""
    spot = PriceBook().buying("SageMaker managed spot", 0.7)
    plan = PriceBook().buying("EC2 on-demand").buying("SageMaker savings plan", 0.3)
    list_price = PriceBook().price("ml.trn1.32xlarge").usd_per_hour
    for name in ("trn1.32xlarge", "ml.trn1.32xlarge"):
        assert spot.price(name).usd_per_hour == pytest.approx(0.3 * list_price)
        assert plan.price(name).usd_per_hour == pytest.approx(0.7 * list_price)
        assert spot.buying("SageMaker training on-demand").price(name).usd_per_hour == list_price


@pytest.mark.parametrize("name", ["ml.p5.48xlarge", "ml.p4d.24xlarge", "p4d.24xlarge"])
def test_a_stated_price_stands_in_for_the_books(name: str) -> None:
    """Of that name alone; it says that it is the user's own."""
    day, other = date(2026, 1, 1), "ml.trn1.32xlarge"
    book = PriceBook().stating({name: 12.5}, day)
    found = book.price(name)
    assert (found.usd_per_hour, found.status, found.effective_from) == (12.5, "stated", day)
    assert book.price(other) == PriceBook().price(other)
    assert book.dates([name, other]) == (day,)
    with pytest.raises(UnknownInstance):
        book.stating({"ml.p99.large": 1.0}, day)
    with pytest.raises(InvalidInput, match="above 0"):
        book.stating({name: -1.0}, day)


def test_a_price_of_ones_own_counts_before_a_built_in_one_of_its_day() -> None:
    """Whoever adds a price means it."""
    built_in = PriceBook().price("p4d.24xlarge")
    own = replace(built_in, usd_per_hour=15.0, source="mine")
    assert PriceBook().adding([own]).price("p4d.24xlarge") == own
