"""A job that ran on AWS beside its prediction: as a section, a sentence, and plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windtunnel.priceperf import FlightCheck
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.money.flight_check import MOVED, STARTING, Compared
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section, Style

_COLUMNS = ("predicted", "interval", "real", "error", "inside")


def headline(check: FlightCheck, rehearsed_only: bool) -> tuple[str, ...]:
    """The prediction's errors in a sentence. ``rehearsed_only``: also that the size of the real job was not stated."""
    if check.flight.status != "Completed":
        return (
            f"The job ended as {check.flight.status}: what was predicted is the whole job, what it took is not.",
        )
    parts = [
        f"{label} {fmt.seconds(item.real)}, predicted {fmt.modelled_seconds(item.predicted)} ({_error(item)}, "
        f"{'inside' if item.inside else 'OUTSIDE'} its interval)"
        for label, item in (
            ("start to end" if check.flight.spot else "billable", check.clock),
            ("steps", check.steps),
        )
        if item is not None and (item.real_ends is None or item.real_ends[0] > 0)
    ]
    line = f"Predicted and real: {'; '.join(parts)}."
    if rehearsed_only:
        return (
            line,
            "The size of the job on AWS was not stated: predicted are the samples that were rehearsed. If it trained "
            "more, state it: full_scale=FullScale(train_samples=...) or --full-scale-samples N.",
        )
    return (line,)


def section(check: FlightCheck, rehearsal: str) -> Section:
    """A row for each figure that AWS states and the model predicts."""
    start, *moved = check.phases
    rows = [_row("Billable" if not check.flight.spot else "Start to end", check.clock, _seconds, "total")]
    if check.cost is not None:
        rows.append(_row("Cost", check.cost, lambda value: f"${value:,.2f}", "total"))
    by_name = {item.name: item for item in moved}
    download = by_name[MOVED["download"]]
    if download.high:
        rows.append(_row(MOVED["download"], download, _seconds))
    else:
        rows.append(Row(MOVED["download"], ("not stated", "", _seconds(download.real), "-", "-")))
    rows.append(_row("Training", check.training, _seconds))
    if check.steps is not None:
        rows.append(_row("steps, evaluation", check.steps, _seconds, "detail"))
    rows.append(_row(MOVED["upload"], by_name[MOVED["upload"]], _seconds))
    rows.append(_row("Not billed: starting", start, _seconds))
    known = {*STARTING, *MOVED.values(), "Training"}
    rows += [
        Row(name, ("not modelled", "", _seconds(spent)), "detail")
        for name, spent in check.flight.phases.items()
        if name not in known
    ]
    return Section(
        "Predicted and real", "modelled", f"predicted from rehearsal {rehearsal}; real: DescribeTrainingJob",
        _COLUMNS, tuple(rows), tuple(_notes(check)),
    )  # fmt: skip


def _notes(check: FlightCheck) -> list[str]:
    notes = [
        "error: predicted / real - 1; inside: the interval holds the real figure. Intervals hold "
        f"{fmt.percent(COVERAGE)} of the rows that the model was calibrated with; those of fixed costs are "
        "assumptions.",
    ]
    if any(item.name == MOVED["download"] and not item.high for item in check.phases):
        notes.append(
            "Downloading: how much was not stated (dataset_gib, --dataset-gib), so the predicted seconds and cost "
            "are without it."
        )
    if check.steps is not None:
        notes.append(
            "steps and evaluation, real: the Training phase without set-up, preparation and compilation, which "
            f"AWS does not state and which are taken as modelled. By their ends it is {_ends(check.steps)}; "
            "it counts as inside when a part of that is."
        )
    else:
        notes.append(
            "The Training phase is no longer than the fixed costs modelled in it: nothing is left for steps."
        )
    if check.flight.spot:
        notes.append(
            "A spot job: its seconds from start to end are compared, not those that the discount left."
        )
    if check.flight.interrupted:
        notes.append("Spot capacity was interrupted: what was trained twice is in the real seconds.")
    if check.flight.may_start_warm:
        notes.append(
            "The job had a warm pool. Where it started in one, start, set-up and compilation were shorter."
        )
    if check.cost is not None and check.price is not None:
        notes.append(
            f"Both costs at {fmt.cents(check.price.usd_per_hour)} an hour, the price when the job ran."
        )
    return notes


def data(check: FlightCheck, rehearsal: str) -> dict[str, Any]:
    """Plain data; seconds and US dollars.

    A spot job is compared by its seconds from start to end. Its ``billable_s`` holds these too; what AWS billed is in
    ``measured``.
    """
    flight = check.flight
    return {
        "rehearsal": rehearsal,
        "instance_type": flight.instance_type,
        "instance_count": flight.instance_count,
        "status": flight.status,
        "started": flight.started.isoformat(),
        "spot": flight.spot,
        "interrupted": flight.interrupted,
        "start_to_end_s": _compared(check.clock) if flight.spot else None,
        "billable_s": _compared(check.clock),
        "training_phase_s": _compared(check.training),
        "steps_s": None if check.steps is None else _compared(check.steps),
        "cost_usd": None if check.cost is None else _compared(check.cost),
        "phases_s": {item.name: _compared(item) for item in check.phases},
        "phases_measured_s": dict(flight.phases),
    }


def _compared(item: Compared) -> dict[str, Any]:
    return {
        "predicted": round(item.predicted, 3),
        "interval": [round(item.low, 3), round(item.high, 3)],
        "real": round(item.real, 3),
        "real_interval": None if item.real_ends is None else [round(end, 3) for end in item.real_ends],
        "error_percent": None if item.error is None else round(item.error * 100, 2),
        "inside_interval": item.inside,
    }


def _row(label: str, item: Compared, form: Callable[[float], str], style: Style = "normal") -> Row:
    return Row(
        label,
        (
            form(item.predicted),
            fmt.interval(form(item.low), form(item.high)),
            form(item.real),
            _error(item),
            "yes" if item.inside else "NO",
        ),
        style,
    )


def _ends(item: Compared) -> str:
    low, high = item.real_ends or (item.real, item.real)
    return fmt.interval(_seconds(max(0.0, low)), _seconds(high))


def _error(item: Compared) -> str:
    if item.error is None:
        return "-"
    percent = round(item.error * 100)
    return f"{percent:+,} %" if percent else "0 %"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s"
