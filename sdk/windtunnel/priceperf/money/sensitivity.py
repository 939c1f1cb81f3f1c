"""The sensitivity of a comparison: one thing is changed at a time, all others stay as compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from ..errors import InvalidInput
from ..workload.cluster import Cluster, Run
from ..workload.full_scale import FullScale
from ..workload.workload import Workload
from .comparison import Comparison
from .decision import most_likely
from .estimate import Cost, Estimate, cost_on, estimate
from .offerings import CLAIMS, EC2_ON_DEMAND, MANAGED_SPOT, TRAINING_ON_DEMAND
from .prices import PriceBook

PRICE_CUTS = (0.10, 0.33)
"""Price cuts to try. The second is the reduction of p4d's price in June 2025."""
SPOT_DISCOUNT = (0.60, 0.65, 0.70)
"""The discount of spot: low, middle, high. Assumption: spot prices change every hour and are in no price list."""


@dataclass(frozen=True)
class SensitivityRow:
    """The result of one change. ``costs``: in the order of the estimates; None: no price, or impossible (``reasons``).

    ``fits``: whether the job fits the memory of each; if not, that one cannot be the cheapest.
    ``cheapest``: position of the lowest cost; ``probability``: that this is right. ``assumed``: the change is
    an assumption of the model, not a price or a setting.
    """

    change: str
    costs: tuple[Cost | None, ...]
    fits: tuple[bool, ...]
    cheapest: int | None
    probability: float | None
    assumed: bool = False
    reasons: tuple[str, ...] = ()


def sensitivity(
    workload: Workload,
    comparison: Comparison,
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    on: date | None = None,
) -> tuple[SensitivityRow, ...]:
    """Cost and cheapest instance with half and twice the batch and the instances, compile cache, price cuts, spot.

    Other numbers of instances keep the global batch if the batch rule gives all instances the same one
    (``global``, a number); otherwise they keep the samples of each worker.

    Args:
        workload: what was compared.
        comparison: the result of `compare`.
        full_scale: the size that `compare` was given.
        prices: the book that `compare` was given; None: the built-in one.
        on: the day whose prices count; None: the newest.
    """
    book = prices or PriceBook()
    size = workload.sized(full_scale)
    grows = not comparison.one_batch

    def again(item: Estimate, nodes: float = 1, batch: float = 1, job: FullScale = size) -> Estimate:
        count = item.instance_count * nodes
        if count < 1 or count != int(count):
            plural = "s" if item.instance_count > 1 else ""
            raise InvalidInput(f"{item.instance_count} instance{plural} cannot be halved")
        run = Run(Cluster(item.instance, int(count)), item.global_batch * batch, item.precision)
        own = item.correction
        return estimate(workload, run, job, item.name, None if own is None else {own.calibration.key: own})

    def remodelled(change: str, model: Callable[[Estimate], Estimate]) -> SensitivityRow:
        estimates: list[Estimate] = []
        costs: list[Cost | None] = []
        reasons: list[str] = []
        for item in comparison.estimates:
            try:
                changed = model(item)
            except InvalidInput as error:
                estimates.append(item)
                costs.append(None)
                reasons.append(str(error))
            else:
                estimates.append(changed)
                costs.append(cost_on(changed, book, on))
        return _row(estimates, change, costs, tuple(dict.fromkeys(reasons)))

    def rows() -> Iterator[SensitivityRow]:
        yield remodelled("as compared", lambda item: item)
        yield remodelled("batch x 0.5", lambda item: again(item, batch=0.5))
        yield remodelled("batch x 2", lambda item: again(item, batch=2))
        yield remodelled("instances x 0.5", lambda e: again(e, 0.5, 0.5 if grows else 1))
        yield remodelled("instances x 2", lambda e: again(e, 2, 2 if grows else 1))
        other = replace(size, compile_cached=not size.compile_cached)
        cache = "compile cached" if other.compile_cached else "compile not cached"
        yield remodelled(cache, lambda item: again(item, job=other))

    return (*rows(), *_at_other_prices(comparison.estimates, book, on))


def _at_other_prices(
    estimates: Sequence[Estimate], book: PriceBook, on: date | None
) -> Iterator[SensitivityRow]:
    """The rows in which the price of one instance is lower and the others stay."""
    today, names = tuple(cost_on(item, book, on) for item in estimates), _names(estimates)
    for index, cost in enumerate(today):
        if cost is None:
            continue
        changes = [(f"-{cut * 100:.0f} %", _cut(cost, cut)) for cut in PRICE_CUTS]
        if cost.price.offering in (TRAINING_ON_DEMAND, EC2_ON_DEMAND):  # below which alone spot is told
            changes.append(("spot", _spot(cost)))
        for change, changed in changes:
            costs = (*today[:index], changed, *today[index + 1 :])
            row = _row(estimates, f"{names[index]} {change}", costs)
            yield replace(row, assumed=change == "spot")


def _names(estimates: Sequence[Estimate]) -> list[str]:
    """The names of the estimates, with the number of instances if the name alone is ambiguous."""
    names = [item.name for item in estimates]
    return [
        f"{item.name} x {item.instance_count}" if names.count(item.name) > 1 else item.name
        for item in estimates
    ]


def _row(
    estimates: Sequence[Estimate],
    change: str,
    costs: Sequence[Cost | None],
    reasons: tuple[str, ...] = (),
) -> SensitivityRow:
    # If a change is impossible on one of the instances, no cheapest is named: the comparison would be incomplete.
    cheapest, chances = (None, ()) if reasons else most_likely(estimates, costs)
    probability = None if cheapest is None else chances[cheapest]
    fits = tuple(item.fits for item in estimates)
    return SensitivityRow(change, tuple(costs), fits, cheapest, probability, reasons=reasons)


def _cut(cost: Cost, cut: float) -> Cost:
    rest = 1 - cut
    price = replace(
        cost.price,
        usd_per_hour=cost.price.usd_per_hour * rest,
        status="assumed",
        source=f"{rest:.2f} of {cost.price.usd_per_hour:g}, to see what it changes",
    )
    return Cost(price, cost.usd * rest, cost.low_usd * rest, cost.high_usd * rest)


def _spot(cost: Cost) -> Cost:
    low, middle, high = SPOT_DISCOUNT
    cut = _cut(cost, middle)
    price = replace(
        cut.price,
        offering=MANAGED_SPOT if cut.price.instance_type.startswith("ml.") else "EC2 spot",
        source=f"Assumption: {middle:.0%} below on-demand ({low:.0%} to {high:.0%}); AWS's own words are "
        f"{CLAIMS[MANAGED_SPOT].words!r}",
    )
    return replace(cut, price=price, low_usd=cost.low_usd * (1 - high), high_usd=cost.high_usd * (1 - low))
