"""Offerings, the ways to buy an hour: some have list prices, others only AWS's claim of a largest discount.

A claim is no price. The price book does not have the price of a savings plan or of spot capacity, so their
price is the on-demand price less a discount that the user states, with status ``assumed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import InvalidInput, quoted

Offering = Literal[
    "EC2 on-demand",
    "EC2 Capacity Block",
    "SageMaker training on-demand",
    "SageMaker hosting on-demand",
    "SageMaker savings plan",
    "SageMaker managed spot",
]

EC2_ON_DEMAND: Offering = "EC2 on-demand"
CAPACITY_BLOCK: Offering = "EC2 Capacity Block"
"""Capacity Blocks for ML: instances reserved for whole days, paid in advance. AWS changes the fee every few
months."""
TRAINING_ON_DEMAND: Offering = "SageMaker training on-demand"
HOSTING_ON_DEMAND: Offering = "SageMaker hosting on-demand"
"""An instance of a real-time endpoint, billed from InService until the endpoint is deleted."""
SAVINGS_PLAN: Offering = "SageMaker savings plan"
MANAGED_SPOT: Offering = "SageMaker managed spot"
LISTED: tuple[Offering, ...] = (TRAINING_ON_DEMAND, EC2_ON_DEMAND, CAPACITY_BLOCK)
"""The ways to buy an hour of training that have list prices."""
OFFERINGS: tuple[Offering, ...] = get_args(Offering)


@dataclass(frozen=True)
class Claim:
    """The largest discount below on-demand that AWS claims. ``up_to`` 0.64: 64 %. ``words``: AWS's own."""

    up_to: float
    words: str
    source: str


CLAIMS: Mapping[Offering, Claim] = {
    SAVINGS_PLAN: Claim(
        0.64,
        "help to reduce your costs by up to 64%",
        "AWS on Amazon SageMaker Savings Plans (aws.amazon.com/savingsplans/ml-pricing), "
        "read in third parties' quotations",
    ),
    MANAGED_SPOT: Claim(
        0.90,
        "can optimize the cost of training models up to 90% over on-demand instances",
        "Amazon SageMaker Developer Guide, Managed Spot Training, read in a copy of it",
    ),
}


@dataclass(frozen=True)
class Discount:
    """A discount below SageMaker's on-demand price that the user states. ``part`` 0.3: 30 % less.

    Raises:
        InvalidInput: not between 0 and AWS's own claim, or an offering that has a list price.
    """

    offering: Offering
    part: float

    def __post_init__(self) -> None:
        """Refuse a discount above AWS's own claim."""
        claim = CLAIMS.get(self.offering)
        if claim is None:
            raise InvalidInput(
                f"{self.offering!r} takes no discount. An assumed discount is one of: {', '.join(CLAIMS)}."
            )
        if not isinstance(self.part, int | float) or not 0 < self.part <= claim.up_to:
            raise InvalidInput(
                f"discount of a {self.offering} must be above 0 and at most {claim.up_to} "
                f"(AWS: {claim.words!r}), not {quoted(self.part)}"
            )

    @property
    def basis(self) -> str:
        """The assumption in words."""
        claim = CLAIMS[self.offering]
        return (
            f"assumed: on-demand less {self.part * 100:g} %, a discount stated by the user "
            f"(AWS claims {claim.words!r}; {claim.source})"
        )


def offering_of(instance_type: str) -> Offering:
    """The offering that an instance's name stands for: SageMaker training with ``ml.``, otherwise EC2 on-demand."""
    return TRAINING_ON_DEMAND if instance_type.startswith("ml.") else EC2_ON_DEMAND


def name_for(instance_type: str, offering: Offering) -> str:
    """The name of the instance in an offering's list: with ``ml.`` for SageMaker, without for EC2."""
    bare = instance_type.removeprefix("ml.")
    return bare if offering in (EC2_ON_DEMAND, CAPACITY_BLOCK) else f"ml.{bare}"
