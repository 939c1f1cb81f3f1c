"""`windtunnel.plan`: a model's name in, plans with their time and cost out."""

from __future__ import annotations

import json
import re
from datetime import date

import pytest

import windtunnel
from tests.fakes.reports import screen_of
from windtunnel.priceperf import CATALOG, InvalidInput, PriceBook
from windtunnel.reports.modelled.fitted_notes import LINES
from windtunnel.reports.plan import labels
from windtunnel.reports.plan.sections import shortlist

SMALL = {"instances": ("trn1", "p4d"), "nodes": (1, 2, 4)}


def small(**more: object) -> windtunnel.PlanReport:
    """A quick plan for Llama 2 7B."""
    return windtunnel.plan("Llama2-7B", **{**SMALL, **more})  # type: ignore[arg-type]


def test_the_best_come_first_and_what_was_assumed_is_said() -> None:
    """Cheapest and fastest with intervals in the headline; sizes that nobody gave are named."""
    report = small()
    text = report.to_text(full=True)
    cheapest, fastest = report.plans.cheapest[0], report.plans.fastest[0]
    assert cheapest is not fastest
    lines = report.document().headline
    for line, plan in zip(lines, (cheapest, fastest), strict=False):
        training = plan.training
        assert f"{plan.estimate.instance_count} x {plan.estimate.name.removeprefix('ml.')}" in line
        assert f"tp{training.tensor_parallel} pp{training.pipeline_parallel}" in line
        assert "(" in line
    assert "assumed: 1 billion tokens; sequences of 4,096 tokens; 1,024 sequences a step" in lines[-1]
    for title in ("CHEAPEST FIRST", "FASTEST FIRST", "PARETO FRONT", "WHAT WAS SEARCHED"):
        assert title in text
    assert "SageMaker on-demand us-east-1 2022-10-10, published" in text
    assert "assumed" not in small(tokens=1e9, sequence_length=4096, global_batch=1024).document().headline[-1]


@pytest.mark.parametrize(
    "instances",
    [
        ["trn1"],
        ["trn1", "p4d"],
        ["trn1", "p5", "p5en"],
        ["trn1", "trn1n", "trn2", "p4d", "p5", "p5en", "g5", "g6e"],
    ],
)
@pytest.mark.parametrize("limits", [{}, {"deadline_hours": 1, "budget_usd": 10}, {"budget_usd": 2000}])
def test_the_first_screen_has_25_lines(instances: list[str], limits: dict[str, float]) -> None:
    """With a table and the prices; all the rest is said to be elsewhere, and is."""
    report = windtunnel.plan("Llama2-7B", instances, nodes=(1, 8), **limits)  # type: ignore[arg-type]
    text, full = report.to_text(), report.to_text(full=True)
    assert len(text.splitlines()) <= LINES
    assert "Prices: SageMaker on-demand us-east-1" in text and "--full" in text.splitlines()[-1]
    assert "WHAT WAS SEARCHED" in full and " ..." not in full and " shown" not in full


def test_several_others_have_a_table_of_the_best_on_each() -> None:
    """One row each, where a sentence of two lines each would be many."""
    report = small(instances=("trn1", "p4d", "p5", "p5en", "g5"), nodes=(1,))
    table = (report.document().sections[0].whole or report.document().sections[0]).rows
    assert [row.label.split()[2] for row in table] == [
        labels.short_cluster(plan).split()[2]
        for plan in report.plans.plans
        if plan is report.plans.best_on(plan.estimate.name)
    ]
    assert len(table) == 5 and "Best on ml." not in "\n".join(report.document().headline)


def test_tokens_samples_and_steps_are_one_size() -> None:
    """The same job told in three ways has the same plans."""
    sizes = ({"tokens": 4096 * 1024 * 50}, {"samples": 1024 * 50}, {"steps": 50})
    first, *others = (small(**size).to_dict()["plans"] for size in sizes)
    assert all(other == first for other in others)
    for plan in first:  # hours begin with the request, and what is paid for with the instance
        price = plan["cost"]["price"]["usd_per_hour"] * plan["instances"]
        assert plan["billable_hours"] * price == pytest.approx(plan["cost"]["usd"], rel=1e-3)
        assert plan["hours"] > plan["billable_hours"]
    with pytest.raises(InvalidInput, match="one size of the job, not tokens and steps"):
        small(tokens=1e9, steps=4)
    with pytest.raises(InvalidInput, match="tokens must be 1 or more"):
        small(tokens=0)


