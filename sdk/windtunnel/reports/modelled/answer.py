"""The answer, which is read first: the job, a line for each instance, which is cheapest, and how far to trust that.

At most `LINES` lines in a terminal of 100 columns, title and frame included; everything else stands below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product

from windtunnel.priceperf import (
    Answer,
    Comparison,
    Cost,
    DescribedWorkload,
    Estimate,
    FullScale,
    PriceBook,
    Workload,
    answers,
)
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.text import as_text
from windtunnel.reports.diagnostics import Diagnostics
from windtunnel.reports.modelled.attention import eager_words
from windtunnel.reports.modelled.batch_and_prices import (
    batch_words,
    each,
    how_known,
    missing_words,
    price_words,
    sharing_words,
)
from windtunnel.reports.modelled.cheapest import (
    CACHED,
    cached,
    cast_words,
    otherwise,
    probability,
    turning,
    without_compile,
)
from windtunnel.reports.modelled.dominates import dominating
from windtunnel.reports.modelled.fitted_notes import CHANGE, LARGEST, LINES, TRUST, fitted
from windtunnel.reports.modelled.labels import label, place, whose_prices
from windtunnel.reports.modelled.other_batch import by_other_batch
from windtunnel.reports.modelled.outside import outside
from windtunnel.reports.modelled.sections import size_words, stated_size
from windtunnel.reports.modelled.trust import left_out, memory, trust
from windtunnel.reports.modelled.unfit import does_not_fit

TITLE = "The answer"
_ROWS, _CHANGES = 7, 2
_UNPRICED = 2
"""Most instances without a price that the verdict names."""
GIVE_SIZE = "Give the real job: full_scale=FullScale(train_samples=...), --full-scale-samples N."
NAME_OTHERS = "Name other instances: --instances TYPE TYPE."
STATE_PRICES = "State them with --price TYPE=USD, or ask AWS: windtunnel prices refresh."
_MISSING_PRICE = f"No answer: none of these has a price in the book, so there are only times. {STATE_PRICES}"


@dataclass(frozen=True)
class Screen:
    """What the first screen says, in order.

    Attributes:
        job: the size of the job, in words.
        order: indices of the estimates as shown, the instance that the job asked for first.
        on: the day of the prices, the newest compared; None: nothing has a price.
        costs: the cost of each estimate on that day.
        answer: which instance is cheapest on that day; None without a price.
        missing: which of the instances asked for are not in the table, and why.
        verdict: the winner with its probability, or why there is none and what would make one.
        compiling: how much of the time is compilation; empty where nothing is compiled.
        batch: the batch of each instance.
        prices: offering, region and date of the prices.
        change: what the rehearsal found to change in the script, worst first.
        largest: where there are fewer than two changes: the largest parts of the bill on the first instance.
        trust: how far to trust the figures.
        attention: where eager attention is assumed, and what a flash kernel would change; empty: nowhere.
        memory: where the memory may be too small; empty: nowhere.
        left_out: what the figures do not include.
    """

    job: str
    order: tuple[int, ...]
    on: date | None
    costs: tuple[Cost | None, ...]
    answer: Answer | None
    missing: str
    verdict: str
    compiling: str
    batch: str
    prices: str
    change: tuple[str, ...]
    largest: tuple[str, ...]
    trust: str
    attention: str
    memory: str
    left_out: str


def screen(
    comparison: Comparison,
    workload: Workload,
    full_scale: FullScale | None,
    book: PriceBook,
    diagnostics: Diagnostics | None = None,
) -> Screen:
    """The answer in words. ``full_scale``: the size that the caller stated; None: the size that the workload gives."""
    estimates = comparison.estimates
    own = None if workload.rehearsed is None else workload.rehearsed.instance_type
    order = sorted(range(len(estimates)), key=lambda index: estimates[index].instance.name != own)
    found = answers(comparison)
    on, costs = comparison.costs[-1] if comparison.costs else (None, (None,) * len(estimates))
    newest = found[-1] if found else None
    found_here = [item.in_short for item in diagnostics or () if item.is_to_change]
    # A training that fails, or trains something else, is not worth its bill: that comes before a flag that saves time.
    grave = sum(item.severity == "error" or item.trains_wrongly for item in diagnostics or ())
    changes = [*sharing_words(estimates, workload), *found_here[:grave]]
    changes = [*changes, *cast_words(comparison), *found_here[grave:]][:_CHANGES]
    first = estimates[order[0]]
    largest = dominating(first, workload, workload.sized(full_scale)) if first.fits else []
    return Screen(
        job=_job(workload, full_scale),
        order=tuple(order),
        on=on,
        costs=costs,
        answer=newest,
        missing=" ".join(missing_words(comparison)),
        verdict=_verdict(comparison, newest, workload, full_scale, book),
        compiling=_compiling(estimates, newest),
        batch=" ".join(batch_words(comparison, workload)),
        prices=" ".join(price_words(estimates, costs, order, newest, book)),
        change=tuple(changes),
        largest=tuple(largest[: _CHANGES - len(changes)]),
        trust=trust(comparison, workload),
        attention=_attention(estimates, workload),
        memory=memory(estimates, workload),
        left_out=left_out(comparison, workload, full_scale, {item.kind for item in diagnostics or ()}),
    )


def answer_section(shown: Screen, comparison: Comparison, lines_above: int = 0) -> Section:
    """The answer as a section. ``lines_above``: lines above it in the frame, besides title and subtitle."""
    notes = {
        shown.missing: 3,
        shown.verdict: 5,
        shown.compiling: 2,
        shown.attention: 2,
        shown.batch: 4,
        shown.prices: 3,
        **{f"{CHANGE}{text}": 3 for text in shown.change},
        **{f"{place}{text}": 2 for place, text in zip(LARGEST, shown.largest, strict=False)},
        **({f"{TRUST}{shown.trust}": 4} if shown.trust else {}),
        shown.memory: 2,
        shown.left_out: 2,
    }
    copies = any(item.training is not None for item in comparison.estimates)
    columns = (
        "batch (a copy)" if copies else "batch (each)",
        f"billable ({fmt.percent(COVERAGE)} interval)",
        "cost (interval)",
    )
    # Long numbers wrap rows onto more lines: then show fewer rows, so that each note keeps a line.
    for most in range(max(2, _ROWS - lines_above // 2), 1, -1):
        rows = _table(shown, comparison, most)
        table = Section(
            TITLE, "modelled", shown.job, columns, tuple(rows), (), whose_prices(shown.costs), first=True
        )
        below_frame = as_text(Document("-", "-", (), (table,))).count("\n") + lines_above
        room = LINES - below_frame - 1
        if sum(map(bool, notes)) <= room:
            break
    return fitted(table, notes, room, tuple(_table(shown, comparison, 2 * len(shown.order))))


def longest_s(items: Iterable[Estimate]) -> float:
    """Billable seconds of the longest estimate that fits: times side by side are shown in the unit of this one."""
    return max((item.billable_s for item in items if item.fits), default=0.0)


def _table(shown: Screen, comparison: Comparison, most: int) -> list[Row]:
    """The rows: at most ``most``, but two instances at least. Kept are the first one, those that the verdict names, and
    the cheapest.

    Rows with what a compile cache saves are left out before any instance is.
    """
    by_cost = sorted(shown.order, key=lambda index: _usd(comparison.estimates[index], shown.costs[index]))
    first = list(dict.fromkeys((shown.order[0], *_named(shown.answer), *by_cost)))
    for count, with_cache in product(range(min(len(shown.order), most), 0, -1), (True, False)):
        order = [index for index in shown.order if index in first[:count]]
        longest = longest_s(comparison.estimates[index] for index in order)
        each = (_rows(comparison, shown, index, longest) for index in order)
        rows = [row for found in each for row in found if with_cache or row.style != "detail"]
        if count < len(shown.order):
            rows.append(Row(f"and {len(shown.order) - len(order):,} more"))
        if len(rows) <= most or count <= 2:
            break
    return rows


def _usd(item: Estimate, cost: Cost | None) -> float:
    """US dollars; infinite without a price, or if the job does not fit."""
    return math.inf if cost is None or not item.fits else cost.usd


def _named(found: Answer | None) -> tuple[int, ...]:
    """Positions of the estimates that the verdict names: the cheapest, one that is likelier to be, and the next."""
    best = None if found is None else found.leaning if found.winner is None else found.winner
    if found is None or best is None:
        return ()
    even, likelier = found.decided.break_evens[best], _likeliest(found)
    return (best, likelier) if even is None else (best, likelier, even.against)


def _likeliest(found: Answer) -> int:
    """Position of the estimate that is cheapest with the highest probability."""
    chances = [value or 0.0 for value in found.decided.probabilities]
    return max(range(len(chances)), key=chances.__getitem__)


def _rows(comparison: Comparison, shown: Screen, index: int, longest: float) -> Iterator[Row]:
    """An estimate's row; where compile time would change the answer, below it the row without compile time."""
    item = comparison.estimates[index]
    won = shown.answer is not None and shown.answer.winner == index
    # What a description says of precision is in the title; that a script may be compiled says nothing of it.
    described = item.training is not None and all(one.precision.compiled for one in comparison.alternatives)
    name = label(item) if described else f"{label(item)}, {item.precision.name}"
    batch = f"{_number(item.global_batch)} ({_number(each(item))})"
    figures = _figures(item, shown.costs[index], longest) if item.fits else ("does not fit", "-")
    yield Row(name, (batch, *figures), "total" if won else "normal")
    decided = without_compile(shown.answer)
    if decided and shown.answer and shown.answer.turned and _compile_s(item):
        bare = item.taking("compile", 0.0)
        yield Row(CACHED, ("", *_figures(bare, decided.costs[index], longest)), "detail")


