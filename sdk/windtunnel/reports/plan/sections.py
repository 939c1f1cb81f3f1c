"""Plans as tables: cheapest first, fastest first, the Pareto front, and what was searched.

The first table stands on the first screen, with as many rows and notes as that has room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice

from windtunnel.priceperf.model.fixed_costs import START_S
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.model.plain_script import is_compiled, is_plain
from windtunnel.priceperf.money.decision import CLEAR, cheapest_probabilities
from windtunnel.priceperf.money.plan import Place, Plan, Plans
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.text import as_text
from windtunnel.reports.assumed import told
from windtunnel.reports.modelled.answer import STATE_PRICES
from windtunnel.reports.modelled.attention import eager_words
from windtunnel.reports.modelled.batch_and_prices import offerings_words
from windtunnel.reports.modelled.cheapest import probability
from windtunnel.reports.modelled.fitted_notes import LINES, fitted
from windtunnel.reports.modelled.labels import MAY_NOT_FIT, bought, degrees, outside_quantity, plain_scripts
from windtunnel.reports.plan import labels

SHOWN = 5
FRONT = "Pareto front"
_SEVERAL = 2
_FEW = 4
"""Rows that the first screen's table keeps before its notes are cut."""
_NOTE_LINES = 3
_TIMES = 2
"""From this many times a limit on, a miss is given as a ratio instead of a percentage."""
_READING = (
    f"Intervals hold {fmt.percent(COVERAGE)} of left-out published rows. Hours run from the request to the model, with "
    f"{START_S.value / 60:g} min of start (assumed). Graphs are taken as compiled ahead (neuron_parallel_compile): the "
    "compiler's time is not in them.",
    "batch: sequences of a micro-batch x micro-batches of a step on each copy of the model. Copies share the "
    "optimizer's state (ZeRO-1); with FSDP also weights and gradients, with DDP nothing. memory: the part of what "
    "tensors can use that a worker needs at least, as modelled; a real job may need more.",
)
_ADAPTERS = "The published rows train all weights: for adapters (LoRA) intervals are wider."
_COLUMNS = (
    "tp/pp/dp", "batch", "recompute", "memory", f"hours ({fmt.percent(COVERAGE)} interval)", "cost (interval)",
)  # fmt: skip


def headline(found: Plans, assumed: Sequence[str]) -> tuple[str, ...]:
    """The cheapest and the fastest plan, or the nearest to the limits; what was not planned; what was assumed."""
    lines = [*_best(found), *_rivals(found)]
    missing = [place.name for place in found.places if place.reason]
    if missing:
        lines.append(f"NOT PLANNED FOR, for reasons under What was searched: {', '.join(missing)}.")
    lines += _unpriced(found)
    return (*lines, *told(assumed))


def sections(
    found: Plans, above: Document, *, size_assumed: bool, price_notes: Sequence[str], on: date | None
) -> tuple[Section, ...]:
    """Tables of the plans within the limits, and of what was searched. ``above``: the report without them.
    ``on``: the day of the prices; None: the newest.
    """
    tables = {
        "Cheapest first": (_each(found.cheapest), shortlist(found.cheapest)),
        "Fastest first": (_each(found.fastest), shortlist(found.fastest)),
        FRONT: ("no other plan is both cheaper and faster", found.pareto),
    }
    if found.nearest is not None:
        tables = {"Nearest": ("misses its limits by the least", [found.nearest])}
        if found.lacks_prices:
            tables = {"Fastest": ("without a price", [found.nearest])}
    elif _clusters(found.within) == 1:
        tables = {"Best first": (_each(found.fastest), shortlist(found.fastest))}
    shown = [plan for _, plans in tables.values() for plan in plans]
    if len(_others(found)) >= _SEVERAL:
        limits = labels.limits(found.deadline_hours, found.budget_usd)
        which = f"the cheapest within {limits}, or the nearest" if limits else "the cheapest"
        tables = {"Best on each instance": (which, _best_on_each(found)), **tables}
    first = [*_named(found).values(), *next((plans for _, plans in tables.values() if plans), ())]
    others = [plan for plan in shown if all(plan is not one for one in first)]
    notes = (
        *_risky(found, others),
        *_outside(others),
        *_limits(found, size_assumed=size_assumed),
        *(_READING if shown else ()),
        *((_ADAPTERS,) if shown and found.job.lora else ()),
        *price_notes,
    )
    listed = [_table(title, about, plans) for title, (about, plans) in tables.items() if plans]
    if not listed:
        return (replace(_searched(found, notes), first=True),)
    read_first = (
        *_risky(found, first),
        *_eager(found, first),
        *_trained_by(found),
        *_prices(found, on),
        *_outside(first),
    )
    return (_on_the_first_screen(listed[0], read_first, above), *listed[1:], _searched(found, notes))