def test_one_number_of_instances_is_a_number() -> None:
    """And what is none is refused in words."""
    assert {plan.estimate.instance_count for plan in small(nodes=2).plans.plans} == {2}
    for wrong in (2.5, ["2"]):
        with pytest.raises(InvalidInput, match="whole number of instances"):
            small(nodes=wrong)


def test_a_job_of_less_than_a_step_is_said_so() -> None:
    """It is planned as the step that it begins."""
    assert "2.05 million tokens in one step, not full, of 1,024 sequences" in small(samples=500).to_text()
    assert "4.19 million tokens in steps of 1,024 sequences" in small(samples=1024).to_text()


def test_a_step_of_one_sequence_is_said_so() -> None:
    """As in a job that is planned for its smallest batch."""
    assert "in steps of 1 sequence of 4,096" in small(global_batch=1, tokens=1e6).document().subtitle
    undivided = small(global_batch=1, tokens=1e6, microbatch=1, tensor_parallel=2, pipeline_parallel=2)
    assert "of 1 sequence a step divides 1 to 4 x ml.p4d.24xlarge" in screen_of(undivided)


def test_one_other_cluster_is_one() -> None:
    """Where two are compared, and where only one of a type can train."""
    two = "\n".join(small(nodes=(1,)).document().headline)
    assert re.search(r"TOO CLOSE TO CALL: the other cluster may cost less, with \d\d % probability\.", two)
    alone = windtunnel.plan("Llama2-70B", ["ml.trn1.2xlarge"], nodes=(1,))
    assert "Allow a larger instance, or a shorter sequence." in screen_of(alone)


def test_how_likely_other_clusters_cost_less_is_said() -> None:
    """How many are too close, and the likeliest of them with its probability."""
    report = small()
    (line,) = (line for line in report.document().headline if "TOO CLOSE" in line)
    found = re.search(r"each with 10 % probability or more; the likeliest, (.+), with (\d+) %\.", line)
    assert found and found[1] in {labels.cluster(plan) for plan in report.plans.cheapest[1:]}
    assert 10 <= int(found[2]) <= 50


def test_a_size_in_words_has_no_exponent() -> None:
    """Neither where it rounds up to the next unit, nor beyond the largest."""
    words = [labels.tokens(number) for number in (15e9, 999_999_999, 1.234e9, 1e15, 512)]
    assert words == [
        *("15 billion tokens", "1 billion tokens", "1.23 billion tokens"),
        *("1,000 trillion tokens", "512 tokens"),
    ]


def test_limits_that_nothing_keeps_are_told_with_how_far() -> None:
    """By how much the fastest misses the deadline, the cheapest the budget."""
    lines = "\n".join(small(deadline_hours=1, budget_usd=10).document().headline)
    assert "NOTHING KEEPS 1 h and $10." in lines
    assert "times the deadline" in lines
    assert "times the budget" in lines
    for hours, told in ((1.5, "1.5 h"), (1 / 60, "1 min")):
        assert labels.limits(hours, 0.5) == f"{told} and $0.50"
    kept = small(deadline_hours=48, budget_usd=2_000).to_text(full=True)
    assert "keep 48 h and $2,000" in kept
    assert "The most that 48 h and $2,000 train" in kept


