"""A job's metrics over time, as a table and as learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.format import given, local_time, many
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import FONT_SIZE, TITLE, Theme, frame, plain
from windtunnel.rendering.report import Report

SCHEMA = "windtunnel.metrics/1"
_PANEL_IN = (8.0, 1.9)
_MOST_PANELS = 12


@dataclass(frozen=True)
class MetricPoint:
    """The average of a metric over one period. ``time``: when it begins; ``samples``: how many values were averaged."""

    time: datetime
    average: float
    samples: int


@dataclass(frozen=True, eq=False, repr=False)
class MetricSeries(Report):
    """What a job's ``metric_definitions`` found in its log.

    Attributes:
        job: its name.
        period_s: the length of each point's period, in seconds.
        points: by metric, in order of time.
        final: the last value of each metric, as in DescribeTrainingJob.
    """

    job: str
    period_s: int
    points: Mapping[str, Sequence[MetricPoint]]
    final: Mapping[str, float]

    def document(self) -> Document:
        """A row for each period in which any metric had a value, and the final values below."""
        names = list(self.points)
        values = {name: {point.time: point.average for point in found} for name, found in self.points.items()}
        times = sorted({time for found in values.values() for time in found})
        rows = [
            Row(local_time(time), tuple(_cell(values[name].get(time)) for name in names)) for time in times
        ]
        if self.final:
            rows.append(Row("final", tuple(_cell(self.final.get(name)) for name in names), "total"))
        note = (
            f"A line is the average of its {self.period_s:,} s." if rows else "The log has held no value yet."
        )
        return Document(
            f"Windtunnel metrics: {self.job}",
            "found in the job's log by its metric_definitions",
            (),
            (Section("Metrics", "measured", columns=tuple(names), rows=tuple(rows), notes=(note,)),),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; times in ISO 8601."""
        series = {
            name: [{"time": p.time.isoformat(), "average": p.average, "samples": p.samples} for p in found]
            for name, found in self.points.items()
        }
        return {
            "schema": SCHEMA,
            "job": self.job,
            "period_seconds": self.period_s,
            "series": series,
            "final": dict(self.final),
        }

    def charts(self) -> tuple[Chart, ...]:
        """``curves``: a panel for each metric, over the minutes since the first value."""
        shown = [(name, found) for name, found in self.points.items() if found][:_MOST_PANELS]
        if not shown:
            return ()
        ends = "; ".join(f"{name} from {_cell(p[0].average)} to {_cell(p[-1].average)}" for name, p in shown)
        left_out = sum(map(bool, self.points.values())) - len(shown)
        return (
            Chart(
                kind="curves",
                title="Learning curves",
                caption=f"Averages of {self.period_s:,} s, from the job's log."
                + (f" Not drawn: {many(left_out, 'metric')} more." if left_out else ""),
                words=f"Metrics over time: {ends}.",
                size_in=(_PANEL_IN[0], 0.6 + _PANEL_IN[1] * len(shown)),
                draw=lambda target, theme: _draw(target, theme, shown),
            ),
        )

    def _no_charts(self) -> str:
        return "the log has held no value of a metric yet."


def _draw(target: Any, theme: Theme, shown: Sequence[tuple[str, Sequence[MetricPoint]]]) -> None:
    panels = target.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    begun = min(found[0].time for _, found in shown)
    for index, (axes, (name, found)) in enumerate(zip(panels, shown, strict=True)):
        minutes = [(point.time - begun).total_seconds() / 60 for point in found]
        # A single value would draw no line, so it gets a mark.
        marks = {**theme.marks(index), "markersize": 4 if len(found) < 30 else 0}
        axes.plot(minutes, [point.average for point in found], linewidth=1.2, **marks)
        axes.set_ylabel(plain(name), fontsize=FONT_SIZE)
        frame(axes, theme, "both")
    panels[-1].set_xlabel("minutes since the first value")
    target.suptitle("Learning curves", x=0.01, ha="left", **TITLE)


def _cell(value: float | None) -> str:
    return "" if value is None else given(value)
