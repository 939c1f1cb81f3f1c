"""The pages of the answer, a comparison, a trace, TensorBoard and clusters, in a real browser.

In one file, as each file starts a browser of its own.
"""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, PHONE, Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend
from tests.contract.test_page_answer import PAGE as ANSWER
from tests.contract.test_page_tensorboard import write_events
from tests.contract.test_page_trace import PAGE as TRACE
from tests.contract.test_page_trace import count
from tests.fakes.cluster import cluster_at, submit
from tests.fakes.counters import counters
from tests.fakes.tensorboard_package import install
from tests.fakes.wire import IMAGE, create_request
from windtunnel_local.cluster import node_log

__all__ = ["counters"]

pytestmark = pytest.mark.browser

LINES = {
    "TrainingImage": IMAGE,
    "TrainingInputMode": "File",
    "MetricDefinitions": [{"Name": "number", "Regex": "line ([0-9]+)"}],
}
NODES = ("compute1-st-queue1-i1-1", "compute1-dy-queue1-i1-1")

# --- the answer ---------------------------------------------------------------------------


@pytest.fixture
def rehearsed(backend: Backend, counters: Any) -> Backend:
    """A server with one job that has left counters."""
    backend.run("bert")
    body = json.dumps(counters(job="bert")).encode()
    backend.client("s3").put_object(Bucket="out", Key="models/bert/windtunnel/counters.json", Body=body)
    return backend


def test_the_answer_keeps_nobody_out(rehearsed: Backend, look: Look) -> None:
    """axe-core finds no serious fault; nothing is wider than a phone."""
    for options in LOOKS:
        page = look(f"{ANSWER}?samples=3600000", **options)
        assert serious_faults(page) == [], options
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert serious_faults(page) == [], options
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), options


def test_figures_follow_the_controls_and_the_link_keeps_them(rehearsed: Backend, look: Look) -> None:
    """Without a button pressed; the same address shows the same again."""
    page = look(ANSWER)
    first = page.locator(".answer tbody")
    expect(first).not_to_contain_text("p5.48xlarge")
    page.get_by_role("checkbox", name="p5.48xlarge").check()
    expect(first).to_contain_text("p5.48xlarge")
    samples = page.get_by_label("Samples of an epoch")
    samples.press_sequentially("36e6")
    expect(page.locator(".answer")).to_contain_text("36,000,000 samples")
    expect(samples).to_be_focused()
    page.get_by_label("Bought as").select_option(label="EC2 Capacity Block")
    expect(page.locator(".answer")).to_contain_text("Capacity Block")
    figures = first.inner_text()
    page.reload()
    assert page.locator(".answer tbody").inner_text() == figures
    assert page.get_by_label("Samples of an epoch").input_value() == "36e6"
    assert page.get_by_role("checkbox", name="p5.48xlarge").is_checked()
    page.get_by_role("link", name="As the job has it").click()
    expect(page.locator(".answer tbody")).not_to_contain_text("p5.48xlarge")


def test_what_is_wrong_is_said_beside_its_field(rehearsed: Backend, look: Look) -> None:
    """While it is typed, and no longer when it is mended."""
    page = look(ANSWER)
    nodes = page.get_by_label("Nodes of each")
    nodes.fill("two")
    expect(page.locator("#error-nodes")).to_have_text("'two' is no whole number from 1.")
    nodes.fill("2")
    expect(page.locator("#error-nodes")).to_be_hidden()
    expect(page.locator(".answer tbody")).to_contain_text("x 2")
    # A phone folds the fields, but none that is wrong: an address may have it.
    page = look(f"{ANSWER}?nodes=two", viewport=PHONE)
    expect(page.locator("#error-nodes")).to_be_visible()
    page.get_by_role("link", name="As the job has it").click()
    expect(page.get_by_label("Nodes of each")).to_be_hidden()


def test_without_javascript_a_button_shows_the_choice(rehearsed: Backend, look: Look) -> None:
    """The form is one of GET."""
    page = look(ANSWER, java_script_enabled=False)
    page.get_by_label("Samples of an epoch").fill("36e6")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".answer")).to_contain_text("36,000,000 samples")


# --- a comparison -------------------------------------------------------------------------


@pytest.fixture
def three(backend: Backend) -> Backend:
    """Three jobs that have ended, with a metric and a hyperparameter of their own each."""
    for name in ("a", "b", "c"):
        values = {"epochs": "3", "lr": f"0.{ord(name)}"}
        backend.run(name, AlgorithmSpecification=LINES, HyperParameters=values)
    return backend