def test_each_instance_has_its_best_plan_in_the_answer() -> None:
    """Also one that is neither the cheapest nor the fastest, or that keeps no limit: by how much."""
    dear = PriceBook().stating({"ml.p5.48xlarge": 30.0, "ml.trn1.32xlarge": 500.0}, date(2026, 1, 1))
    for limits in ({}, {"budget_usd": 1500}, {"budget_usd": 1, "deadline_hours": 100}):
        report = small(instances=("trn1", "p5"), prices=dear, nodes=(1,), **limits)
        best = next(plan for plan in report.plans.plans if plan.estimate.name == "ml.trn1.32xlarge")
        lines = [line for line in report.document().headline if "trn1.32xlarge" in line]
        (line,) = (line for line in lines if line.startswith("Best on ml.trn1.32xlarge: "))
        assert labels.sentence(best) in line
        assert ("times the budget" in line) == bool(limits)
    assert "Best on" not in "\n".join(small(instances=["trn1"]).document().headline)


def test_limits_of_a_job_that_fits_nowhere_change_nothing() -> None:
    """There is no plan to hold against them."""
    for limits in ({}, {"deadline_hours": 48}, {"budget_usd": 1000}):
        report = windtunnel.plan("CodeLlama-34B", ["ml.trn1.2xlarge"], tokens=1e9, nodes=(1,), **limits)  # type: ignore[arg-type]
        assert report.document().headline[0].startswith("NO PLAN: ") and "NO PLAN" in report.to_text()


def test_limits_are_repeated_with_their_units() -> None:
    """So that 7, which means hours, is not taken for days."""
    for limits, told in (
        ({"deadline_hours": 7}, "7 h"),
        ({"deadline_hours": 96, "budget_usd": 900}, "96 h and $900"),
    ):
        report = small(**limits)
        assert report.plans.within
        assert report.document().headline[0].startswith(f"Cheapest within {told}: ")
    assert small().document().headline[0].startswith("Cheapest: ")


def test_a_plan_alone_is_one_short_line() -> None:
    """As text, and where a notebook shows it: instance, number, split, hours, cost."""
    plan = small().plans.cheapest[0]
    assert re.fullmatch(r"1 x ml\.trn1\.32xlarge, tp8 pp1 dp4: [\d.]+ h, \$\d+\.\d\d", str(plan))
    assert repr(plan) == f"<Plan: {plan}>"
    unpriced = small(prices=PriceBook([PriceBook().price("p4d.24xlarge")])).plans.fastest[0]
    assert str(unpriced).endswith(" h, no price")


def test_a_plan_near_its_limit_says_that_it_may_miss() -> None:
    """The middle keeps the deadline, the interval does not."""
    free = small().plans.fastest[0]
    assert "MAY MISS THE DEADLINE at" in small(deadline_hours=free.hours).to_text()
    assert free.cost and "MAY MISS THE BUDGET at" in small(budget_usd=free.cost.usd).to_text()
    assert "MAY MISS THE" not in small(deadline_hours=1000).to_text()


def test_what_is_outside_the_calibrated_range_or_not_modelled_is_said() -> None:
    """With the quantity, or the reason."""
    plain = [name for name, entry in CATALOG.items() if not entry.calibration]
    report = windtunnel.plan("GPT3-46B", ["trn1", *plain], nodes=(64,), sequence_length=128)
    text = report.to_text(full=True)
    assert "OUTSIDE THE CALIBRATED RANGE" in text
    for name in plain:
        assert f"{name} is not calibrated" in text.replace("\n   ", " ")


def test_one_cluster_shows_its_splits() -> None:
    """Not one row of the one cluster."""
    report = windtunnel.plan("Llama2-70B", ["trn1"], nodes=[32])
    first = report.document().sections[0]
    assert first.title == "Best first"
    assert len({row.cells[0] for row in first.rows}) == 5
    assert "Cheapest and fastest" in report.document().headline[0]


def test_a_plan_that_may_not_fit_is_named() -> None:
    """Each plan has the memory that it needs; from 90 % on it is named, because the modelled need is the least."""
    report = windtunnel.plan("Llama-3.1-8B", ["trn1", "p4d", "p5"], samples=100_000)
    first = report.document().sections[0]
    needed = {row.label: int(row.cells[3].removesuffix(" %")) for row in first.rows}
    tight = {name for name, percent in needed.items() if percent >= 90}
    assert set() < tight < set(needed)
    note = next(note for note in first.notes if note.startswith("TIGHT MEMORY"))
    assert {name for name in needed if name.replace("xl", "xlarge") in note} == tight


