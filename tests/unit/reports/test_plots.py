"""Charts hold the report's figures, say what is modelled, and can be read without colour."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from datetime import date
from itertools import combinations, cycle
from typing import Any

import pytest

import windtunnel
from tests.fakes.reports import report_for_counters
from tests.unit.reports.test_job_report import FULL, FakeJob
from windtunnel.priceperf import FullScale, InvalidInput, PriceBook, Workload
from windtunnel.priceperf.money.scaling import ScalingMode, scaling
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.style import HATCHES, MARKERS, THEMES, Theme
from windtunnel.reports.comparison.scaling_chart import scaling_charts
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.job.report import PricePerformance
from windtunnel.reports.modelled.breakdown_chart import billable_parts, step_parts
from windtunnel.reports.modelled.cost_chart import cost_chart
from windtunnel.reports.published import published
from windtunnel.reports.validation.charts import predicted
from windtunnel.reports.validation.report import ValidationReport, validated

pytest.importorskip("matplotlib")

from matplotlib.legend import Legend


@pytest.fixture
def report(counters: Any) -> PricePerformance:
    """Of a rehearsal of BERT base: trn1 and p4d at two price dates."""
    return report_for_counters(counters(), FULL)


def row(config: str, published: str, instance_type: str = "trn1.32xlarge") -> dict[str, str]:
    """A published row of BERT-Large."""
    return {
        "config": config,
        "architecture": "BERT-Large",
        "instance_type": instance_type,
        "microbatch": "16",
        "sequence_length": "128",
        "sequences_per_second": published,
    }


@pytest.fixture(scope="module")
def validation() -> ValidationReport:
    """Of a row of each chip, one of which is far off. The pages of reports have the built-in rows."""
    kinds = (("2000", "trn1.32xlarge"), ("9000", "p4d.24xlarge"), ("30", "p5.48xlarge"))
    return validated([row(f"on {kind}", published, kind) for published, kind in kinds])


def whiskers(axes: Any) -> list[tuple[float, float]]:
    """Low and high end of each horizontal error bar, in order."""
    return [
        (segment[0][0], segment[1][0])
        for container in axes.containers
        if type(container).__name__ == "ErrorbarContainer"
        for collection in container.lines[2]
        for segment in collection.get_segments()
    ]


def test_a_bar_for_each_cost_with_its_interval(report: PricePerformance) -> None:
    """Each estimate, and each other precision of the GPU script, at each price date; price and date below."""
    comparison = report.comparison
    assert comparison is not None
    expected = []
    for _, costs in comparison.costs:
        for item, cost in zip(comparison.estimates, costs, strict=True):
            assert cost is not None
            others = [other for other in comparison.alternatives if other.instance == item.instance]
            expected += [one.cost(cost.price) for one in (item, *others)]
    (axes,) = report.plot().axes
    assert [bar.get_width() for bar in axes.patches] == [cost.usd for cost in expected]
    ends = [(cost.low_usd, cost.high_usd) for cost in expected for _ in ("halo", "whisker")]
    assert whiskers(axes) == [pytest.approx(pair) for pair in ends]
    prices = [text.get_text() for text in axes.texts if "an hour since" in text.get_text()]
    for text, cost in zip(prices, expected, strict=True):
        assert text == f"\\{fmt.price(cost.price.usd_per_hour)} an hour since {cost.price.effective_from}"
    assert "US dollars" in axes.get_xlabel()
    assert "modelled" in axes.get_xlabel()


def test_the_breakdown_adds_up(report: PricePerformance) -> None:
    """The parts of a step are its time, those of the bill its billable seconds before rounding."""
    comparison = report.comparison
    assert comparison is not None
    step, bill = report.plot("breakdown").axes
    for position, item in enumerate(comparison.estimates):
        assert sum(seconds for _, seconds in step_parts(item)) == pytest.approx(item.step.total_s)
        assert all(seconds >= 0 for _, seconds in step_parts(item))
        assert 0 <= item.billable_s - sum(seconds for _, seconds in billable_parts(item)) <= 1
        for axes, scale, total in ((step, 1e-3, item.step.total_s), (bill, 1.0, item.billable_s)):
            bars = [bar for bar in axes.patches if abs(bar.get_y() + bar.get_height() / 2 - position) < 0.1]
            assert sum(bar.get_width() for bar in bars) * scale == pytest.approx(total, abs=scale)
            ends = item.step_interval_s if axes is step else item.billable_interval_s
            low, high = whiskers(axes)[2 * position]  # halo and whisker
            assert (low * scale, high * scale) == pytest.approx(ends)
            assert low * scale <= total <= high * scale
    assert [axes.get_xlabel() for axes in (step, bill)] == ["milliseconds", "seconds"]


def test_an_interval_beyond_the_axis_ends_in_an_arrow(counters: Any) -> None:
    """A job far outside the calibration: its bars stay readable, and figures stand beside them."""
    tiny = counters(samples=8)
    tiny["train"]["flops"] = {"fp32": 8e8 * tiny["train"]["steps"]}
    report = report_for_counters(tiny, FULL)
    assert report.comparison is not None
    item = report.comparison.estimates[0]
    assert item.step_interval_s[1] > 4 * item.step.total_s
    step, _ = report.plot("breakdown").axes
    right = step.get_xlim()[1] * 1e-3
    assert right < item.step_interval_s[1]
    assert item.step.total_s > right / 8
    assert any(line.get_marker() == ">" for line in step.lines)
    warning = "Outside the calibrated range, interval widened: trn1.32xlarge, p4d.24xlarge."
    assert report.plot().get_supxlabel() == warning
    assert warning in report.charts()[1].caption
    words = fmt.modelled_seconds(item.step_interval_s[1], item.step.total_s)
    assert any(f"to {words})" in text.get_text() for text in step.texts)


def test_scaling_has_a_mark_where_the_job_runs(counters: Any) -> None:
    """Throughput and cost of each row with their intervals; a number it cannot run on is named instead."""
    workload = Workload.from_counters(counters())
    names = ("ml.trn1.32xlarge", "ml.p4d.24xlarge")
    modes: tuple[ScalingMode, ...] = ("strong", "weak")
    found = [scaling(workload, name, mode=mode, full_scale=FULL) for mode in modes for name in names]
    charts = scaling_charts(found)
    assert [chart.kind for chart in charts] == ["strong", "weak"]
    for chart, pair in zip(charts, (found[:2], found[2:]), strict=True):
        speed, cost = chart.figure("print").axes
        for axes in (speed, cost):
            assert axes.get_xscale() == axes.get_yscale() == "log"
            assert "modelled" in axes.get_ylabel()
        for index, item in enumerate(pair):
            rows = [row for row in item.rows if row.estimate is not None]
            lines = [next(line for line in axes.lines if line.get_marker() == MARKERS[index])
                     for axes in (speed, cost)]  # fmt: skip
            assert list(lines[0].get_ydata()) == [row.samples_per_s for row in rows]
            assert list(lines[1].get_ydata()) == [row.cost.usd for row in rows if row.cost]
            apart = [x / row.instances for x, row in zip(lines[0].get_xdata(), rows, strict=True)]
            assert all(0.9 < factor < 1.1 for factor in apart)
            container = [one for one in cost.containers if type(one).__name__ == "ErrorbarContainer"][index]
            segments = container.lines[2][0].get_segments()
            assert [(part[0][1], part[1][1]) for part in segments] == [
                pytest.approx((row.cost.low_usd, row.cost.high_usd)) for row in rows if row.cost
            ]
    missing = [row.instances for row in found[0].rows if row.estimate is None]
    assert missing, "256 samples do not divide over 16 instances of 32 cores"
    assert f"cannot run on {', '.join(map(str, missing))} instances" in charts[0].caption


def test_a_described_comparison_has_its_charts() -> None:
    """Costs, parts and scaling; what does not fit the memory is named in the picture itself."""
    model = windtunnel.Workload.transformer("Llama2-70B", microbatch=1, sequence_length=4096, tensor_parallel=8,
                                            global_batch=256)  # fmt: skip
    names = [("ml.trn1.32xlarge", 4), ("trn1.32xlarge", 4)]
    report = windtunnel.compare(model, names, FullScale(1_000_000), scaling="strong", counts=(4, 8))
    assert [chart.kind for chart in report.charts()] == ["cost", "breakdown", "strong"]
    figure = report.plot()
    assert "Does not fit the memory as described: trn1.32xlarge x 4" in figure.get_supxlabel()
    assert any("trn1.32xlarge on EC2 x 4" in text.get_text() for text in figure.axes[0].texts)
    assert "does not fit the memory on 4" in report.charts()[2].caption
    alone = windtunnel.scaling(model, "ml.trn1.32xlarge", (4, 8), "weak", FullScale(1_000_000))
    assert [chart.kind for chart in alone.charts()] == ["weak"]
    report.plot(None, "dark").savefig(io.BytesIO(), format="png", dpi=40)


def test_an_axis_of_millions_has_no_exponent() -> None:
    """Dollars, hours and samples/s stand there as in the table."""
    job = Workload.transformer("BERT-Large", global_batch=2**20)
    report = windtunnel.compare(job, full_scale=FullScale(10**12), scaling="weak", instance_count=64)
    for chart in report.charts():
        figure = chart.figure()
        figure.canvas.draw()
        for axes in figure.axes:
            ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
            assert not any("e+" in tick.get_text() for tick in ticks)


def test_every_validated_row_is_a_point(validation: ValidationReport) -> None:
    """x is published, y predicted without the row; trn1, A100 and H100 have markers of their own."""
    rows = validation.validation.rows
    scatter, errors = validation.plot().axes
    points = {
        (x, y)
        for line in scatter.lines
        if line.get_marker() in MARKERS[:3]
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert points == {(one.published, predicted(one)) for one in rows}
    assert scatter.get_xscale() == scatter.get_yscale() == "log"
    assert "±7 %" in scatter.get_legend_handles_labels()[1]
    assert [label.get_text() for label in errors.get_yticklabels()] == [one.config for one in rows]
    shown = {
        (position, round(x, 9))
        for line in errors.lines
        if line.get_marker() in MARKERS[:3]
        for x, position in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert shown == {
        (position, round(max(-40.0, min(40.0, 100 * (one.left_out or 0))), 9))
        for position, one in enumerate(rows)
    }


def test_every_chart_and_every_theme_draws(report: PricePerformance, validation: ValidationReport) -> None:
    """As PNG, on the theme's own background, and the modelled is called so. The themes take turns."""
    charts = [(drawn, chart) for drawn in (report, validation) for chart in drawn.charts()]
    assert len(charts) >= len(THEMES)
    for (drawn, chart), theme in zip(charts, cycle(THEMES.values())):
        figure = drawn.plot(chart.kind, theme.name)
        figure.set_layout_engine("none")  # half of the time; the next test looks at it
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=40)
        assert buffer.getvalue().startswith(b"\x89PNG")
        assert tuple(round(255 * part) for part in figure.get_facecolor()[:3]) == rgb(theme.background)
        assert "odelled" in chart.words