def test_the_comparison_keeps_nobody_out(three: Backend, look: Look) -> None:
    """axe-core finds no serious fault; nothing but its tables is wider than a phone; lines differ without colour."""
    for options in LOOKS:
        page = look("/ui/compare", **options)
        for path in ("/ui/compare", "/ui/jobs", "/ui/compare?job=a&job=b&job=c"):
            page.goto(f"{three.endpoint}{path}")
            assert serious_faults(page) == [], (path, options)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, options)
        dashes = "(one) => getComputedStyle(one).strokeDasharray"
        drawn = [
            [lines.nth(n).evaluate(dashes) for n in range(3)]
            for lines in (page.locator("svg.chart").first.locator(".series"), page.locator(".legend .series"))
        ]
        assert len(set(drawn[0])) == 3
        assert drawn[0] == drawn[1]  # in the chart as beside the name


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


# --- a trace ------------------------------------------------------------------------------


def test_closer_and_back_by_links_and_fields(backend: Backend, look: Look) -> None:
    """The address keeps the window; the drawing follows. The page keeps nobody out."""
    backend.runner.script = count
    backend.run("traced")
    for options in LOOKS:
        page = look(TRACE, **options)
        assert serious_faults(page) == [], options
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), options
    page = look(f"{TRACE}?from=1&to=8")
    border = "(one) => one.getAttribute('d').split('M').length - 1"
    assert page.locator(".lane .border").evaluate(border) == 8
    page.get_by_role("link", name="Later").click()
    expect(page.locator(".ways")).to_contain_text("Steps 9 to 16 of 400")
    page.get_by_label("From step").fill("13")
    expect(page.locator(".ways")).to_contain_text("Steps 13 to 16 of 400")
    page.wait_for_url("**from=13&to=16")
    assert page.locator(".lane .border").evaluate(border) == 4
    page.get_by_label("From step").fill("x")
    expect(page.get_by_role("alert")).to_contain_text("There are 1 to 400")
    page.get_by_role("link", name="The job").click()
    page.get_by_role("link", name="Steps over time").click()
    expect(page.locator(".ways")).to_contain_text("Steps 1 to 400")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download for Perfetto").click()
    assert download.value.suggested_filename == "traced.trace.json"


# --- TensorBoard --------------------------------------------------------------------------


def test_one_click_leads_to_tensorboard_in_a_new_tab(
    backend: Backend, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which knows nothing of the page that it was opened from; a second click ends it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(str(install(tmp_path / "packages").parent))
    backend.runner.script = write_events
    backend.run("boards")
    page = look("/ui/jobs/boards/tensorboard")
    assert "It does not run" in page.inner_text("main")
    assert serious_faults(page) == []
    page.goto(f"{backend.endpoint}/ui/jobs/boards")
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="TensorBoard").click()
    tab = opened.value
    tab.wait_for_url(lambda url: "/ui/" not in url and url.startswith("http://127.0.0.1:"))
    assert "run/events.out.tfevents.2" in tab.inner_text("body")
    assert tab.evaluate("[window.opener, document.referrer]") == [None, ""]
    tab.close()
    page.goto(page.url + "/tensorboard")
    assert serious_faults(page) == []
    with page.context.expect_page() as again:
        page.get_by_role("link", name="Open it in a new tab").click()
    again.value.wait_for_url(lambda url: url.startswith("http://127.0.0.1:") and "/ui/" not in url)
    page.get_by_role("button", name="Close it").click()
    page.wait_for_url("**/ui/jobs/boards")
    assert page.get_by_role("button", name="Close TensorBoard").count() == 0


# --- clusters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"viewport": PHONE}, {"color_scheme": "dark", "java_script_enabled": False}],
    ids=["phone", "dark, without scripts"],
)
def test_clusters_keep_nobody_out(
    backend: Backend, look: Look, tmp_path: Path, options: dict[str, Any]
) -> None:
    """axe-core finds no serious fault; nothing is wider than a phone; it follows where it can."""
    layout = cluster_at(tmp_path / "home")
    for node in NODES:
        node_log.append(
            layout.folder, node, "trn1.32xlarge", "up", datetime.now(timezone.utc) - timedelta(hours=1)
        )
    submit(layout, 1, "bert" * 30, NODES)
    page = look("/ui/clusters", **options)
    scripts = options.get("java_script_enabled", True)
    for path in ("/ui/clusters", "/ui/clusters/post", "/ui/clusters/post/jobs/1"):
        page.goto(f"{backend.endpoint}{path}")
        if scripts:
            assert serious_faults(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto(f"{backend.endpoint}/ui/clusters")
    page.get_by_role("link", name="post").click()
    page.get_by_text("The file in force").click()
    expect(page.get_by_role("region", name="The configuration in force")).to_contain_text("Region: us-west-2")
    submit(layout, 2, "waits")
    if scripts:
        expect(page.get_by_role("link", name="2 waits")).to_be_visible()
        expect(page.get_by_role("region", name="The configuration in force")).to_be_visible()
