"""The estimate of a traced model on an instance: throughput, latency and cost with intervals; a fleet for a rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

from ..calibration.inference_calibration import Figure, constants, interval
from ..errors import InvalidInput, PriceUnknown
from ..instances import InstanceType, instance_type
from ..model.inference_call import CallTime, Inference, Served, call_time, served
from ..workload.full_scale import LARGEST
from .billing import cost_per_million
from .offerings import HOSTING_ON_DEMAND
from .prices import Price, PriceBook

HOURS_PER_DAY = 24


@dataclass(frozen=True)
class Fleet:
    """The number of instances that a rate of requests needs at full load.

    ``low``, ``high``: that number at the ends of the throughput's interval. ``usd_per_day``: cost of ``instances``;
    None: no price.
    """

    rate_per_s: float
    instances: int
    low: int
    high: int
    usd_per_day: float | None


@dataclass(frozen=True)
class InferenceEstimate:
    """Modelled figures of one batch size on one instance, all cores busy with one call each.

    ``name``: as requested; with ``ml.`` the price is that of a SageMaker endpoint, without it EC2's. ``price`` None:
    ``unpriced`` says why. ``outside``: one sentence for each quantity outside the range of the published rows.
    """

    name: str
    instance: InstanceType
    inference: Inference
    call: CallTime
    served: Served
    throughput_per_s: tuple[float, float]
    latency_p50_s: tuple[float, float]
    outside: tuple[str, ...]
    price: Price | None
    unpriced: str | None = None

    @property
    def usd_per_million(self) -> tuple[float, float, float] | None:
        """US dollars for a million inferences at a steady load: low, modelled, high. None without a price."""
        if self.price is None:
            return None
        low, high = self.throughput_per_s
        hour = self.price.usd_per_hour
        return (
            cost_per_million(hour, high),
            cost_per_million(hour, self.served.throughput_per_s),
            cost_per_million(hour, low),
        )

    def fleet(self, rate_per_s: float) -> Fleet:
        """The instances that answer ``rate_per_s`` requests a second, and their cost a day.

        Raises:
            InvalidInput: the rate is not above 0, or far beyond any real one.
        """
        if not 0 < rate_per_s <= LARGEST:
            raise InvalidInput(
                f"a rate must be above 0 requests per second, at most {LARGEST:g}, not {rate_per_s:g}"
            )
        low, high = self.throughput_per_s
        needed = math.ceil(rate_per_s / self.served.throughput_per_s)
        usd = None if self.price is None else needed * self.price.usd_per_hour * HOURS_PER_DAY
        return Fleet(rate_per_s, needed, math.ceil(rate_per_s / high), math.ceil(rate_per_s / low), usd)


def estimate_inference(
    inference: Inference, name: str, prices: PriceBook, on: date | None = None
) -> InferenceEstimate:
    """Estimate calls of a traced model on an instance type, with the newest Neuron versions.

    Raises:
        UnknownInstance: no such instance type.
        NotCalibrated: no published row is of its chip.
        InvalidInput: the call does not fit a core's memory.
    """
    instance = instance_type(name)
    call = call_time(inference, instance, constants())
    found = served(inference, call.total_s, instance.core_count)

    def around(value: float, figure: Figure) -> tuple[float, float]:
        width = interval(inference, instance, figure).log_slow
        return value * math.exp(-width), value * math.exp(width)

    throughput = around(found.throughput_per_s, "throughput")
    latency = around(found.latency_p50_s, "latency_p50")
    outside = interval(inference, instance, "throughput").outside
    try:
        offering = HOSTING_ON_DEMAND if name.startswith("ml.") else None
        price, why = prices.price(name, on, offering=offering), None
    except PriceUnknown as error:
        price, why = None, str(error)
    return InferenceEstimate(name, instance, inference, call, found, throughput, latency, outside, price, why)
