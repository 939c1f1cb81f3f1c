"""The report of a job of which only its counters are known, and what any report says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel.priceperf import FullScale
from windtunnel.rendering.report import Report
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.job.report import PricePerformance


class CountedJob:
    """A job with its counters, or without, and as much of a description as is given."""

    def __init__(self, counters: Mapping[str, Any] | None, **describe: Any) -> None:
        self._counters = counters
        self._describe = describe

    def describe(self) -> Mapping[str, Any]:
        return self._describe

    def counters(self) -> Mapping[str, Any] | None:
        return self._counters


def report_for_counters(
    counters: Mapping[str, Any], full_scale: FullScale | None = None, **given: Any
) -> PricePerformance:
    """The report of a job that is not described; the other arguments are those of `report_for_job`."""
    return report_for_job(CountedJob(counters), full_scale, **given)


def screen_of(report: Report) -> str:
    """What is read first, in one line however it is broken."""
    return " ".join(str(report).split())


def text_of(report: Report) -> str:
    """All of it, in the same way."""
    return " ".join(report.to_text(full=True).split())