def _figures(item: Estimate, cost: Cost | None, longest: float) -> tuple[str, str]:
    return (
        fmt.seconds_within(item.billable_s, item.billable_interval_s, longest),
        "no price" if cost is None else fmt.dollars_within(cost.usd, cost.low_usd, cost.high_usd),
    )


def _compile_s(item: Estimate) -> float:
    return item.fixed_cost("compile").seconds if item.fits else 0.0


def _number(value: float) -> str:
    return (
        f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}" if value < fmt.WORDS_FROM else fmt.in_words(value)
    )


def _job(workload: Workload, full_scale: FullScale | None) -> str:
    size = workload.sized(full_scale)
    model = "" if workload.weights is None else f"{fmt.quantity(workload.weights, '')} parameters; "
    if isinstance(workload, DescribedWorkload) and workload.lora is not None:
        model = f"{model[:-2]}, {fmt.quantity(workload.saved_weights, '')} of adapters trained; "
    rehearsed = workload.rehearsed
    if full_scale is not None or rehearsed is None:
        return f"{model}{stated_size(workload, full_scale)}"
    if isinstance(rehearsed.found, FullScale):
        shared = ", with no sampler to share them out" if rehearsed.unshared else ""
        shared = ", over all cores" if rehearsed.as_one_process else shared
        return f"{model}as the script has it{shared}: {size_words(size)}"
    evaluated = f", {size.evaluation_samples:,} evaluated" if size.evaluation_samples else ""
    evaluated += " by each worker" if evaluated and size.evaluation_split is False else ""
    return f"{model}exactly what was rehearsed: {fmt.many(size.train_samples, 'sample')} in all{evaluated}"