def _on_the_first_screen(table: Section, notes: Sequence[str], above: Document) -> Section:
    """The table with the notes, cut to the lines that are left below what stands ``above``: first the table, down to
    a few rows, then the notes, then all.
    """
    wanted = sum(min(_NOTE_LINES, fmt.lines_of(note)) for note in notes)
    for least, rows in (
        (least, rows) for least in (wanted, len(notes), 0) for rows in range(len(table.rows), 0, -1)
    ):
        shown = replace(table, rows=table.rows[:rows], first=True)
        room = LINES - as_text(replace(above, sections=(shown,))).count("\n")
        if room >= least and rows >= min(_FEW, len(table.rows)) * (least > 0):
            break
    cut = fitted(shown, dict.fromkeys(notes, _NOTE_LINES), room, table.rows)
    some = f"; {rows} of {len(table.rows)} shown" if rows < len(table.rows) else ""
    return replace(cut, subtitle=f"{table.subtitle}{some}", notes=cut.notes[: max(0, room)])


def _prices(found: Plans, on: date | None) -> Iterator[str]:
    """Offering, region and date of the prices of all instances."""
    best = _best_on_each(found)
    costs = [plan.cost for plan in best]
    if any(costs):
        yield offerings_words([plan.estimate for plan in best], costs, on)


def _best_on_each(found: Plans) -> list[Plan]:
    """The best plan on each instance, cheapest first."""
    best = [found.best_on(place.name) for place in found.places]
    return [plan for plan in found.plans if any(plan is one for one in best)]


def _others(found: Plans) -> list[Plan]:
    """The best plan on each instance with a price of which no plan is named first."""
    named = {plan.estimate.name for plan in _leading(found).values()}
    return [
        plan for plan in _best_on_each(found) if plan.cost is not None and plan.estimate.name not in named
    ]


def shortlist(plans: Sequence[Plan]) -> list[Plan]:
    """The first few plans; where they use several clusters, the best plan of each."""
    return list(islice(_best_of_each(plans) if _clusters(plans) >= _SEVERAL else plans, SHOWN))


def _each(plans: Sequence[Plan]) -> str:
    several = _clusters(plans)
    return (
        f"the best split of each of {several:,} clusters" if several >= _SEVERAL else "splits of one cluster"
    )


def _clusters(plans: Sequence[Plan]) -> int:
    return len({labels.cluster(plan) for plan in plans})


def _best_of_each(plans: Sequence[Plan]) -> Iterator[Plan]:
    seen = set()
    for plan in plans:
        if labels.cluster(plan) not in seen:
            seen.add(labels.cluster(plan))
            yield plan


def _table(title: str, subtitle: str, plans: Sequence[Plan]) -> Section:
    return Section(title, "modelled", subtitle, _COLUMNS, tuple(map(_row, plans)), label_header="instances")


def _row(plan: Plan) -> Row:
    training = plan.training
    return Row(
        labels.short_cluster(plan),
        (
            f"{training.tensor_parallel}/{training.pipeline_parallel}/{training.data_parallel}",
            labels.passes(plan),
            labels.shared_and_recomputed(plan),
            fmt.percent(plan.memory.part),
            labels.hours(plan),
            labels.cost(plan),
        ),
    )


