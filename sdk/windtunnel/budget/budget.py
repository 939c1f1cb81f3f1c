"""The budget of one job, made of ``max_cost``, and its messages."""

from __future__ import annotations

import math
from dataclasses import dataclass

from windtunnel.priceperf import Cost, Estimate, FullScale, Price
from windtunnel.priceperf.money.billing import SECONDS_PER_HOUR
from windtunnel.rendering import format as fmt

STOP_GRACE_S = 120
"""Billed seconds from SIGTERM to SIGKILL (API reference, CreateTrainingJob, StoppingCondition)."""


@dataclass(frozen=True)
class Margin:
    """Seconds of one instance that are billed in addition to MaxRuntimeInSeconds.

    ``transfers_known`` False: the size of download or upload was assumed. Repeated downloads, after a spot
    interruption or a retry, are not included.
    """

    stop_s: float
    image_s: float
    download_s: float
    upload_s: float
    kept_s: float
    """Seconds of the warm pool after the job: all are billed, unless the next job takes it before their end."""
    transfers_known: bool

    @property
    def total_s(self) -> int:
        """The whole margin, rounded up to seconds."""
        return math.ceil(self.stop_s + self.image_s + self.download_s + self.upload_s + self.kept_s)


@dataclass(frozen=True)
class Budget:
    """The budget of one request, made of ``max_cost``.

    ``asked_s`` is the estimator's max_run, ``max_run_s`` the one that keeps the budget. ``enforced``: AWS runs the
    job, and the request has ``max_run_s``; a rehearsal is neither charged nor shortened.
    """

    max_cost: float
    prices: tuple[tuple[Price, int], ...]
    asked_s: int
    max_run_s: int
    margin: Margin
    enforced: bool
    estimate: Estimate | None = None
    cost: Cost | None = None
    source: str | None = None
    """The rehearsal from which the cost is modelled, in words."""
    full_scale: FullScale | None = None
    unmodelled: str = "no rehearsal to model from"

    @property
    def usd_per_hour(self) -> float:
        """US dollars an hour for all instances together."""
        return math.fsum(price.usd_per_hour * count for price, count in self.prices)

    @property
    def bound_usd(self) -> float:
        """The largest bill that ``max_run_s`` and the margin allow; at most ``max_cost``."""
        return self.usd_per_hour * (self.max_run_s + self.margin.total_s) / SECONDS_PER_HOUR

    def lines(self) -> tuple[str, ...]:
        """Lines to print: the price with its date, the bound, what happens at it, and the modelled cost."""
        margin = f"{self.margin.total_s:,} s of image, download, upload, stopping"
        margin += " and the warm pool" if self.margin.kept_s else ""
        margin += "" if self.margin.transfers_known else " (sizes are assumed; state them with full_scale=)"
        lowered = self.max_run_s < self.asked_s
        if self.enforced:
            stop = f"AWS stops the job after {self.max_run_s:,} s of running"
            stop += f" (max_run was {self.asked_s:,})" if lowered else ", its max_run"
            first = (
                f"Budget {usd(self.max_cost)}: {priced(self.prices)}. {stop}. {margin} may come in addition."
            )
        else:
            first = (
                f"Budget {usd(self.max_cost)}: nothing is charged here, and max_run stays. On AWS: "
                f"{priced(self.prices)}, max_run {self.max_run_s:,} s and {margin}."
            )
        bound = (
            f"The instances then cost at most {usd(self.bound_usd)}. At the bound the script gets "
            f"SIGTERM, {STOP_GRACE_S} s later SIGKILL: what it has not saved is lost (checkpoint_s3_uri= "
            "keeps checkpoints)."
        )
        return (first, bound, self._modelled_line())

    def unlimited_line(self) -> str:
        """A line to print for a job without a budget: what it may cost until its max_run ends it."""
        return (
            f"No max_cost: by max_run={self.asked_s:,} s the instances may cost up to about {usd(self.bound_usd)}: "
            f"{priced(self.prices)}."
        )

    def _modelled_line(self) -> str:
        if self.cost is None or self.estimate is None:
            return f"Modelled cost: {self.unmodelled}."
        size = "exactly what was rehearsed; state the real job's size with full_scale="
        if self.full_scale is not None:
            size = f"{fmt.many(self.full_scale.train_samples, 'sample')} x {self.full_scale.epoch_count:,}"
        own = self.estimate.correction
        calibration = (
            ""
            if own is None
            else f", step times x {own.factor:.2f} by YOUR CALIBRATION ({', '.join(own.jobs)})"
        )
        return f"Modelled cost, from {self.source} ({size}{calibration}): {span(self.cost)}."

    def warning(self) -> str | None:
        """Why the job may not stay within the budget; None if the modelled cost's interval lies within it."""
        if self.cost is None or self.estimate is None:
            return None
        low, high = self.estimate.billable_interval_s
        case = None
        if self.cost.low_usd > self.max_cost:
            case = "the whole interval is above it"
        elif self.cost.usd > self.max_cost or self.estimate.billable_s > self.max_run_s:
            case = "it will probably be stopped before its end"
        elif self.cost.high_usd > self.max_cost or high > self.max_run_s:
            case = "it may be stopped before its end"
        if case is None:
            return None
        return (
            f"max_cost={usd(self.max_cost)}: the job is modelled to cost {span(self.cost)} and to take "
            f"{low:,} to {high:,} s of a max_run of {self.max_run_s:,} s: {case}. Raise max_cost=, train "
            "less, or choose another instance."
        )


def usd(value: float) -> str:
    """An amount in US dollars: '$50.00', below a dollar '$0.034'."""
    return f"${value:,.2f}" if value >= 1 else fmt.dollars(value)


def priced(prices: tuple[tuple[Price, int], ...]) -> str:
    return " + ".join(
        f"{price.instance_type} x {count} at {fmt.price(price.usd_per_hour)} an hour ({price.region}, "
        f"{price.status}, valid from {price.effective_from})"
        for price, count in prices
    )


def span(cost: Cost) -> str:
    return fmt.dollars_within(cost.usd, cost.low_usd, cost.high_usd)