def _verdict(
    comparison: Comparison,
    found: Answer | None,
    workload: Workload,
    full_scale: FullScale | None,
    book: PriceBook,
) -> str:
    estimates = comparison.estimates
    if found is None:
        fits = any(item.fits for item in estimates)
        return _MISSING_PRICE if fits else f"No answer: the job {does_not_fit(estimates, workload)}"
    if found.obstacle == "size":
        return f"No answer, as the size of the whole job is not known: {workload.unknown_size}. {GIVE_SIZE}"
    if found.obstacle == "host":
        return (
            "No answer, as the host's part of a step was not measured: each training step of the rehearsal compiled. "
            "Rehearse more steps (rehearse=True, --rehearse 7), with batches of one shape."
        )
    if found.obstacle is not None:
        return _obstacle(found, comparison, workload, full_scale, book)
    best = found.winner
    assert best is not None  # noqa: S101 - without an obstacle something competes
    name, chance = label(estimates[best]), probability(found.probability)
    unpriced = [label(item) for item in _unpriced(found, estimates)]
    priced = f" of those with a price (not {' or '.join(unpriced)})" if unpriced else ""
    if len(unpriced) > _UNPRICED:  # the table says which
        competing = sum(chance is not None for chance in found.decided.probabilities)
        priced = f" of the {competing} with a price"
    least = f"{name} costs least{priced}{cached(found)}"
    text = f"{least}, with {chance} probability."
    if not found.clear:
        text = f"Too close to call: {least} with {chance} probability."
        likelier = _likeliest(found)
        higher = probability(found.decided.probabilities[likelier])
        if higher != chance:  # as they are shown: 49.9 % is no less than 50.1 %
            text = (
                f"Too close to call: {least} in the middle of the intervals, but only with {chance} "
                "probability; "
            )
            text += f"{label(estimates[likelier])} does with {higher}."
    even, cost = found.decided.break_evens[best], found.decided.costs[best]
    if even is not None and cost is not None:
        each = f"each {place(estimates[best])}" if estimates[best].instance_count > 1 else name
        text += f" At {turning(even, cost.price)} an hour of {each}"
        text += f" (now {fmt.cents(cost.price.usd_per_hour)}{how_known(cost.price)}), "
        text += f"{label(estimates[even.against])} costs least."
    batches = by_other_batch(found, comparison, workload, workload.sized(full_scale), book)
    return " ".join((text, *batches, *otherwise(comparison, found)))


