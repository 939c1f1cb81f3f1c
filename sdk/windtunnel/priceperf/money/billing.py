"""AWS's bill of a job: whole seconds of each instance, times the price of an hour.

Billing runs from TrainingStartTime to TrainingEndTime: download, training and
upload, not provisioning; by the second, no minimum. ``BillableTimeInSeconds``
is the wall clock of ONE instance; a bill multiplies it by the instance count.
"""

from __future__ import annotations

import math

from ..errors import InvalidInput

SECONDS_PER_HOUR = 3600


def billable_seconds(duration_s: float) -> int:
    """The whole seconds that AWS bills on one instance for a training of ``duration_s`` seconds.

    A second that has begun counts. Times are exact to milliseconds, so rounding
    errors below a millisecond do not start another second.

    Raises:
        InvalidInput: negative or not finite.
    """
    if not math.isfinite(duration_s) or duration_s < 0:
        raise InvalidInput(f"a duration must be 0 or more seconds, not {duration_s}")
    return math.ceil(round(duration_s, 3))


def cost_usd(usd_per_hour: float, billable_s: float, instance_count: int = 1) -> float:
    """US dollars for a job: price of an hour x billable seconds of one instance x instances / 3600.

    Raises:
        InvalidInput: a negative price, negative seconds, or fewer than one instance.
    """
    if not math.isfinite(usd_per_hour) or usd_per_hour < 0:
        raise InvalidInput(f"a price must be 0 or more US dollars an hour, not {usd_per_hour}")
    if instance_count < 1:
        raise InvalidInput(f"a job has at least 1 instance, not {instance_count}")
    if not math.isfinite(billable_s) or billable_s < 0:
        raise InvalidInput(f"billable seconds must be 0 or more, not {billable_s}")
    return usd_per_hour * (billable_s * instance_count) / SECONDS_PER_HOUR


def spot_savings_percent(training_s: float, billable_s: float) -> float:
    """The savings of managed spot training as AWS shows them, percent: (1 - billable / training) x 100.

    Raises:
        InvalidInput: no training time, or more billable than training seconds.
    """
    if not training_s > 0:
        raise InvalidInput(f"training time must be above 0 seconds, not {training_s}")
    if not 0 <= billable_s <= training_s:
        raise InvalidInput(
            f"billable seconds must lie between 0 and the {training_s} trained, not {billable_s}"
        )
    return (1 - billable_s / training_s) * 100


def cost_per_million(usd_per_hour: float, throughput_per_s: float) -> float:
    """US dollars for a million inferences at a steady throughput (inferences per second).

    Raises:
        InvalidInput: a throughput of 0 or less, or not finite.
    """
    if not (throughput_per_s > 0 and math.isfinite(throughput_per_s)):
        raise InvalidInput(f"throughput must be above 0 per second, not {throughput_per_s}")
    return cost_usd(usd_per_hour, 1e6 / throughput_per_s)