def test_of_one_cluster_the_splits_that_may_not_fit_are_named() -> None:
    """Another one of the same instances fits well."""
    report = windtunnel.plan("Llama-3.1-8B", ["p4d"], nodes=[1], samples=100_000)
    first = report.document().sections[0]
    (note,) = [note for note in first.notes if note.startswith("TIGHT MEMORY")]
    for row in first.rows:
        tensor, stages, copies = row.cells[0].split("/")
        named = f"tp{tensor} pp{stages} dp{copies}" in note
        assert named == (int(row.cells[3].removesuffix(" %")) >= 90)


def test_the_only_other_instance_of_the_headline_is_named_if_it_may_not_fit() -> None:
    report = windtunnel.plan(
        "Llama-3.1-8B", ["ml.p4de.24xlarge", "ml.p4d.24xlarge"], global_batch=1, deadline_hours=1 / 12,
        sequence_length=32768,
    )  # fmt: skip
    assert "Best on ml.p4d.24xlarge" in report.to_text()
    assert "TIGHT MEMORY, try it before you rely on it: 1 x p4d.24xlarge" in report.to_text()


def test_as_data_every_plan_is_there() -> None:
    """With its split, interval, price; lists are numbers of plans; nothing is lost in JSON."""
    report = small(deadline_hours=48, budget_usd=2_000)
    data = json.loads(report.to_json())
    assert data["schema"] == "windtunnel.plan/1"
    assert len(data["plans"]) == len(report.plans.plans)
    best = data["plans"][data["cheapest"][0]]
    assert best["hours_interval"][0] < best["hours"] < best["hours_interval"][1]
    assert best["cost"]["price"]["region"]
    assert best["within_limits"]
    assert best["memory_part"] <= 1
    assert {place["name"] for place in data["places"]} == {"ml.trn1.32xlarge", "ml.p4d.24xlarge"}
    assert data["job"]["train_samples"] * 4096 >= 1e9


def test_prices_are_those_of_the_day_asked_for() -> None:
    """p4d was dearer before June 2025."""
    dear, cheap = (
        windtunnel.plan("Llama2-7B", ["p4d.24xlarge"], nodes=[1], on=day).plans.cheapest[0].cost
        for day in (date(2024, 1, 1), date(2025, 7, 1))
    )
    assert dear is not None
    assert cheap is not None
    assert dear.usd > cheap.usd
    assert dear.price.offering == "EC2 on-demand"


def test_the_front_is_drawn() -> None:
    """A chart with a mark for each plan, its words naming the front; none without prices."""
    report = small(deadline_hours=48, budget_usd=2_000)
    (chart,) = report.charts()
    for plan in report.plans.pareto:
        assert f"{plan.estimate.instance_count} x {plan.estimate.name.removeprefix('ml.')}" in chart.words
    axes = report.plot("pareto").axes[0]
    named = axes.get_legend_handles_labels()[1]
    assert {"trn1.32xlarge", "p4d.24xlarge", "Pareto front"} <= set(named)
    assert "<svg" in report.to_html()


def test_what_has_no_price_is_said_and_keeps_no_budget() -> None:
    """It is among the fastest, and in no cost; alone it has no chart."""
    book = PriceBook([price for price in PriceBook().prices if "trn1" in price.instance_type])
    free, limited = small(prices=book), small(prices=book, budget_usd=1e6)
    for report in (free, limited):
        (line,) = (line for line in report.document().headline if "NO PRICE" in line)
        assert "ml.p4d.24xlarge (at best " in line
        assert line.endswith("windtunnel prices refresh. Names without ml. have EC2's.")
        assert (", so in no budget:" in line) == (report is limited)
    assert {plan.estimate.name for plan in free.plans.within} == {"ml.p4d.24xlarge", "ml.trn1.32xlarge"}
    assert {plan.estimate.name for plan in limited.plans.within} == {"ml.trn1.32xlarge"}
    alone = small(instances=["p4d"], prices=book, budget_usd=5)
    assert alone.charts() == ()
    assert "no price in the book" in alone.to_text(full=True)
    assert alone.document().headline[0] == "NOTHING HAS A PRICE to hold against $5."
    assert "keep $5" not in alone.to_text(full=True) and "FASTEST   without a price" in alone.to_text()