def test_no_text_is_cut_off(report: PricePerformance, validation: ValidationReport, counters: Any) -> None:
    """Every word lies inside the picture, for short amounts and long ones, near intervals and far ones."""
    large = windtunnel.Workload.transformer("Llama2-70B", microbatch=1, sequence_length=4096, tensor_parallel=8,
                                            pipeline_parallel=8, global_batch=1024)  # fmt: skip
    names = [("ml.trn1.32xlarge", 16), ("ml.p4d.24xlarge", 32), ("trn1n.32xlarge", 16)]
    drawn = [
        report,
        validation,
        windtunnel.compare(large, names, FullScale(90_000_000), scaling="strong"),
        report_for_counters(counters(steps=1)),
    ]
    for chart in [chart for one in drawn for chart in one.charts()]:
        figure = chart.figure()
        figure.draw_without_rendering()
        width, height = figure.bbox.size
        for text in written(figure):
            box = text.get_window_extent()
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
            assert inside, (chart.kind, text.get_text(), box)


def written(figure: Any) -> list[Any]:
    """What stands on a figure, but for the labels of ticks, which matplotlib keeps inside."""
    parts = [figure, *figure.subfigs, *(part for one in figure.subfigs for part in one.subfigs)]
    legends = [legend for part in (*parts, *figure.axes) for legend in part.findobj(Legend)]
    texts = [
        *(text for part in parts for text in part.texts),
        *(t for axes in figure.axes for t in axes.texts),
    ]
    return [*texts, *(text for legend in legends for text in legend.get_texts())]


