"""Why no winner is named for a job outside the calibrated range of an instance, and what can be said all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from windtunnel.priceperf import Answer, Comparison, Estimate, FullScale, PriceBook, Workload
from windtunnel.priceperf.money.winner import answer
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.cheapest import cached, otherwise, probability
from windtunnel.reports.modelled.labels import label, outside_quantity, outside_words
from windtunnel.reports.modelled.other_batch import other_batch


def outside(
    found: Answer, comparison: Comparison, workload: Workload, size: FullScale, book: PriceBook
) -> str:
    """Whose range the job leaves and how far, who is the cheapest of the others, and what would give a winner."""
    estimates, leaning = comparison.estimates, found.leaning
    assert leaning is not None  # noqa: S101 - something competes
    places = " and of ".join(_places(estimates[index] for index in found.hindered))
    return " ".join(
        (
            f"No winner: the job is outside the range of {places}.",
            *_of_the_others(found, comparison),
            other_batch(found, comparison, workload, size, book),
            f"By widened intervals {label(estimates[leaning])} would cost least{cached(found)}, "
            f"{probability(found.decided.probability)}.",
            *otherwise(comparison, found),
        )
    )


def _places(items: Iterable[Estimate]) -> Iterator[str]:
    """Instances with what lies outside of their range: those of the first with value and range, each quantity once."""
    alike: dict[str, list[Estimate]] = {}
    for item in items:
        alike.setdefault(outside_words([item]), []).append(item)
    told: dict[str, None] = {}
    for words, its in alike.items():
        quantities = dict.fromkeys(map(outside_quantity, its[0].range_check.outside))
        what = ", ".join(name for name in quantities if name not in told) if told else words
        told |= quantities
        names = ", ".join(dict.fromkeys(map(label, its)))
        yield f"{names} ({what})" if what else names


def _of_the_others(found: Answer, comparison: Comparison) -> Iterator[str]:
    """The cheapest without the instances outside, if two or more are left that have one."""
    left = [index for index in range(len(comparison.estimates)) if index not in found.hindered]
    others = [comparison.estimates[index] for index in left]
    then = answer(found.decided.on, others, [found.whole.costs[index] for index in left])
    if then.winner is not None:
        chance, cost = probability(then.probability), then.decided.costs[then.winner]
        usd = f" at {fmt.dollars(cost.usd)}" if cost and then.turned else ""  # not that of the table
        yield f"Of the others {label(others[then.winner])} costs least{usd}{cached(then)}, {chance}."