def test_too_close_to_call_is_the_same_here_and_in_a_comparison() -> None:
    """Below 90 % for one of two; their intervals need not hold the cheaper one's middle."""
    book = PriceBook().stating({"ml.p5.48xlarge": 55.04, "ml.trn2.48xlarge": 40.0}, date(2026, 1, 1))
    names = ["ml.trn2.48xlarge", "ml.p5.48xlarge"]
    size = {"samples": 200_000, "sequence_length": 4096, "global_batch": 128}
    report = windtunnel.plan("Llama-3.1-8B", names, nodes=(1,), prices=book, **size)  # type: ignore[arg-type]
    best, other = (plan.cost for plan in report.plans.cheapest if plan in shortlist(report.plans.cheapest))
    assert best is not None and other is not None and other.low_usd > best.usd
    assert "TOO CLOSE TO CALL: the other cluster may cost less" in "\n".join(report.document().headline)
    dear = PriceBook().stating({"ml.p5.48xlarge": 150.0, "ml.trn2.48xlarge": 40.0}, date(2026, 1, 1))
    clear = windtunnel.plan("Llama-3.1-8B", names, nodes=(1,), prices=dear, **size)  # type: ignore[arg-type]
    assert "TOO CLOSE" not in "\n".join(clear.document().headline)


def test_a_shortfall_has_the_lines_that_are_free() -> None:
    """By how much the cheapest misses the limits is its last word, and was cut on a screen of 17 lines."""
    text = windtunnel.plan("Llama-3.1-405B", ["trn1", "p4d"], deadline_hours=24, budget_usd=1_000).to_text()
    assert len(text.splitlines()) <= LINES
    assert "over the deadline and 19 times the budget." in " ".join(text.replace("│", "").split())


def test_the_warning_of_the_range_names_the_plans() -> None:
    """An instance alone may be that of any plan, also of those inside the range."""
    report = windtunnel.plan("Llama-3.1-8B", "trn1", tokens=15e9, nodes=(8, 64))
    (note,) = [
        one for one in report.document().sections[0].notes if one.startswith("OUTSIDE THE CALIBRATED RANGE")
    ]
    assert ": 64 x trn1.32xlarge (" in note and " 8 x" not in note


@pytest.mark.parametrize(("nodes", "outside"), [(8, False), (64, True)])
def test_what_is_named_outside_the_range_is_said_to_be(nodes: int, outside: bool) -> None:
    """In the sentence that names it: a comparison names no winner there."""
    report = windtunnel.plan("Llama-3.1-8B", "trn1", tokens=15e9, nodes=(nodes,))
    assert bool(report.plans.fastest[0].estimate.range_check.outside) == outside
    (best,) = [line for line in report.document().headline if "fastest" in line]
    assert best.endswith("; outside the calibrated range.") == outside


def test_the_first_screen_warns_of_the_plans_that_it_shows() -> None:
    """Of the others, the full report does."""
    report = windtunnel.plan("BERT-Large", ["g5", "trn1.2xlarge"], tokens=1e9, budget_usd=500)
    first, searched = report.document().sections[0], report.document().sections[-1]
    shown = {labels.cluster(plan) for plan in (report.plans.cheapest[0], report.plans.fastest[0])}
    shown |= {row.label.replace("xl", "xlarge") for row in (first.whole or first).rows}
    for section, is_shown in ((first.whole or first, True), (searched, False)):
        for note in section.notes:
            if note.startswith("MAY MISS THE"):
                named = set(note.rpartition(": ")[2].removesuffix(".").split(", "))
                assert bool(named & shown) == is_shown
    assert "MAY MISS THE" in report.to_text(full=True) and "MAY MISS THE" not in str(report)