def _obstacle(
    found: Answer, comparison: Comparison, workload: Workload, full_scale: FullScale | None, book: PriceBook
) -> str:
    estimates = comparison.estimates
    names = ", ".join(label(estimates[index]) for index in found.hindered)
    first = estimates[found.hindered[0]]
    if found.obstacle == "outside":
        return outside(found, comparison, workload, workload.sized(full_scale), book)
    if found.obstacle == "assumed":
        own = workload.rehearsed is not None and isinstance(workload.rehearsed.found, FullScale)
        longer = " A longer job has one." if found.whole.inside else ""
        more = longer if full_scale or own else f" {GIVE_SIZE}"
        assumed, trained = map(fmt.modelled_seconds, (first.assumed_s, first.train_s))
        steps = "the modelled steps" if assumed == trained else f"{trained} of modelled steps"
        return (
            f"No winner, as the job is too small: on {label(first)} {assumed} of assumed set-up and transfers exceed "
            f"{steps}.{more}"
        )
    if found.obstacle == "does not fit":
        return f"No answer: the job {does_not_fit([estimates[index] for index in found.hindered], workload)}"
    unfit = [item for item in estimates if not item.fits]
    unpriced = " or ".join(dict.fromkeys(item.name for item in _unpriced(found, estimates)))
    if found.obstacle == "no price" and unfit:
        too_large = does_not_fit(unfit, workload)
        return f"No answer: no price of {unpriced} is in the book. {STATE_PRICES} The job {too_large}"
    if found.obstacle == "no price":
        return _MISSING_PRICE
    if unpriced:
        only = f"of what the job fits only {names} has a price" if unfit else f"only {names} has a price here"
        return f"No winner: {only}, not {unpriced}. {STATE_PRICES}"
    if unfit:
        return f"No winner: the job runs on {names}, and {does_not_fit(unfit, workload)}"
    if comparison.not_possible:
        others = " and ".join(
            dict.fromkeys(item.label.removeprefix("ml.") for item in comparison.not_possible)
        )
        return f"No winner: the job runs on {names}, but cannot run on {others}. {NAME_OTHERS}"
    alone = "the only one modelled" if comparison.not_calibrated else "compared with nothing"
    return f"No winner: {names} is {alone}. {NAME_OTHERS}"


def _attention(estimates: Sequence[Estimate], workload: Workload) -> str:
    is_open = isinstance(workload, DescribedWorkload) and workload.attention == "auto"
    return eager_words(estimates) if is_open and workload.rehearsed is None else ""


def _unpriced(found: Answer, estimates: Sequence[Estimate]) -> list[Estimate]:
    """The estimates that fit and have no price."""
    both = zip(estimates, found.decided.costs, strict=True)
    return [item for item, cost in both if cost is None and item.fits]


def _compiling(estimates: Sequence[Estimate], found: Answer | None) -> str:
    if not (compiled := [item for item in estimates if _compile_s(item) > 0]):
        return ""
    names: dict[str, dict[str, None]] = {}
    for item in compiled:
        its = names.setdefault(fmt.modelled_seconds(_compile_s(item)), {})
        its[item.instance.name.removeprefix("ml.")] = None
    first, *others = ((long, ", ".join(each)) for long, each in names.items())
    longer = [f"{long} on {each}" for long, each in others]
    times = ", ".join((f"{first[0]} to compile on {first[1]}", *longer))
    decides = ", and decides nothing" if without_compile(found) else ""
    return f"In it: {times} the first time; cached afterwards{decides}."