def rgb(colour: str) -> tuple[int, ...]:
    """The three parts of ``#rrggbb``."""
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.1."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in rgb(colour)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_themes_can_be_read(theme: Theme) -> None:
    """Text 4.5:1 on its background, areas (or, in print, their edges) 3:1; no two colours of a theme alike."""
    assert contrast(theme.ink, theme.background) >= 7
    assert contrast(theme.muted, theme.background) >= 4.5
    outlines = (theme.edge,) if theme.name == "print" else theme.series
    assert min(contrast(colour, theme.background) for colour in outlines) >= 3
    colours = list(theme.roles.values())
    assert len(set(colours)) == len(colours)


def test_series_differ_without_colour() -> None:
    """Each has a hatch and a marker of its own, and all themes have as many series."""
    assert all(one != other for one, other in combinations(HATCHES, 2))
    assert len(set(MARKERS)) == len(MARKERS) == len(HATCHES)
    assert {len(theme.series) for theme in THEMES.values()} == {len(HATCHES)}


def test_what_cannot_be_drawn_is_said(report: PricePerformance, counters: Any) -> None:
    """Unknown names list the known ones; a report without charts says why."""
    with pytest.raises(InvalidInput, match=r"cost, breakdown, not 'pie'"):
        report.plot("pie")
    with pytest.raises(InvalidInput, match=r"light, dark, print, not 'sepia'"):
        report.plot(theme="sepia")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no training step on the device"):
        report_for_job(FakeJob(counters(train=None))).plot()
    with pytest.raises(InvalidInput, match="no charts"):
        published().plot()


