"""What a traced model would do on trn1 and inf2: latency, throughput and cost by batch size; instances for a rate.

windtunnel.reports.inference.modelled.modelled("BERT-Base", batch_sizes=[1, 8], rate_per_s=2_000)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from windtunnel.priceperf import Architecture, InvalidInput
from windtunnel.priceperf.calibration.inference_calibration import check_calibrated
from windtunnel.priceperf.calibration.inference_rows import architecture_of
from windtunnel.priceperf.instances import instance_type, instance_types, named_instance
from windtunnel.priceperf.model.inference_call import Inference, misfit
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.money.inference_estimate import InferenceEstimate, estimate_inference
from windtunnel.prices.cache import load
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report
from windtunnel.reports.assumed import of_the_model, told
from windtunnel.reports.modelled.data import maybe, rounded
from windtunnel.reports.prices import price_data

SCHEMA = "windtunnel.inference_estimate/1"
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
INSTANCES = ("trn1.2xlarge", "inf2.xlarge")
TEXT_LENGTH = 128
"""Tokens of a text where no length is given: that of the published rows."""


@dataclass(frozen=True)
class LeftOut:
    """Batches of one size on one instance that do not fit a core's memory."""

    instance_type: str
    batch_size: int
    reason: str


@dataclass(eq=False, repr=False)
class InferenceEstimateReport(Report):
    """Modelled inference of one model. ``estimates``: in order of instance, then of batch size. ``left_out``: what does
    not fit, and why.
    """

    title: str
    estimates: tuple[InferenceEstimate, ...]
    rate_per_s: float | None = None
    price_notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def document(self) -> Document:
        """A table for each instance; the headline names the cheapest."""
        first = self.estimates[0].inference
        answers = "hidden states" if first.hidden_output else "a few numbers"
        return Document(
            f"Windtunnel inference: {self.title}",
            f"modelled, not measured; {first.sequence_length:,} tokens, fp32 with bf16 products, answers: {answers}",
            tuple(self._headline()),
            self.sections(),
        )

    def sections(self) -> tuple[Section, ...]:
        """A section for each instance, with the notes below the last."""
        names = list(dict.fromkeys(item.name for item in self.estimates))
        found = [[item for item in self.estimates if item.name == name] for name in names]
        notes = tuple(self._notes())
        return tuple(self._section(items, notes if items is found[-1] else ()) for items in found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: seconds, inferences per second, US dollars; each modelled figure with its interval."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "kind": "modelled",
            "interval_percent": round(COVERAGE * 100),
            "rate_per_second": self.rate_per_s,
            "estimates": [self._data(item) for item in self.estimates],
            "left_out": [*map(asdict, self.left_out)],
            "price_notes": list(self.price_notes),
        }

    def _headline(self) -> Iterator[str]:
        priced = [(cost, item) for item in self.estimates if (cost := item.usd_per_million) is not None]
        if priced:
            (low, usd, high), best = min(priced, key=lambda pair: pair[0][1])
            yield (
                f"Cheapest: {best.name} with batches of {best.inference.batch_size}, {fmt.dollars(usd)} for a million "
                f"inferences ({fmt.dollars(low)} to {fmt.dollars(high)})."
            )
        fleets = (
            [] if self.rate_per_s is None else [(item.fleet(self.rate_per_s), item) for _, item in priced]
        )
        if fleets:
            fleet, best = min(fleets, key=lambda pair: pair[0].usd_per_day or 0.0)
            yield (
                f"{fmt.given(fleet.rate_per_s)} requests/s: {fleet.instances:,} x {best.name} with batches of "
                f"{best.inference.batch_size} ({fleet.low:,} to {fleet.high:,}), "
                f"{fmt.dollars(fleet.usd_per_day or 0.0)} a day."
            )

    def _section(self, items: Sequence[InferenceEstimate], notes: tuple[str, ...]) -> Section:
        price = items[0].price
        cost = "no price" if price is None else f"{fmt.cents(price.usd_per_hour)} an hour, {price.offering}"
        columns = ("P50", "range", "inferences/s", "range", "a million", "range")
        return Section(
            items[0].name,
            "modelled",
            f"modelled; {items[0].instance.core_count} cores, a call each; {cost}",
            (*columns, "instances", "a day") if self.rate_per_s is not None else columns,
            tuple(Row(f"{item.inference.batch_size:,}", self._cells(item)) for item in items),
            notes,
            label_header="batch",
        )

    def _cells(self, item: InferenceEstimate) -> tuple[str, ...]:
        cells = [
            _milliseconds(item.served.latency_p50_s),
            _range(item.latency_p50_s, _milliseconds),
            fmt.significant(item.served.throughput_per_s),
            _range(item.throughput_per_s, fmt.significant),
        ]
        usd = item.usd_per_million
        cells += ["-", "-"] if usd is None else [fmt.dollars(usd[1]), _range((usd[0], usd[2]), fmt.dollars)]
        if self.rate_per_s is not None:
            fleet = item.fleet(self.rate_per_s)
            cells += [
                f"{fleet.instances:,}",
                "-" if fleet.usd_per_day is None else fmt.dollars(fleet.usd_per_day),
            ]
        return tuple(cells)

    def _notes(self) -> Iterator[str]:
        for name in dict.fromkeys(left.instance_type for left in self.left_out):
            own = [left for left in self.left_out if left.instance_type == name]
            sizes = ", ".join(f"{left.batch_size:,}" for left in own)
            yield f"Left out of {name}: batches of {sizes}: {own[0].reason}."
        call = self.estimates[0].inference
        yield from told(of_the_model(call.architecture, call.sequence_length))
        yield (
            f"P50: of one call, as latency; range: {fmt.percent(COVERAGE)} of published figures that took no part lie "
            "inside. windtunnel inference --validate has the errors."
        )
        yield (
            "The cores answer calls one after the other, without a server around them. A batch has to be there: "
            "waiting until it is full comes on top of the latency."
        )
        if self.rate_per_s is not None:
            yield "instances: at full load, rounded up. Leave room: at full load a queue has no end."
        for price in dict.fromkeys(item.price for item in self.estimates):
            if price is not None:
                yield (
                    f"{price.instance_type}: {fmt.price(price.usd_per_hour)}, {price.offering}, {price.region}, "
                    f"{price.status}, since {price.effective_from}: {price.source}."
                )
        yield from dict.fromkeys(item.unpriced for item in self.estimates if item.unpriced)
        outside = dict.fromkeys(sentence for item in self.estimates for sentence in item.outside)
        if outside:
            yield f"Outside of the published rows, so the ranges are wider: {'; '.join(outside)}."
        yield from self.price_notes

    def _data(self, item: InferenceEstimate) -> dict[str, Any]:
        usd = item.usd_per_million
        data: dict[str, Any] = {
            "instance_type": item.name,
            "cores": item.instance.core_count,
            "batch_size": item.inference.batch_size,
            "sequence_length": item.inference.sequence_length,
            "latency_p50_seconds": rounded(item.served.latency_p50_s),
            "latency_p50_interval": [*map(rounded, item.latency_p50_s)],
            "throughput_per_second": rounded(item.served.throughput_per_s),
            "throughput_interval": [*map(rounded, item.throughput_per_s)],
            "usd_per_million": None if usd is None else rounded(usd[1]),
            "usd_per_million_interval": None if usd is None else [rounded(usd[0]), rounded(usd[2])],
            "call_seconds": {name: rounded(seconds) for name, seconds in item.call.parts.items()},
            "outside": list(item.outside),
            "price": None if item.price is None else price_data(item.price),
        }
        if self.rate_per_s is not None:
            fleet = item.fleet(self.rate_per_s)
            data |= {
                "instances": fleet.instances,
                "instances_interval": [fleet.low, fleet.high],
                "usd_per_day": maybe(fleet.usd_per_day),
            }
        return data


