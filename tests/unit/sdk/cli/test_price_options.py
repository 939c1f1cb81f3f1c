"""How the hour is bought, as `compare`, `report` and `plan` take it on the command line."""

from __future__ import annotations

import json

import pytest

from tests.unit.conftest import Invoke
from windtunnel.priceperf import PriceBook

MODEL = ("--architecture", "Llama-3.1-8B", "--instances", "trn1", "p5")
COMPARE = ("compare", *MODEL, "--samples", "1000000", "--global-batch", "256")
PLAN = ("plan", *MODEL, "--nodes", "1")


@pytest.mark.parametrize("command", [COMPARE, PLAN])
@pytest.mark.parametrize(
    ("given", "offering", "discount"),
    [
        (("--offering", "capacity-block"), "EC2 Capacity Block", None),
        (("--offering", "ec2"), "EC2 on-demand", None),
        (("--offering", "spot", "--discount", "60%"), "SageMaker managed spot", 0.6),
        (("--offering", "savings-plan", "--discount", "0.3"), "SageMaker savings plan", 0.3),
    ],
)
def test_an_offering_prices_every_hour(
    invoke: Invoke, command: tuple[str, ...], given: tuple[str, ...], offering: str, discount: float | None
) -> None:
    """In the costs, and in words."""
    data = json.loads(invoke(*command, *given, "--json").out)
    book = PriceBook().buying(offering, discount)  # type: ignore[arg-type]
    found = data.get("plans") or [
        {"priced_as": e["priced_as"], "cost": e["costs"][-1]} for e in data["estimates"]
    ]
    for one in found:
        assert one["cost"]["price"]["offering"] == offering
        assert one["cost"]["price"]["usd_per_hour"] == pytest.approx(
            book.price(one["priced_as"]).usd_per_hour
        )
    assert offering in invoke(*command, *given).out


def test_a_price_that_has_ended_stands_with_its_end(invoke: Invoke) -> None:
    """By its own source; no newer one is known."""
    data = json.loads(invoke(*COMPARE, "--offering", "capacity-block", "--json").out)
    assert [one["costs"][-1]["price"]["until"] for one in data["estimates"]] == ["2025-01-01", None]
    for command in (COMPARE, PLAN):
        said = " ".join(invoke(*command, "--offering", "capacity-block").out.split())
        assert "ap-southeast-4 2024-10-01 to 2025-01-01" in said
        assert "Blocks are sold by whole days, in advance; here only the time used counts." in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--offering", "spot"), "state it below on-demand, such as --discount 60%, at most 0.9"),
        (("--offering", "savings-plan", "--discount", "65%"), "at most 0.64"),
        (("--offering", "ec2", "--discount", "10%"), "takes no discount"),
        (("--discount", "10%"), "give --offering too"),
        (("--offering", "ec2", "--price", "p5=30"), "give one"),
        (
            ("--offering", "sagemaker", "--instances", "p5.48xlarge"),
            "p5.48xlarge asks for EC2's price: name ml.p5.48xlarge",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(invoke: Invoke, given: tuple[str, ...], said: str) -> None:
    """With what to give instead."""
    for command in (COMPARE, PLAN):
        assert said in invoke(*command, *given, exits=2).err


def test_unknown_types_of_prices_are_named_at_once(invoke: Invoke) -> None:
    """Not one after the other's correction."""
    said = invoke(*PLAN, "--price", "x9=1", "--price", "y8=2", exits=2).err
    assert "No figures for instance type 'x9'. No figures for instance type 'y8'." in said


def test_a_number_above_one_is_no_part(invoke: Invoke) -> None:
    """30 may be meant as 30 %, and is 30 times the price."""
    said = invoke(*PLAN, "--offering", "spot", "--discount", "30", exits=2).err
    assert "write it as 30% or 0.3" in said


def test_a_job_on_aws_is_held_against_the_price_of_its_day(invoke: Invoke) -> None:
    """So a report with a rehearsal takes no offering."""
    said = invoke("report", "job", "--rehearsal", "counters.json", "--offering", "ec2", exits=2).err
    assert "--offering does not go with --rehearsal" in said
