"""Options that say what an hour costs, for the commands with modelled costs: own prices, and ways to buy the hour."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from windtunnel.cli.amounts import dollars, part
from windtunnel.priceperf.money.offerings import (
    CAPACITY_BLOCK,
    EC2_ON_DEMAND,
    MANAGED_SPOT,
    SAVINGS_PLAN,
    TRAINING_ON_DEMAND,
    Offering,
    name_for,
)

if TYPE_CHECKING:
    from windtunnel.priceperf import PriceBook

_OFFERINGS: Mapping[str, Offering] = {
    "sagemaker": TRAINING_ON_DEMAND,
    "ec2": EC2_ON_DEMAND,
    "capacity-block": CAPACITY_BLOCK,
    "savings-plan": SAVINGS_PLAN,
    "spot": MANAGED_SPOT,
}
"""The offerings by the word for each on the command line."""


def add_prices(parser: argparse.ArgumentParser) -> None:
    """Add ``--price``, a price of the user's own, and ``--offering`` with ``--discount``, how the hour is bought."""
    parser.add_argument(
        "--price",
        action="append",
        metavar="TYPE=USD",
        help=(
            "your own price of an hour, instead of the price book's: p5=55.04, ml.p5.48xlarge=55.04 "
            "(repeat for each type)"
        ),
    )
    parser.add_argument(
        "--offering",
        choices=_OFFERINGS,
        help="how every hour is bought (default: as the names say); the last two need --discount",
    )
    parser.add_argument(
        "--discount",
        type=part,
        metavar="PART",
        help="below SageMaker's on-demand price: 30%% or 0.3 (assumed)",
    )


def prices_of(args: argparse.Namespace, on: date | None) -> PriceBook | None:
    """The price book that ``--price`` or ``--offering`` ask for; None: none was given. ``on``: the day from which a
    ``--price`` is valid (None: today).

    Raises:
        InvalidInput: ``--price`` has another form, or its amount is no price; a discount without an offering that takes
            one, or such an offering without a discount; or both a price and an offering.
        UnknownInstance: its type is not in the catalog.
    """
    from windtunnel.priceperf import InvalidInput
    from windtunnel.prices import cache

    if args.offering is None and args.discount is not None:
        raise InvalidInput("--discount is that of a way to buy the hour: give --offering too, as spot")
    if args.offering is not None:
        if args.price:
            raise InvalidInput("--price is what you pay, --offering takes the book's prices: give one")
        return cache.load().book.buying(_OFFERINGS[args.offering], args.discount)
    if not args.price:
        return None
    given: dict[str, float] = {}
    for text in args.price:
        name = _of_price(text)
        if name in given:
            raise InvalidInput(f"--price gives {name} twice: leave one")
        try:
            given[name] = dollars(text.partition("=")[2])
        except argparse.ArgumentTypeError:
            raise InvalidInput(
                f"--price takes TYPE=USD, such as ml.p5.48xlarge=55.04, not {text!r}"
            ) from None
    return cache.load().book.stating(given, on or datetime.now(timezone.utc).date())


def all_priced(args: argparse.Namespace, names: Iterable[str]) -> None:
    """Check that each ``--price`` is for an instance of the report, and that ``--offering`` sells all of these.

    ``names``: the report's instances.

    Raises:
        InvalidInput: a price is for another instance, or SageMaker's offering for a name that asks for EC2's price.
    """
    from windtunnel.priceperf import InvalidInput

    priced = sorted(set(names))
    for name in priced if args.offering else ():
        sold = name_for(name, _OFFERINGS[args.offering])
        if not name.startswith("ml.") and sold != name:
            raise InvalidInput(
                f"--offering {args.offering} is SageMaker's, and {name} asks for EC2's price: name {sold}"
            )
    for text in args.price or ():
        if _of_price(text) not in priced:
            raise InvalidInput(f"--price {text} names no instance of this report: {', '.join(priced)}")


def _of_price(text: str) -> str:
    """The instance type of ``TYPE=USD``, as `--instances` names it."""
    from windtunnel.priceperf.instances import named_instance

    return named_instance(text.partition("=")[0].strip().lower())
