"""Which is cheapest: at each day's prices, with each way to buy the hour, and each Neuron instance against each GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windtunnel.priceperf import (
    AUTO_CAST,
    Answer,
    BreakEven,
    Comparison,
    Cost,
    Decision,
    Estimate,
    Price,
    PriceBook,
    Verdict,
    answers,
    by_offering,
)
from windtunnel.priceperf.money.decision import CLEAR
from windtunnel.priceperf.money.offerings import CAPACITY_BLOCK
from windtunnel.priceperf.money.winner import answer
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.modelled.labels import label, machine, machines

CACHED = "with a compile cache"
_WORTH_A_LINE = 0.05
CAST_FLAG = "--auto-cast=matmult"
"""The flag in NEURON_CC_FLAGS with which fp32 products run as `AUTO_CAST`."""
_BREAK_EVEN = (
    "break-even: the price of an hour at which an instance costs as much as the cheapest (for the "
    "cheapest: as the next)."
)


def cheapest_sections(comparison: Comparison, book: PriceBook) -> Iterator[Section]:
    """All sections on cost that have something to show."""
    for index, found in enumerate(answers(comparison)):
        yield _decision(comparison.estimates, found, explained=not index)
    yield from _offerings(comparison, book)
    if comparison.verdicts:
        yield _verdicts(comparison.verdicts)


def probability(value: float | None) -> str:
    """A probability as ``86 %``; never as 100 or 0 %, which no model can claim."""
    if value is None:
        return "-"
    if 0.01 <= value <= 0.99:
        return f"{min(round(value * 100), 99 if value >= CLEAR else 89)} %"
    return "over 99 %" if value > 0.99 else "under 1 %"


def without_compile(found: Answer | None) -> Decision | None:
    """The decision without compile time, if the answer goes by it because compile time would change it; else None."""
    left = found is not None and found.without_compile and found.obstacle in (None, "outside")
    return found.decided if found is not None and left else None


def cached(found: Answer) -> str:
    """What stands behind the cheapest, if it is that only without compile time."""
    return f" ({CACHED})" if without_compile(found) else ""


def turning(even: BreakEven, price: Price) -> str:
    """The break-even price of an hour, with as many digits as tell it apart from the price now."""
    value, now = even.usd_per_hour, price.usd_per_hour
    for digits in range(2, 6):
        if (fmt.rounded(value, digits) - now) * (value - now) > 0:
            return f"${fmt.significant(value, digits)}"
    return fmt.cents(value)


def _decision(estimates: Sequence[Estimate], found: Answer, *, explained: bool) -> Section:
    decision, rows = found.decided, []
    for index, item in enumerate(estimates):
        cost, even = decision.costs[index], decision.break_evens[index]
        if cost is None:
            rows.append(Row(label(item), ("no price", "", "-", "-", "")))
            continue
        turn = "-" if even is None else (
            f"{turning(even, cost.price)} "
            f"({fmt.significant(even.low_usd_per_hour)}-{fmt.significant(even.high_usd_per_hour)})"
        )  # fmt: skip
        cells = (
            fmt.dollars(cost.usd), fmt.dollar_span(cost.low_usd, cost.high_usd),
            probability(None if found.obstacle else decision.probabilities[index]) if item.fits else "does not fit",
            fmt.price(cost.price.usd_per_hour), turn,
        )  # fmt: skip
        rows.append(Row(label(item), cells, "total" if index == found.winner else "normal"))
    return Section(
        "Who is cheapest",
        "modelled",
        f"at prices of {decision.on}{', without compile time' if found.without_compile else ''}",
        ("cost", "interval", "probability", "$ an hour", "break-even"),
        tuple(rows),
        (_BREAK_EVEN,) if explained else (),
    )


def _offerings(comparison: Comparison, book: PriceBook) -> Iterator[Section]:
    """The same job at every list price; nothing where the only offering is that of the answer."""
    estimates = machines(comparison.estimates)
    found = by_offering(estimates, book)
    told = {cost.price for _, costs in comparison.costs for cost in costs if cost is not None}
    if {offering for offering, _ in found} <= {price.offering for price in told} and len(found) < 2:
        return
    rows, notes = [], []
    for offering, result in found:
        costs = result.whole.costs
        winner = result.winner if comparison.is_known else None
        rows.append(
            Row(
                offering,
                (
                    *(_bought(item, cost) for item, cost in zip(estimates, costs, strict=True)),
                    "-"
                    if winner is None
                    else f"{machine(estimates[winner])}, {probability(result.probability)}",
                ),
            )
        )
        prices = dict.fromkeys(cost.price for cost in costs if cost is not None and cost.price not in told)
        notes += [
            f"{offering}, {price.instance_type.removeprefix('ml.')}: {price.region}, {price.status}, "
            f"{_held(price)}: {price.source}."
            for price in prices
        ]
    if any(offering == CAPACITY_BLOCK for offering, _ in found):
        notes.append(
            "A Capacity Block is reserved for whole days and paid in advance; here only the seconds used "
            "are counted."
        )
    turned = [offering for offering, result in found if result.without_compile and result.winner is not None]
    if turned and comparison.is_known:
        notes.append(f"Cheapest without compile time, which never decides: {', '.join(turned)}.")
    of = "newest list prices" if book.as_of is None else f"list prices of {book.as_of}"
    yield Section(
        "Ways to buy the hour",
        "modelled",
        f"{of}: the price of an hour, and the cost of the job",
        (*map(machine, estimates), "cheapest"),
        tuple(rows),
        tuple(notes),
    )


def _held(price: Price) -> str:
    return f"since {price.days}" if price.until is None else f"{price.days}, the last one known here"


def _bought(item: Estimate, cost: Cost | None) -> str:
    if cost is None:
        return "no price"
    return f"{fmt.price(cost.price.usd_per_hour)}: {fmt.dollars(cost.usd) if item.fits else 'does not fit'}"


def otherwise(comparison: Comparison, found: Answer) -> Iterator[str]:
    """Settings of the GPU script, or of the Neuron compiler, that would change the answer."""
    decided = found.decided
    told = set()
    for precision in dict.fromkeys(item.precision for item in comparison.alternatives):
        swapped = {label(item): item for item in comparison.alternatives if item.precision == precision}
        estimates = [swapped.get(label(item), item) for item in comparison.estimates]
        if found.without_compile:
            estimates = [item.taking("compile", 0.0) for item in estimates]
        costs = [
            None if cost is None else item.cost(cost.price)
            for item, cost in zip(estimates, found.whole.costs, strict=True)
        ]
        other = answer(decided.on, estimates, costs).decided
        result = (other.cheapest, other.clear)
        as_it_is = result == (decided.cheapest, decided.clear)
        # torch.compile is told only if it changes more than the other settings.
        if other.cheapest is None or as_it_is or (precision.compiled and result in told):
            continue
        told.add(result)
        yield (
            f"With {CAST_FLAG if precision == AUTO_CAST else f'the GPU script in {precision.name}'}: "
            f"{label(estimates[other.cheapest])}, "
            f"{probability(other.probability)}."
        )


def cast_words(comparison: Comparison) -> Iterator[str]:
    """What a flag would save, where the compiler runs products in fp32 because nobody asked it for less."""
    casts = {label(item): item for item in comparison.alternatives if item.precision == AUTO_CAST}
    for item in comparison.estimates:
        cast = casts.get(label(item))
        saved = 0.0 if cast is None else 1 - cast.step.total_s / item.step.total_s
        if saved >= _WORTH_A_LINE:
            yield (
                "products of fp32 run in fp32: since 2.27 the Neuron compiler casts nothing by default. "
                f"With {CAST_FLAG} in NEURON_CC_FLAGS, which rounds their inputs to bf16, a step on "
                f"{label(item)} takes {fmt.percent(saved)} less."
            )
            return


def _verdicts(verdicts: Sequence[Verdict]) -> Section:
    """Each Neuron instance against each GPU, with each setting of the GPU script, at each day's prices."""
    rows: list[Row] = []
    pairs = dict.fromkeys((label(verdict.challenger), label(verdict.baseline)) for verdict in verdicts)
    for pair in pairs:
        rows.append(Row(f"{pair[0]} against {pair[1]}", (), "group"))
        previous = None
        for verdict in verdicts:
            if (label(verdict.challenger), label(verdict.baseline)) != pair:
                continue
            name = verdict.baseline.precision.name
            rows.append(_verdict_row("" if name == previous else name, verdict))
            previous = name
    meanings = {verdict.baseline.precision.name: verdict.baseline.precision.meaning for verdict in verdicts}
    return Section(
        "Neuron instances against GPUs",
        "modelled",
        "how much less the first costs than the second; a minus: more; '2.9 times': 2.9 times as much",
        ("prices of", "first", "second", "saving", "interval", "cheaper"),
        tuple(rows),
        (
            *(f"{name}: {meaning}." for name, meaning in meanings.items()),
            (
                "open: either of the two may cost less, by the interval of the saving. does not fit: the "
                "job, in the memory of one of them. outside: of the calibrated range, so no winner. too "
                "small: assumed set-up and transfers take longer than the modelled steps, so no winner. "
                "compiling: compile time would decide, which it never does."
            ),
        ),
        label_header="GPU script",
    )


def _verdict_row(name: str, verdict: Verdict) -> Row:
    low, high = verdict.saving_interval
    return Row(
        name,
        (
            str(verdict.on),
            fmt.dollars(verdict.challenger_cost.usd),
            fmt.dollars(verdict.baseline_cost.usd),
            _saving(verdict.saving),
            fmt.interval(_saving(low), _saving(high)),
            verdict.obstacle or str(verdict.winner).removeprefix("ml."),
        ),
    )


def _saving(value: float) -> str:
    """A saving in percent; where the cost is twice or more, as ``2.9 times``, since a percentage says little there."""
    return fmt.signed_percent(value) if value > -1 else f"{fmt.significant(1 - value)} times"
