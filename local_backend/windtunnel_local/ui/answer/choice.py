"""The reader's choices on the page of the answer, from the URL's query. Pure. A wrong field has a message."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from windtunnel.priceperf import (
    AUTO_CAST,
    CATALOG,
    FP32,
    BatchRule,
    FullScale,
    InvalidInput,
    Offering,
    PerDevice,
    Precision,
)
from windtunnel.priceperf.model.precision import GPU_SCRIPTS
from windtunnel.priceperf.money.offerings import CLAIMS, LISTED, TRAINING_ON_DEMAND
from windtunnel.priceperf.money.scaling import ScalingMode
from windtunnel.priceperf.workload.cluster import BATCH_RULES, checked_rule
from windtunnel.priceperf.workload.rehearsed import RehearsedJob, stating

MODELLED = tuple(name for name, instance in CATALOG.items() if instance.calibration)
"""The instance types whose times can be modelled."""
OFFERINGS: Mapping[str, Offering] = {offering: offering for offering in (*LISTED, *CLAIMS)}
"""The offerings (ways to buy an hour of training), by name."""
BATCHES: Mapping[str, str] = {
    "rehearsed": "as rehearsed",
    "global": "the job's global batch on all",
    "per_device": "the job's samples on each worker",
    "total": "this many in all",
    "each": "this many on each worker",
}
TRN_PRECISIONS: Mapping[str, Precision] = {"bf16": AUTO_CAST, "fp32": FP32}
MODES: Mapping[str, ScalingMode] = {"strong": "strong", "weak": "weak"}
FIELDS = (
    "instance", "nodes", "batch", "size", "samples", "epochs", "evaluation", "preparation", "loader", "on", "offering",
    "discount", "trn", "gpu", "scaling",
)  # fmt: skip
"""The names of the fields in the query."""
_LONGEST = 30
_T = TypeVar("_T")


@dataclass(frozen=True)
class Choice:
    """The choices for the report. None: as in the job."""

    instances: tuple[str, ...] = ()
    nodes: int | None = None
    batch: BatchRule = "rehearsed"
    full_scale: FullScale | None = None
    on: date | None = None
    offering: Offering = TRAINING_ON_DEMAND
    discount: float | None = None
    trn: Precision | None = None
    gpu: Precision | None = None
    mode: ScalingMode = "strong"


@dataclass(frozen=True)
class Form:
    """The fields as filled in, the error of each wrong field, and the choice, which is None if a field is wrong."""

    given: Mapping[str, str]
    instances: tuple[str, ...]
    errors: Mapping[str, str]
    choice: Choice | None

    def wrong(self, name: str, message: str) -> Form:
        """The same form, with an error for one more field."""
        return Form(self.given, self.instances, {**self.errors, name: message}, None)


def read(query: Sequence[tuple[str, str]], rehearsed: RehearsedJob | None = None) -> Form:
    """Read the form from a query's names and values. If a name is repeated, the last value counts.

    ``rehearsed``: what of the real job's size a rehearsal has found, and the form need not say.
    """
    given = {name: value.strip() for name, value in query if name in FIELDS and value.strip()}
    names = tuple(
        dict.fromkeys(value.strip() for name, value in query if name == "instance" and value.strip())
    )
    reader = _Reader(given, rehearsed)
    offering = reader.one_of("offering", OFFERINGS, TRAINING_ON_DEMAND)
    choice = Choice(
        instances=reader.instances(names),
        nodes=reader.number("nodes", 1),
        batch=reader.batch(),
        full_scale=reader.full_scale(),
        on=reader.day("on"),
        offering=offering,
        discount=reader.discount(offering),
        trn=reader.one_of("trn", TRN_PRECISIONS, None),
        gpu=reader.one_of("gpu", GPU_SCRIPTS, None),
        mode=reader.one_of("scaling", MODES, "strong"),
    )
    return Form(given, names, reader.errors, None if reader.errors else choice)


@dataclass
class _Reader:
    """Reads fields. A wrong field gets a message in ``errors``, and its default value."""

    given: Mapping[str, str]
    rehearsed: RehearsedJob | None = None
    errors: dict[str, str] = field(default_factory=dict)

    def one_of(self, name: str, values: Mapping[str, _T], otherwise: _T) -> _T:
        text = self.given.get(name)
        if text is None or text in values:
            return otherwise if text is None else values[text]
        self.errors[name] = f"{_short(text)} is none of {', '.join(values)}."
        return otherwise

    def instances(self, names: Sequence[str]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in MODELLED]
        if unknown:
            self.errors["instance"] = f"{_short(unknown[0])} is none of those that can be modelled."
        return tuple(name for name in names if name in MODELLED)

    def number(self, name: str, least: int) -> int | None:
        """A whole number, also written 1e6, 1,000 or 1_000."""
        text = self.given.get(name)
        if text is None:
            return None
        value = _number(text)
        if value is None or not value.is_integer() or value < least:
            self.errors[name] = f"{_short(text)} is no whole number from {least}."
            return None
        return int(value)

    def batch(self) -> BatchRule:
        rule = self.given.get("batch", "rehearsed")
        if rule not in BATCHES:
            self.errors["batch"] = f"{_short(rule)} is none of {', '.join(BATCHES)}."
        if rule in BATCH_RULES:
            return checked_rule(rule)
        size = self.number("size", 1)
        if size is None:
            self.errors.setdefault("size", "How many samples?")
            return "rehearsed"
        return self._made(
            "size", lambda: checked_rule(size) if rule == "total" else PerDevice(size), "rehearsed"
        )

    def full_scale(self) -> FullScale | None:
        stated = {
            "train_samples": self.number("samples", 1),
            "epochs": self.number("epochs", 1),
            "evaluation_samples": self.number("evaluation", 0),
            "preparation_s": self.amount("preparation"),
            "loader_samples_per_s": self.amount("loader"),
        }
        given = {name: value for name, value in stated.items() if value is not None}
        if not given:
            return None
        found = self._made("samples", lambda: stating(self.rehearsed, given), None)
        if found is None:
            self.errors.setdefault("samples", "How many samples has an epoch?")
        return found

    def amount(self, name: str) -> float | None:
        """A number above 0; None for 0, and if the field is empty."""
        text = self.given.get(name, "0")
        value = _number(text)
        if value is None or value < 0:
            self.errors[name] = f"{_short(text)} is no number from 0."
            return None
        return value or None

    def day(self, name: str) -> date | None:
        text = self.given.get(name)
        try:
            return None if text is None else date.fromisoformat(text)
        except ValueError:
            self.errors[name] = f"{_short(text or '')} is no day; write it as 2025-06-01."
            return None

    def discount(self, offering: Offering) -> float | None:
        """The assumed discount, from 0 to 1. Used only if the offering has no list price."""
        claim = CLAIMS.get(offering)
        if claim is None:
            return None
        most, text = claim.up_to * 100, self.given.get("discount", "")
        percent = _number(text.removesuffix("%").strip())
        if percent is None or not 0 < percent <= most:
            self.errors["discount"] = (
                f"A {offering.removeprefix('SageMaker ')} has no list price. State the discount that you assume, "
                f"above 0 and at most {most:g} %, which is what AWS claims."
            )
            return None
        return percent / 100

    def _made(self, name: str, make: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return make()
        except InvalidInput as error:
            self.errors[name] = f"{error}."
            return otherwise


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", "").replace("_", "")) if len(text) <= _LONGEST else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
