"""An endpoint under load: what it answered, measured from here, and beside it, if asked for, what is modelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report
from windtunnel.reports.inference.load import Answers, Load, send
from windtunnel.reports.inference.modelled import InferenceEstimateReport

SCHEMA = "windtunnel.inference_load/1"
_PERCENTILES = (50.0, 99.0)
_KEPT = 0.95
"""The part of the rate asked for that must be reached; below it the load was more than the endpoint answers."""


@dataclass(eq=False, repr=False)
class MeasuredInferenceReport(Report):
    """A load and its answers. ``modelled``: figures modelled for trn1 and inf2, shown beside them."""

    endpoint: str
    local: bool
    load: Load
    answers: Answers
    modelled: InferenceEstimateReport | None = None

    def document(self) -> Document:
        """What was measured; then what is modelled."""
        beside = () if self.modelled is None else self.modelled.sections()
        measured = Section(
            "Answers", "measured", "measured here", rows=tuple(self._rows()), notes=tuple(self._notes())
        )
        return Document(
            f"Endpoint {self.endpoint} under load", self._load(), tuple(self._headline()), (measured, *beside)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: seconds, answers per second."""
        return {
            "schema": SCHEMA,
            "kind": "measured",
            "endpoint": self.endpoint,
            "rate_per_second": self.load.rate_per_s,
            "clients": self.load.clients,
            "duration_seconds": self.load.duration_s,
            "asked": self.answers.asked,
            "unsent": self.answers.unsent,
            "answered": len(self.answers.latencies_s),
            "throughput_per_second": self.answers.throughput_per_s,
            **{
                f"latency_p{percent:g}_seconds": self.answers.percentile_s(percent)
                for percent in _PERCENTILES
            },
            "errors": dict(self.answers.errors),
            "modelled": None if self.modelled is None else self.modelled.to_dict(),
        }

    def _load(self) -> str:
        clients = fmt.many(self.load.clients, "client")
        if self.load.rate_per_s is None:
            return f"{clients}, each as fast as it was answered, for {self.load.duration_s:g} s"
        return (
            f"{self.load.rate_per_s:g} requests/s for {self.load.duration_s:g} s, at most {clients} at a time"
        )

    def _headline(self) -> Iterator[str]:
        if self.answers.unsent:
            due = f"{fmt.many(self.answers.unsent, 'question')} {'was' if self.answers.unsent == 1 else 'were'} due"
            busy = "the client" if self.load.clients == 1 else f"all {self.load.clients} clients"
            yield f"{due} and not sent: {busy} still waited for answers."
        failed = sum(self.answers.errors.values())
        if failed:
            yield f"{failed:,} of {self.answers.asked:,} requests failed."
        rate = self.load.rate_per_s
        if not self.answers.unsent and rate is not None and self._fell_behind(rate):
            yield f"It did not keep up with {rate:g} requests/s: latencies have the time in which questions waited."

    def _fell_behind(self, rate: float) -> bool:
        """Whether answering took longer than the requests were due. Failed requests count too. The fastest latency is
        taken off: a slow model needs that long for the last answer, however few requests come.
        """
        fastest_s = min(self.answers.latencies_s, default=0.0)
        return self.answers.took_s - fastest_s > self.answers.asked / (_KEPT * rate)

    def _rows(self) -> Iterator[Row]:
        yield Row("Requests", (f"{self.answers.asked:,}",))
        yield Row("Throughput", (f"{fmt.significant(self.answers.throughput_per_s, 3)} answers/s",))
        for percent in _PERCENTILES:
            found = self.answers.percentile_s(percent)
            yield Row(f"Latency P{percent:g}", ("-" if found is None else fmt.seconds(found),))
        yield Row("Errors", (f"{sum(self.answers.errors.values()):,}",))

    def _notes(self) -> Iterator[str]:
        if self.local:
            yield (
                "Measured here: client, backend and model share this machine's processors. It says nothing of the "
                "speed on the instance that the endpoint asks for."
            )
        else:
            yield "Measured here, with the network between this machine and AWS in it."
        for error, count in self.answers.errors.most_common(5):
            yield f"{count:,} x {error}"


def measured(
    endpoint: str,
    ask: Callable[[], object],
    load: Load,
    *,
    local: bool,
    modelled: InferenceEstimateReport | None = None,
) -> MeasuredInferenceReport:
    """Send one request, which does not count, then the load. Blocks.

    Args:
        endpoint: its name.
        ask: sends one request, in several threads; raises `ServiceCallFailed` where the endpoint refuses it.
        load: how much to send.
        local: whether the endpoint runs on this machine.
        modelled: modelled figures to show beside the answers.

    Raises:
        EndpointNotFound, ServiceCallFailed: the endpoint refused the first request.
    """
    ask()
    return MeasuredInferenceReport(endpoint, local, load, send(load, ask), modelled)
