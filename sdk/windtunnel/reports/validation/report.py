"""The price model compared with published throughputs, with its errors in sample and left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from windtunnel.priceperf import CALIBRATIONS
from windtunnel.priceperf.calibration.accuracy import (
    CalibrationSummary,
    RowCheck,
    Validation,
    kind_order,
    validate_built_in,
    validate_rows,
)
from windtunnel.priceperf.calibration.calibrations import VERSION_SPREAD
from windtunnel.priceperf.calibration.left_out import fitted
from windtunnel.priceperf.calibration.row_reader import read_rows
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.report import Report
from windtunnel.reports.modelled.sections import scripts_note
from windtunnel.reports.validation.charts import validation_charts
from windtunnel.reports.validation.data import (
    constants_data,
    error_parts,
    row_data,
    scripts_data,
    summary_data,
)

SCHEMA = "windtunnel.validation/1"


@dataclass(eq=False, repr=False)
class ValidationReport(Report):
    """The price model compared with published rows. ``validation`` holds the figures."""

    validation: Validation

    def document(self) -> Document:
        """Every row, the summary, the constants, and how to read them."""
        sections = [
            _rows_section(calibration.label, rows)
            for key, calibration in CALIBRATIONS.items()
            if (rows := [row for row in self.validation.rows if row.calibration == key])
        ]
        if self.validation.elsewhere:
            sections.append(_elsewhere_section(self.validation.elsewhere))
        if self.validation.summaries:
            sections.append(_summary_section(self.validation))
        if self.validation.not_predicted:
            sections.append(_not_predicted(self.validation))
        notes = tuple(_row_notes(self.validation))
        if notes:
            sections.append(Section("Notes on rows", "text", notes=notes))
        sections += [_constants_section(), Section("What this says", "text", notes=_reading(self.validation))]
        source = "the rows of the calibration" if self.validation.built_in else "the rows of a file"
        return Document(
            "The price model against published throughputs",
            f"{fmt.many(len(self.validation.rows), 'row')}: {source}; "
            f"{len(self.validation.not_predicted)} not predicted"
            + (
                f"; {len(self.validation.elsewhere)} that set no constant"
                if self.validation.elsewhere
                else ""
            ),
            tuple(_headline(self.validation)),
            tuple(sections),
        )

    def charts(self) -> tuple[Chart, ...]:
        """``published``: predicted against published, and ``errors``, row by row."""
        return validation_charts(self.validation)

    def _no_charts(self) -> str:
        return "no row has both a prediction and a published figure."

    def to_dict(self) -> dict[str, Any]:
        """Plain data: errors in percent of the published throughput, throughputs in sequences per second."""
        return {
            "schema": SCHEMA,
            "built_in": self.validation.built_in,
            "rows": [row_data(row) for row in self.validation.rows],
            "elsewhere": [row_data(row) for row in self.validation.elsewhere],
            "summary": {
                **{summary.kind: summary_data(summary) for summary in self.validation.summaries},
                "rows": len(self.validation.rows),
                "not_predicted": len(self.validation.not_predicted),
                "scripts": {kind: scripts_data(errors) for kind, errors in fitted()["scripts"].items()},
                "interval_nominal_percent": round(COVERAGE * 100, 3),
                "version_floor_percent": round(VERSION_SPREAD * 100, 3),
            },
            "constants": {key: constants_data(key) for key in CALIBRATIONS},
        }


def validated(table: Sequence[Mapping[str, Any]] | None = None) -> ValidationReport:
    """Compare the price model with published throughputs, and give its errors in sample and left out.

    Args:
        table: rows with the columns of the published tables, as text; None: the built-in rows. A row that cannot be
            predicted carries the reason.
    """
    return ValidationReport(validate_built_in() if table is None else validate_rows(read_rows(table)))


def _headline(validation: Validation) -> Iterator[str]:
    for item in validation.summaries:
        error = item.left_out
        label = _label(item.calibration, item.kind)
        if error.rows == 1 and not validation.built_in:
            yield f"{label}: the one published figure of the file is off by {_percent(error.mean)}."
            continue
        rows = (
            f"{error.rows} left-out rows"
            if validation.built_in
            else f"{error.rows} published figures of the file"
        )
        text = (
            f"{label}: {rows} are off by {_percent(error.mean)} on average "
            f"(median {_percent(error.median)}, at most {_percent(error.largest)})"
        )
        if validation.built_in:
            text += (
                f"; whole families of models left out: {_percent(item.family_left_out.mean)}, whole sources: "
                f"{_percent(item.source_left_out.mean)} on average"
            )
        if item.elsewhere is not None:
            text += f"; {item.elsewhere.errors.rows} rows of other software: {_percent(item.elsewhere.errors.mean)}"
        if item.by_software is not None:
            errors = item.by_software.errors
            text += f", {errors.rows} of these by its other models' speed: {_percent(errors.mean)}"
        yield f"{text}."
    if not validation.summaries:
        yield "No row has both a prediction and a published figure."


def _rows_section(title: str, rows: list[RowCheck]) -> Section:
    return Section(
        title,
        "modelled",
        "sequences/s; errors in percent of the published figure",
        ("published", "predicted", f"{COVERAGE:.0%} range", "error", "left out", "family out"),
        tuple(
            Row(
                row.config,
                (
                    _throughput(row.published),
                    _throughput(row.predicted),
                    f"{_throughput(row.low)}-{_throughput(row.high)}",
                    _signed(row.error),
                    _signed(row.left_out),
                    _signed(row.family_left_out),
                ),
            )
            for row in rows
            if row.predicted is not None
        ),
        label_header="configuration",
    )


def _elsewhere_section(checks: Sequence[RowCheck]) -> Section:
    """Rows of other software, grouped by it: the rows of one software are one source, and err alike."""
    sources: dict[tuple[str, str], list[RowCheck]] = {}
    for row in checks:
        sources.setdefault((row.kind or "", row.groups[-1].name), []).append(row)
    rows, kind = [], ""
    for (its_kind, name), found in sorted(
        sources.items(), key=lambda item: (kind_order(item[0][0]), item[0][1])
    ):
        if its_kind != kind:
            kind = its_kind
            rows.append(Row(_label(found[0].calibration or "", kind), (), "group"))
        errors = [row.source_left_out or 0.0 for row in found]
        inside = sum(bool(row.inside) for row in found)
        cells = (f"{len(found)}", _percent(mean(map(abs, errors))), _signed(mean(errors)), f"{inside}")
        rows.append(Row(name, cells, "detail"))
    return Section(
        "Other software",
        "modelled",
        "none of these rows set a constant",
        ("rows", "mean error", "signed", "inside"),
        tuple(rows),
        label_header="software",
    )


def _summary_section(validation: Validation) -> Section:
    rows = []
    for item in validation.summaries:
        rows.append(Row(_label(item.calibration, item.kind), (), "group"))
        for name, errors in error_parts(item):
            rows.append(
                Row(
                    name.replace("_", " "),
                    (
                        f"{errors.rows}",
                        *(_percent(x) for x in (errors.mean, errors.median, errors.p90, errors.largest)),
                    ),
                    "detail",
                )
            )
    return Section(
        "Summary",
        "modelled",
        "absolute errors",
        ("rows", "mean", "median", "p90", "max"),
        tuple(rows),
        tuple(_coverage(item, validation) for item in validation.summaries),
    )


def _coverage(item: CalibrationSummary, validation: Validation) -> str:
    label = _label(item.calibration, item.kind)
    if not validation.built_in:
        share = _percent(item.coverage[0])
        return f"{label}: {share} of the published figures lie inside their {COVERAGE:.0%} interval."
    parts = [
        f"{share:.0%} of the rows, {of_group:.0%} of a group's on average, in {groups} {name}"
        for share, of_group, groups, name in zip(
            item.coverage, item.group_coverage, item.groups, _GROUPS, strict=True
        )
    ]
    return f"{label}: inside an {COVERAGE:.0%} interval that others have set lie {'; '.join(parts)}."


_GROUPS = ("groups of near-twins", "families of models", "sources")


def _not_predicted(validation: Validation) -> Section:
    reasons: dict[str | None, list[str]] = {}
    for row in validation.not_predicted:
        reasons.setdefault(row.reason, []).append(row.config)
    return Section(
        "Not predicted",
        "text",
        notes=tuple(f"{'; '.join(rows)}: {reason}" for reason, rows in reasons.items()),
    )


def _row_notes(validation: Validation) -> Iterator[str]:
    """Each note once, with the rows that it holds for."""
    found: dict[str, list[str]] = {}
    for row in validation.rows:
        for note in row.notes:
            found.setdefault(note, []).append(row.config)
        if row.outside_range:
            sentence = f"outside the calibrated range, interval widened ({'; '.join(row.outside_range)})"
            found.setdefault(sentence, []).append(row.config)
    for note, configs in found.items():
        who = "; ".join(configs) if len(configs) <= 3 else f"{len(configs)} rows, {configs[0]} ..."
        yield f"{who}: {note}."


def _constants_section() -> Section:
    rows = []
    for key, calibration in CALIBRATIONS.items():
        rows.append(Row(calibration.label, (), "group"))
        for name, item in constants_data(key).items():
            rows.append(
                Row(
                    name,
                    (
                        f"{item['value']:.4g}",
                        f"{item['prior']:.4g}" if item["fitted"] else "assumed",
                        item["rows"] or "",
                    ),
                    "detail",
                )
            )
    return Section(
        "Constants", "modelled", "", ("value", "prior", "fitted to"), tuple(rows), label_header="constant"
    )


def _reading(validation: Validation) -> tuple[str, ...]:
    notes: list[str] = [
        f"Floor: the same configuration moves by ±{VERSION_SPREAD:.0%} between Neuron versions. trn1's "
        "published figures are medians over them; an error below that says nothing for or against the model.",
        "error: with the constants as shipped; + is predicted faster than published. left out: fitted without "
        "that row and its near-twins, the same model by the same software. family out, source out: fitted to the "
        "other families of models, to what other software trained.",
        "Whether a left-out figure lies inside is judged by an interval that other groups of rows have set. The "
        "interval of a row of a file is that of left-out sources, where it does not name its software, and "
        "wider for what it leaves to assumptions, adapters (LoRA) and figures from a specification.",
        "Software that no constant is fitted to, and of which nothing is known, is predicted with the speed that is "
        "usual of such software.",
        "by software: rows of other software, predicted with what the other models that it trained tell of its speed; "
        "a row of a file whose software they name is predicted so.",
        "The form of the model was chosen with two thirds of the rows in sight that its constants are fitted to; those "
        "of other software were collected after that.",
        "AWS's one published plain script (BERT base, Amazon Polarity) took "
        f"{CALIBRATIONS['trn1'].outside_check:.1f} times what its graphs say on trn1, where the host that traces "
        f"them is the slower part ({CALIBRATIONS['trn1'].traced_check:.2f} times with it), and "
        f"{CALIBRATIONS['a100'].outside_check:.2f} times on p4d in fp32: windtunnel report --published.",
    ]
    notes += [
        f"Plain scripts on {_label(kind, kind)}: {scripts_note(errors, 'scripts')}; {errors['inside']:.0%} of them "
        f"inside an {COVERAGE:.0%} interval that other models have set."
        for kind, errors in fitted()["scripts"].items()
    ]
    notes += [
        f"Rehearsed ones there: from counts, {scripts_note(errors, known)}; {errors['inside']:.0%} of them inside."
        for known in ("rehearsed", "others")
        for errors in fitted()[known].values()
    ]
    if validation.built_in:
        notes.append("No row is excluded. Rows of the same configuration with different figures are noted.")
    else:
        notes.append(
            "The constants are those of the built-in calibration; this file changed none. For its rows that "
            "are not in the calibration, error and left out are the same."
        )
    return tuple(notes)


def _label(calibration: str, kind: str) -> str:
    label = CALIBRATIONS[calibration].label
    return label if kind == calibration else f"{label}, many nodes"


def _throughput(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _signed(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:+.1f}"
