"""Comparing jobs in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend
from tests.fakes.wire import IMAGE, create_request

pytestmark = pytest.mark.browser

LINES = {
    "TrainingImage": IMAGE,
    "TrainingInputMode": "File",
    "MetricDefinitions": [{"Name": "number", "Regex": "line ([0-9]+)"}],
}


@pytest.fixture
def three(backend: Backend) -> Backend:
    """Three jobs that have ended, with a metric and a hyperparameter of their own each."""
    for name in ("a", "b", "c"):
        values = {"epochs": "3", "lr": f"0.{ord(name)}"}
        backend.run(name, AlgorithmSpecification=LINES, HyperParameters=values)
    return backend


@LOOKS
def test_the_comparison_keeps_nobody_out(three: Backend, look: Look, options: dict[str, Any]) -> None:
    """axe-core finds no serious fault; nothing but its tables is wider than a phone."""
    page = look("/ui/compare?job=a&job=b&job=c", **options)
    for path in ("/ui/compare?job=a&job=b&job=c", "/ui/compare", "/ui/jobs"):
        page.goto(f"{three.endpoint}{path}")
        assert serious_faults(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("scripted", [True, False])
def test_jobs_are_ticked_in_the_list(three: Backend, look: Look, scripted: bool) -> None:
    """What is ticked stays so while rows follow; the comparison has those, and another can be left out."""
    page = look("/ui/jobs", java_script_enabled=scripted)
    page.get_by_label("Compare a", exact=True).check()
    page.get_by_label("Compare c", exact=True).check()
    if scripted:
        three.client("sagemaker").create_training_job(**create_request("d"))
        expect(page.get_by_label("Compare d", exact=True)).to_be_visible()
    page.get_by_role("button", name="Compare those ticked").click()
    page.wait_for_url("**/ui/compare?job=*")
    assert page.locator("table.side").first.locator("thead bdi").all_inner_texts() == ["a", "c"]
    expect(page.get_by_role("img", name="number over time")).to_be_visible()
    page.get_by_label("Another one").fill("b")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("table.side").first.locator("thead bdi")).to_have_text(["a", "b", "c"])


def test_lines_are_told_apart_without_colour(three: Backend, look: Look) -> None:
    """Each has dashes of its own, in the chart as beside the name."""
    page = look("/ui/compare?job=a&job=b&job=c")
    dashes = "(one) => getComputedStyle(one).strokeDasharray"
    chart = page.locator("svg.chart").first.locator(".series")
    assert len({chart.nth(n).evaluate(dashes) for n in range(3)}) == 3
    keys = page.locator(".legend .series")
    assert [keys.nth(n).evaluate(dashes) for n in range(3)] == [
        chart.nth(n).evaluate(dashes) for n in range(3)
    ]
