"""The inference model compared with published figures: in sample, left out, and on rows that were set aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from windtunnel.priceperf.calibration.inference_calibration import (
    FIGURES,
    InferenceSummary,
    constants,
    summaries,
    width,
)
from windtunnel.priceperf.calibration.inference_fitting import PRIORS
from windtunnel.priceperf.calibration.inference_rows import inference_rows
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report

SCHEMA = "windtunnel.inference_validation/1"
_FIGURES = {"throughput": "Throughput", "latency_p50": "Median latency (P50)"}
_LEVELS = {
    "in_sample": "in sample",
    "alone": "left out, each model",
    "family": "left out, each size of model",
    "unseen": "set aside before the first fit",
}


@dataclass(eq=False, repr=False)
class InferenceValidationReport(Report):
    """Errors of throughput and of median latency (P50). ``summaries`` holds them."""

    summaries: tuple[InferenceSummary, ...]

    def document(self) -> Document:
        """The errors of both figures at each level, the constants, and how to read them."""
        errors = Section(
            "Errors",
            "modelled",
            "absolute, of the published figure",
            ("rows", "groups", "mean", "median", "p90", "max", f"in the {COVERAGE * 100:.0f} %"),
            tuple(self._rows()),
            (
                "each model: predicted by constants fitted without any row of it; twins by another name stay. Each "
                "size: without all models of its dimensions. groups: how many left, one after the other.",
                f"in the {COVERAGE * 100:.0f} %: rows inside an interval that the other groups have set. Few groups "
                "make it wide: with four it is the largest error of the other three.",
                "set aside: models that took no part in the fit, nor in choosing its form: GPT-2, GPT-2 medium, "
                "ELECTRA. Most of their error is GPT-2 on Neuron 2.10 and 2.11, which later versions ran half as fast "
                "again.",
                "All rows are AWS's own, from one kind of benchmark: what another source would show is not known.",
            ),
            label_header="predicted",
        )
        values = asdict(constants())
        fitted = Section(
            "Constants",
            "modelled",
            "",
            ("value", "prior", "because"),
            tuple(
                Row(name, (f"{values[name]:.4g}", f"{prior.value:.4g}", prior.why))
                for name, prior in PRIORS.items()
            ),
            label_header="constant",
        )
        return Document(
            "The inference model against published figures",
            f"{len(inference_rows())} rows of trn1.2xlarge and inf2.xlarge, Neuron 2.8 to 2.28; "
            f"{len(inference_rows('test'))} more set aside",
            tuple(self._headline()),
            (errors, fitted),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; errors in percent of the published figure."""
        return {
            "schema": SCHEMA,
            "rows": len(inference_rows()),
            "rows_set_aside": len(inference_rows("test")),
            "interval_nominal_percent": round(COVERAGE * 100),
            "summary": {
                figure: {item.level: _data(item) for item in self.summaries if item.figure == figure}
                for figure in FIGURES
            },
            "interval_log_width": {
                figure: {
                    "alone": round(width("alone", figure), 4),
                    "family": round(width("family", figure), 4),
                }
                for figure in FIGURES
            },
            "constants": asdict(constants()),
        }

    def _headline(self) -> Iterator[str]:
        for figure in FIGURES:
            mean = {
                item.level: f"{item.errors.mean * 100:.1f} %"
                for item in self.summaries
                if item.figure == figure
            }
            yield (
                f"{_FIGURES[figure]}: off by {mean['alone']} on average with the model left out, {mean['family']} with "
                f"its size left out; {mean['unseen']} on rows that were set aside."
            )

    def _rows(self) -> Iterator[Row]:
        for figure in FIGURES:
            yield Row(_FIGURES[figure], (), "group")
            for item in self.summaries:
                if item.figure == figure:
                    yield Row(_LEVELS[item.level], _cells(item), "detail")


def validated() -> InferenceValidationReport:
    """The report on the built-in rows, predicted by constants that did not see them."""
    return InferenceValidationReport(summaries())


def _cells(item: InferenceSummary) -> tuple[str, ...]:
    errors = item.errors
    shares = (errors.mean, errors.median, errors.p90, errors.largest)
    return (
        f"{errors.rows}",
        f"{item.groups}" if item.groups else "-",
        *(f"{share * 100:.1f} %" for share in shares),
        "-" if item.coverage is None else f"{item.coverage * 100:.1f} %",
    )


def _data(item: InferenceSummary) -> dict[str, Any]:
    errors = item.errors
    return {
        "rows": errors.rows,
        "groups": item.groups,
        "mean_percent": round(errors.mean * 100, 3),
        "median_percent": round(errors.median * 100, 3),
        "p90_percent": round(errors.p90 * 100, 3),
        "max_percent": round(errors.largest * 100, 3),
        "coverage_percent": None if item.coverage is None else round(item.coverage * 100, 3),
    }