def test_a_missing_matplotlib_names_the_extra(
    report: PricePerformance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What to install, not a bare import error."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"windtunnel\[plot\]"):
        report.plot()


def test_names_are_no_formulas(counters: Any) -> None:
    """Dollar signs in a job's name stay dollar signs."""
    figure = report_for_counters(counters(job="a $x_1$ b$"), FULL).plot()
    figure.savefig(io.BytesIO(), format="png", dpi=30)
    assert figure.get_suptitle() == r"Modelled cost of a \$x_1\$ b\$"


def test_a_long_table_is_drawn_by_its_largest_errors() -> None:
    """Beyond 200 rows the panel of errors keeps the worst, and says so; the scatter keeps all."""
    report = validated([row(f"row {n}", f"{2000 + n}") for n in range(230)])
    scatter, errors = report.plot().axes
    assert max(len(line.get_xdata()) for line in scatter.lines) == 230
    labels = [label.get_text() for label in errors.get_yticklabels()]
    checked = sorted(report.validation.rows, key=lambda item: -abs(item.left_out or 0))
    assert set(labels) == {item.config for item in checked[:200]}
    assert "200 largest errors of 230" in report.charts()[1].caption


def test_old_prices_stay_in_the_table(counters: Any) -> None:
    """The three newest dates have bars; the caption counts the others."""
    comparison = report_for_counters(counters(), FULL).comparison
    assert comparison is not None
    ((_, costs), *_) = comparison.costs
    many = replace(comparison, costs=tuple((date(2020 + n, 1, 1), costs) for n in range(5)))
    chart = cost_chart(many, "bert")
    titles = [text.get_text() for text in chart.figure().axes[0].texts if "At prices" in text.get_text()]
    assert titles == [f"At prices of {year}-01-01" for year in (2022, 2023, 2024)]
    assert "In the table only: 2 older dates of prices." in chart.caption
    assert "1 older date of prices." in cost_chart(replace(many, costs=many.costs[1:]), "bert").caption


def test_a_capacity_block_is_not_called_on_demand(counters: Any) -> None:
    """The price below each bar is that of the way to buy the hour that was asked for."""
    report = report_for_counters(counters(), FULL, prices=PriceBook().buying("EC2 Capacity Block"))
    assert "on-demand" not in report.charts()[0].caption


def test_a_validated_file_with_wild_errors_still_draws() -> None:
    """Errors beyond the axis stand at its edge, and the axis says so."""
    report = validated([row("odd $", "12")])
    _, errors = report.plot().axes
    assert "beyond ±40 %" in errors.get_xlabel()
    report.plot().savefig(io.BytesIO(), format="png", dpi=30)
    with pytest.raises(InvalidInput, match="no row has both"):
        validated([row("odd $", "")]).plot()