def _leading(found: Plans) -> dict[str, Plan]:
    """The plans that the answer names first, with what each is: within the limits, or if none is, the nearest."""
    best: dict[str, Plan] = {}
    if not found.plans:
        return best
    if found.within:
        if found.cheapest:
            best["Cheapest"] = found.cheapest[0]
        if found.fastest[0] is best.get("Cheapest"):
            return {"Cheapest and fastest": found.fastest[0]}
        return {**best, "Fastest": found.fastest[0]}
    if found.deadline_hours is not None:
        best["The fastest"] = min(found.plans, key=lambda plan: plan.hours)
    if found.budget_usd is not None and found.plans[0].cost is not None:
        best["The cheapest"] = found.plans[0]
    if found.nearest is not None and found.nearest.cost is not None:
        best["Nearest to both"] = found.nearest
    first = {id(plan): what for what, plan in reversed(best.items())}
    return {what: plan for what, plan in best.items() if first[id(plan)] == what}


def _named(found: Plans) -> dict[str, Plan]:
    """The plans of the headline: those of `_leading`, and the best on the other instance if there is one alone."""
    others = _others(found)
    return _leading(found) | ({f"Best on {others[0].estimate.name}": others[0]} if len(others) == 1 else {})


def _best(found: Plans) -> Iterator[str]:
    """The cheapest and the fastest plan within the limits, or by how much the nearest miss them; and the best on the
    other instance that has a price. Several others have a table.
    """
    if not found.plans:
        yield "NO PLAN: the reasons are below."
        return
    limits = labels.limits(found.deadline_hours, found.budget_usd)
    if not found.within:
        yield (
            f"NOTHING HAS A PRICE to hold against {limits}."
            if found.lacks_prices
            else f"NOTHING KEEPS {limits}."
        )
    leading = _named(found)
    within = f" within {limits}" if limits and found.within else ""
    for what, plan in leading.items():
        missed = "" if plan.within(found.deadline_hours, found.budget_usd) else f"; {_over(found, plan)}"
        yield f"{what}{within}: {labels.sentence(plan)}{missed}."
        within = ""


def _unpriced(found: Plans) -> Iterator[str]:
    """Instances without a price, which no cost includes, with the hours of their fastest plan."""
    without = [plan for plan in found.plans if plan.cost is None]
    fastest = {plan.estimate.name: plan for plan in reversed(without)}  # they are in order of time
    if fastest:
        words = ", ".join(f"{name} (at best {labels.hours(plan)} h)" for name, plan in fastest.items())
        budget = "" if found.budget_usd is None else ", so in no budget"
        on_ec2 = " Names without ml. have EC2's." if any(name.startswith("ml.") for name in fastest) else ""
        yield f"NO PRICE{budget}: {words}. {STATE_PRICES}{on_ec2}"


def _over(found: Plans, plan: Plan) -> str:
    ratios = {}
    if found.deadline_hours is not None:
        ratios["deadline"] = plan.hours / found.deadline_hours
    if found.budget_usd is not None and plan.cost is not None:
        ratios["budget"] = plan.cost.usd / found.budget_usd
    words = [
        f"{fmt.significant(ratio)} times the {limit}"
        if ratio > _TIMES
        else f"{fmt.percent(ratio - 1)} over the {limit}"
        for limit, ratio in ratios.items()
        if ratio > 1
    ]
    return " and ".join(words) or "within what it can be held against"


def _rivals(found: Plans) -> Iterator[str]:
    """How many other clusters may cost less than the cheapest, as far as the intervals tell."""
    if _clusters(found.cheapest) < _SEVERAL:
        return
    best, *others = _best_of_each(found.cheapest)
    if best.cost is None:
        return
    own = best.estimate.instance.name
    chances = {
        labels.cluster(plan): cheapest_probabilities(
            (best.cost, plan.cost), (own, plan.estimate.instance.name)
        )[0]
        for plan in others
        if plan.cost is not None
    }
    near = [name for name, chance in chances.items() if chance < CLEAR]
    if not near:
        return
    likeliest = min(near, key=chances.__getitem__)
    sure = probability(1 - chances[likeliest])
    if len(others) == 1:
        yield f"TOO CLOSE TO CALL: the other cluster may cost less, with {sure} probability."
    else:
        yield (
            f"TOO CLOSE TO CALL: {len(near)} of {len(others)} other clusters may cost less, each with "
            f"{fmt.percent(1 - CLEAR)} probability or more; the likeliest, {likeliest}, with {sure}."
        )


