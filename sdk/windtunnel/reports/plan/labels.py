"""How plans are named in tables, sentences and charts."""

from __future__ import annotations

from windtunnel.priceperf.money.plan import Plan
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.labels import degrees, place, sharing


def cluster(plan: Plan) -> str:
    """A plan's instances, as ``4 x trn1.32xlarge``; one priced on EC2 says so."""
    return f"{plan.estimate.instance_count:,} x {place(plan.estimate)}"


def short_cluster(plan: Plan) -> str:
    """A plan's instances, as ``4 x trn1.32xl``, for a table in a narrow terminal."""
    return cluster(plan).replace("xlarge", "xl")


def passes(plan: Plan) -> str:
    """The batch, as ``2x32``: sequences of a micro-batch, and micro-batches of a step on each copy of the model."""
    return f"{fmt.given(plan.training.microbatch)}x{round(plan.training.microbatches):,}"


def shared_and_recomputed(plan: Plan) -> str:
    """What is recomputed, as ``selective``; before it ``FSDP, `` or ``DDP, `` where copies of the model share more than
    the optimizer's state, or nothing.
    """
    training = plan.training
    apart = training.zero == "none" and training.data_parallel > 1
    words = "FSDP, " if training.zero == "full" else "DDP, " if apart else ""
    return words + training.recompute


def hours(plan: Plan) -> str:
    """The hours with their interval, as ``13 (11-14)``."""
    low, high = plan.hours_interval
    return f"{fmt.significant(plan.hours)} ({fmt.significant(low)}-{fmt.significant(high)})"


def cost(plan: Plan) -> str:
    """The cost with its interval: ``$310 (280-350)``, ``$2.7k (2.2k-3.4k)``, ``$4.6M (3.4M-6.2M)``."""
    found = plan.cost
    if found is None:
        return "no price"
    return f"${fmt.short(found.usd)} ({fmt.short(found.low_usd)}-{fmt.short(found.high_usd)})"


def tokens(number: float) -> str:
    """A number of tokens, as ``15 billion tokens``."""
    return f"{fmt.in_words(number)} tokens"


def limits(deadline_hours: float | None, budget_usd: float | None) -> str:
    """Deadline and budget, as ``48 h and $2,000``, ``1.5 h`` or ``20 min``."""
    words = [_deadline(deadline_hours)] if deadline_hours is not None else []
    words += [f"${fmt.plain(budget_usd)}"] if budget_usd is not None else []
    return " and ".join(words)


def _deadline(given_h: float) -> str:
    return f"{fmt.given(given_h)} h" if given_h >= 1 else f"{fmt.given(given_h * 60)} min"


def sentence(plan: Plan) -> str:
    """The plan, its time and cost in words, and that these are less sure where they are."""
    training = plan.training
    recompute = (
        "nothing recomputed" if training.recompute == "none" else f"{training.recompute} recomputation"
    )
    outside = "; outside the calibrated range" if plan.estimate.range_check.outside else ""
    return (
        f"{cluster(plan)}, {degrees(training)}, micro-batch {fmt.given(training.microbatch)}, "
        f"{recompute}{sharing(training)}: {hours(plan)} h, {cost(plan)}{outside}"
    )
