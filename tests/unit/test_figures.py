"""The figures that pages repeat are those that the commands print. A new published row changes them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import mean, median
from typing import Any

from tests.fakes.reports import report_for_counters
from tests.unit.conftest import Invoke
from windtunnel.priceperf import FullScale, instance_type
from windtunnel.priceperf.calibration import measured_scripts, torch_compile
from windtunnel.priceperf.calibration.accuracy import validate_built_in
from windtunnel.priceperf.calibration.calibrations import CALIBRATIONS
from windtunnel.priceperf.calibration.described_range import widenings
from windtunnel.priceperf.calibration.published_rows import measured_others
from windtunnel.priceperf.published.bert_jobs_predicted import JOB, predictions
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS
from windtunnel.priceperf.workload import rehearsed_scripts

KINDS = ("trn1", "a100", "a100_cluster", "h100")


def text(page: str) -> str:
    """Of a page, by its path."""
    return (Path(__file__).resolve().parents[2] / page).read_text()


def validated(invoke: Invoke) -> tuple[Any, Any]:
    """Summary and constants that `windtunnel validate` prints."""
    data = json.loads(invoke("validate", "--json").out)
    return data["summary"], data["constants"]


def three(errors: Any) -> str:
    """Mean, median and largest."""
    return f"{errors['mean_percent']:.1f} / {errors['median_percent']:.1f} / {errors['max_percent']:.1f} %"


def test_what_the_intervals_promise_is_said_of_groups() -> None:
    """Each group weighs the same, however many rows it has."""
    validation, said = validate_built_in(), []
    for level in range(3):
        covered: dict[object, list[bool]] = {}
        part = ("left_out", "family_left_out", "source_left_out")[level]
        for row in (*validation.rows, *validation.elsewhere):
            if getattr(row, part) is None:
                continue
            covered.setdefault((row.kind, row.groups[level]), []).append(row.covered[level])
        said += [f"{100 * mean(mean(inside) for inside in covered.values()):.0f} %", len(covered)]
    words = "{} lie inside on average ({} groups of near-twins), {} ({} families) and {} ({} sources)"
    assert words.format(*said) in text("docs/explanation/figures.md")


def test_the_first_page_has_these(invoke: Invoke) -> None:
    """Errors of the rows, and each line of the excerpt of `windtunnel report --published`."""
    page, (summary, _) = text("README.md"), validated(invoke)
    alone, source = (
        [f"{summary[kind][part]['mean_percent']:.1f}" for kind in KINDS]
        for part in ("leave_one_out", "leave_one_source_out")
    )
    other = [summary[kind]["other_software"] for kind in KINDS]
    errors = [f"{item['mean_percent']:.1f}" for item in other]
    inside = sum(item["groups"] * item["group_coverage_percent"] for item in other)
    inside /= sum(item["groups"] for item in other)
    others = sum(item["rows"] for item in other)
    for words, rows, row_errors in (
        ("published throughputs, each predicted without itself and similar rows", summary["rows"], alone),
        ("the same, each predicted without all rows of its source", summary["rows"], source),
        ("**other software, from plain scripts to NVIDIA's own: expect this for your job**", others, errors),
    ):
        assert f"| {words} | {rows} | {' % | '.join(row_errors)} % |" in page
    assert f"{inside:.0f} % of a software's rows lie inside their 80 % interval." in page
    (excerpt,) = re.findall(r"```\n( THIS MODEL.*?)\n```", page, flags=re.DOTALL)
    printed = [line.rstrip() for line in invoke("report", "--published").out.splitlines()]
    assert [line for line in excerpt.splitlines() if line not in printed] == []
    (table,) = re.findall(r"```\n( SageMaker prices +batch \(each\).*?)\n```", page, flags=re.DOTALL)
    assert table in str(report_for_counters(COUNTERS, JOB))


def test_the_page_on_figures_has_these(invoke: Invoke) -> None:
    """The table of errors is what the command prints."""
    page, (summary, constants) = text("docs/explanation/figures.md"), validated(invoke)
    assert f"each of the {summary['rows']} published throughputs" in page
    fitted = [sum(item["fitted"] for item in constants[name].values()) for name in CALIBRATIONS]
    rows = [summary[kind]["in_sample"]["rows"] for kind in KINDS]
    assert f"| trn1 ({rows[0]} rows, {fitted[0]} fitted constants) |" in page
    assert (
        f"| one node of A100s ({rows[1]} rows, {fitted[1]} fitted constants for both) | many ({rows[2]} rows) |"
        in page
    )
    assert f"| H100 ({rows[3]} rows, {fitted[2]} fitted constants) |" in page
    for label, part in (
        ("in sample", "in_sample"),
        ("each row predicted without it and its near-twins", "leave_one_out"),
        ("each family of models predicted from the other families", "leave_one_family_out"),
        ("each source predicted from the other sources", "leave_one_source_out"),
        (
            "rows of other software, which set no constant ({}, {}, {} and {} rows)".format(
                *(summary[kind]["other_software"]["rows"] for kind in KINDS)
            ),
            "other_software",
        ),
    ):
        cells = [three(summary[kind][part]) for kind in KINDS]
        assert f"| {label} | {' | '.join(cells)} |" in page
    known = [summary[kind].get("by_software") for kind in KINDS]
    counts = "{}, {}, {} and {}".format(*(item["rows"] if item else 0 for item in known))
    cells = [three(item) if item else "-" for item in known]
    label = f"those whose software has rows of other models, with its speed on these ({counts} rows)"
    assert f"| {label} | {' | '.join(cells)} |" in page
    for label, part in (
        ("left-out rows inside their 80 % interval", "interval_coverage_percent"),
        (
            "left-out families inside it, new rows of fitted software too",
            "interval_coverage_families_percent",
        ),
        ("left-out sources inside it, other software too", "interval_coverage_sources_percent"),
    ):
        assert f"| {label} | {' | '.join(f'{summary[kind][part]:.0f} %' for kind in KINDS)} |" in page
    shares = [f"{summary[kind]['leave_one_source_out']['group_coverage_percent']:.0f} %" for kind in KINDS]
    other = [f"{summary[kind]['other_software']['group_coverage_percent']:.0f} %" for kind in KINDS]
    assert f"| of other software alone, each weighing the same | {' | '.join(other)} |" in page
    assert f"| the same, each source weighing the same | {' | '.join(shares)} |" in page
    levels = ("leave_one_out", "leave_one_family_out", "leave_one_source_out")
    groups = [" / ".join(str(summary[kind][level]["groups"]) for level in levels) for kind in KINDS]
    assert f"| groups of near-twins / families / sources | {' | '.join(groups)} |" in page
    for width in widenings().values():
        assert f"| {math.expm1(width) * 100:.0f} % |" in page
    counted = [mean(map(abs, CALIBRATIONS[name].counts_errors)) * 100 for name in ("trn1", "a100")]
    assert "are off by {:.0f} % (trn1) and {:.0f} % (A100) on average".format(*counted) in page
    found = predictions()
    trn1, p4d = found.trn1, found.p4d
    for row in (
        f"| iterations/s | {trn1.iterations_per_second:.2f} | 6.64 | {p4d.iterations_per_second:.2f} | 5.44 |",
        f"| billable seconds | {trn1.estimate.billable_s:,} | 6,033 | {p4d.estimate.billable_s:,} | 6,553 |",
        f"| cost, trn1 / p4d | {found.cost_ratio:.3f} | {found.published_cost_ratio:.3f} | | |",
    ):
        assert row in page


def test_the_page_on_figures_has_the_errors_of_inference(invoke: Invoke) -> None:
    """Rows, groups, errors and coverage as `windtunnel inference --validate` prints them."""
    page = text("docs/explanation/figures.md")
    data = json.loads(invoke("inference", "--validate", "--json").out)
    throughput, latency = data["summary"]["throughput"], data["summary"]["latency_p50"]
    assert f"fitted to {data['rows']} published figures" in page

    def means(level: str) -> str:
        return f"{throughput[level]['mean_percent']:.1f} % | {latency[level]['mean_percent']:.1f} %"

    alone, family, unseen = (throughput[level] for level in ("alone", "family", "unseen"))
    assert (
        f"| each of {alone['groups']} models left out (twins by another name stay) | {means('alone')} | "
        f"{alone['coverage_percent']:.0f} % |"
    ) in page
    assert f"| each of {family['groups']} sizes left out | {means('family')} | all but one |" in page
    assert round(family["rows"] * (1 - family["coverage_percent"] / 100)) == 1
    assert (
        f"| {unseen['rows']} figures of {unseen['groups']} models, set aside before the first fit | "
        f"{means('unseen')} | {unseen['coverage_percent']:.0f} % |"
    ) in page
    assert f"half are off by {unseen['median_percent']:.1f} % or less" in page


def test_the_pages_have_the_errors_of_plain_scripts(invoke: Invoke) -> None:
    """What the project measured itself, each model left out."""
    plain = validated(invoke)[0]["scripts"]["h100"]
    page = text("docs/explanation/figures.md")
    assert (
        f"the {plain['rows']} runs are off by {plain['mean_percent']:.1f} % on average (median "
        f"{plain['median_percent']:.1f} %, at most {plain['max_percent']:.0f} %) and "
        f"{plain['interval_coverage_percent']:.0f} % of them lie inside"
    ) in page
    assert f"{plain['models']} models with random weights" in page


def test_the_page_has_what_torch_compile_gains() -> None:
    """From the pairs of runs with it and without it, each model left out."""
    pairs = torch_compile.pairs()
    said = measured_scripts.summary(pairs, torch_compile.SHRINKAGE)
    times = math.exp(said["log_speed"])
    ratios = [math.exp(pair.difference) for pair in pairs]
    page = text("docs/explanation/figures.md")
    assert f"lists {len(pairs)} pairs of runs" in page
    assert (
        f"In the mean of their {said['models']} models the compiled run is {times:.2f} times as fast "
        f"({min(ratios):.2f} to {max(ratios):.2f} times in single runs), and {100 * said['inside']:.0f} % of the pairs "
        "lie in the interval of the other models."
    ) in page
    assert f"{times:.2f} times as fast in {len(pairs)} pairs" in text("CHANGELOG.md")


def test_the_pages_have_the_errors_of_rehearsed_scripts() -> None:
    """Of transformers and of others, each model left out."""
    constants = {key: calibration.constants for key, calibration in CALIBRATIONS.items()}
    both = [
        measured_scripts.judged(rehearsed_scripts.compared(constants, transformers=are)["h100"])
        for are in (True, False)
    ]
    counted = [len({each.script.model for each in group}) for group in both]
    off = [f"{100 * mean(abs(each.error) for each in group):.0f} %" for group in both]
    inside = [f"{100 * mean(each.inside for each in group):.0f} %" for group in both]
    page = text("docs/explanation/figures.md")
    assert (
        f"{inside[0]} of the runs of {counted[0]} transformers lie inside (off by {off[0]}), and {inside[1]} of those "
        f"of {counted[1]} other models ({off[1]})"
    ) in page
    assert f"{counted[0]} transformers are off by {off[0]}, and {counted[1]} other models (" in text(
        "README.md"
    )
    assert f"recurrence) by {off[1]}." in text("README.md")
    assert f"transformers off by {off[0]}, others by {off[1]}" in text("docs/reference/benchmarks.md")
    assert f"in {len(measured_others())} runs on two machines" in page
    size = FullScale(train_samples=1_000_000)
    published = {
        run.name: (run.instance.is_neuron, run.step_s / run.of(job).modelled(run.run, size).step.total_s)
        for model, job in rehearsed_scripts.rehearsals().items()
        for run in rehearsed_scripts.published(model)
    }
    on_gpus = [times for is_neuron, times in published.values() if not is_neuron]
    on_cores = [abs(times - 1) for is_neuron, times in published.values() if is_neuron]
    slower = 1 / measured_scripts.speed_of_script(instance_type("ml.p4d.24xlarge"), 1, "others")
    apart = [abs(each - 1) for each in on_gpus]
    without = mean(abs(slower * each - 1) for each in on_gpus)
    assert (
        f"With the H100's {slower:.2f} they are off by {100 * mean(apart):.0f} % on average and "
        f"{100 * max(apart):.0f} % at most, all inside their intervals; without it by {100 * without:.0f} %."
    ) in page
    assert (
        f"Their throughputs are off by {100 * mean(on_cores):.0f} % on average "
        f"(median {100 * median(on_cores):.0f} %), all inside"
    ) in page