def _limits(found: Plans, *, size_assumed: bool) -> Iterator[str]:
    deadline, budget = found.deadline_hours, found.budget_usd
    if (deadline is None and budget is None) or found.lacks_prices:
        return
    limits = labels.limits(deadline, budget)
    yield f"{len(found.within):,} of {len(found.plans):,} plans keep {limits} with the middle of their interval."
    if size_assumed and found.plans:
        most = max(found.plans, key=lambda plan: plan.most_samples(deadline, budget))
        trained = most.most_samples(deadline, budget) * found.job.sequence_length
        if trained:
            yield f"The most that {limits} train: {labels.tokens(trained)}, on {labels.cluster(most)}."


def _risky(found: Plans, shown: Sequence[Plan]) -> Iterator[str]:
    """Which of the plans keep a limit only with the middle of their interval, and which may not fit the memory."""
    deadline, budget = found.deadline_hours, found.budget_usd
    late = [plan for plan in shown if deadline is not None and plan.hours_interval[1] > deadline]
    dear = [plan for plan in shown if budget is not None and plan.cost and plan.cost.high_usd > budget]
    late, dear = ([plan for plan in plans if plan in found.within] for plans in (late, dear))
    if late or dear:
        limits = " OR ".join(name for name, plans in (("DEADLINE", late), ("BUDGET", dear)) if plans)
        risky = dict.fromkeys(map(labels.cluster, (*late, *dear)))
        yield f"MAY MISS THE {limits} at the high end of the interval: {', '.join(risky)}."
    roomy = {labels.cluster(plan) for plan in shown if not plan.memory.is_tight}
    tight: dict[str, None] = {}
    for plan in shown:
        if plan.memory.is_tight:
            cluster = labels.cluster(plan)
            tight[f"{cluster}, {degrees(plan.training)}" if cluster in roomy else cluster] = None
    if tight:
        yield f"{MAY_NOT_FIT}: {'; '.join(tight)}."


def _eager(found: Plans, shown: Sequence[Plan]) -> Iterator[str]:
    """What eager attention costs that nobody stated."""
    if found.job.attention is None and (words := eager_words(plan.estimate for plan in shown)):
        yield words


def _trained_by(found: Plans) -> Iterator[str]:
    named = [place for place in found.places if place.software and not place.reason]
    names = [f"{place.software} on {place.name}" for place in named if not is_plain(place.software)]
    if names:
        yield f"Speed and interval are those of {', '.join(names)}, by published rows."
    for its, what in plain_scripts(
        (one.name, is_compiled(one.software)) for one in named if is_plain(one.software)
    ):
        yield f"On {', '.join(its)} {what}."


def _outside(shown: Iterable[Plan]) -> Iterator[str]:
    """Plans by the quantities that lie outside the calibrated range."""
    found: dict[str, dict[str, None]] = {}
    for plan in shown:
        if outside := plan.estimate.range_check.outside:
            quantities = ", ".join(dict.fromkeys(map(outside_quantity, outside)))
            found.setdefault(quantities, {})[labels.cluster(plan)] = None
    if found:
        words = "; ".join(f"{', '.join(names)} ({quantities})" for quantities, names in found.items())
        yield f"OUTSIDE THE CALIBRATED RANGE, interval widened: {words}."


def _searched(found: Plans, notes: Sequence[str]) -> Section:
    reasons = [one.reason for one in found.places if one.reason]
    return Section(
        "What was searched",
        "text",
        f"{found.candidates:,} ways to run it; {found.fitting:,} fit the memory",
        ("ways", "fit", "an hour", "bought, region, since, status"),
        tuple(_place(found, one) for one in found.places if one.candidates),
        (*reasons, *notes),
        label_header="instance",
    )


def _place(found: Plans, one: Place) -> Row:
    prices = [plan.cost.price for plan in found.plans if plan.cost and plan.estimate.name == one.name]
    money = ("", "no price in the book") if one.fitting else ("", "")
    if prices:
        price = prices[0]
        money = (
            fmt.price(price.usd_per_hour),
            f"{bought(price)} {price.region} {price.days}, {price.status}",
        )
    return Row(one.name, (f"{one.candidates:,}", f"{one.fitting:,}", *money))