def modelled(
    model: str | Architecture,
    instances: Sequence[str] = INSTANCES,
    *,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    sequence_length: int | None = None,
    hidden_output: bool = False,
    rate_per_s: float | None = None,
    on: date | None = None,
) -> InferenceEstimateReport:
    """Latency, throughput and cost of a traced model, by instance and batch size. Idempotent.

    Args:
        model: an architecture's name, its dimensions, or a published model (``roberta-base``).
        instances: EC2 names are priced as EC2, ``ml.`` names as SageMaker endpoints.
        batch_sizes: sequences (images) in a call.
        sequence_length: tokens (patches) in a sequence. None: 128, for vision models 197.
        hidden_output: the answer is the hidden states, as AutoModel's, which take time to reach the host.
        rate_per_s: requests a second, for which the instances are counted.
        on: prices in force on that day. None: the newest.

    Raises:
        UnknownInstance, NotCalibrated: an instance or a family of models that cannot be modelled.
        InvalidInput: an unknown architecture, a size out of range, nothing fits a core.
    """
    known = architecture_of(model) if isinstance(model, str) else model
    title = (
        model if isinstance(model, str) else f"{known.family}, {known.layers} layers of {known.hidden_size:,}"
    )
    for family in {*map(named_instance, instances)}.difference(instances):
        # Nobody is asked for a type of a family that has no rows.
        check_calibrated(instance_type(family))
    for instance in instance_types(instances):  # raises if some are unknown, and names them all
        check_calibrated(instance)
    length = sequence_length or (TEXT_LENGTH if known.vocabulary else known.usual_length)
    loaded = load()
    calls = [Inference(known, batch, length, hidden_output) for batch in dict.fromkeys(batch_sizes)]
    asked = [
        (name, call, misfit(call, instance_type(name))) for name in dict.fromkeys(instances) for call in calls
    ]
    found = tuple(estimate_inference(call, name, loaded.book, on) for name, call, why in asked if why is None)
    left_out = tuple(LeftOut(name, call.batch_size, why) for name, call, why in asked if why is not None)
    if not found:
        raise InvalidInput(left_out[0].reason)
    return InferenceEstimateReport(title, found, rate_per_s, loaded.notes, left_out)


def _milliseconds(value: float) -> str:
    return f"{fmt.significant(value * 1e3)} ms"


def _range(ends: tuple[float, float], text: Callable[[float], str]) -> str:
    low, high = map(text, ends)
    return f"{low.removesuffix(' ms')}-{high.removeprefix('$').removesuffix(' ms')}"
