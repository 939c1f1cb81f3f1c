"""The lists, in a real browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOOKS, PHONE, Look, Watch
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend, wait_for
from tests.fakes.wire import create_request
from windtunnel_local.ui import site

pytestmark = pytest.mark.browser

NARROW = {"width": 320, "height": 640}
LISTS = ("/ui/jobs", "/ui/queue", "/ui/warm-pools", "/ui/endpoints", "/ui/transform-jobs")
PAGES = (
    *LISTS,
    "/ui/jobs?status=Failed",
    "/ui/jobs?q=none",
    "/ui/jobs/bert-base/delete",
    "/ui/jobs/bert-base/run-again",
)


def create(backend: Backend, name: str, **members: Any) -> None:
    """A job, which begins to run."""
    backend.client("sagemaker").create_training_job(**create_request(name, **members))


def gap(around: Locator, left: str, right: str) -> float:
    """Between the first two elements of these selectors within one: at one moment, for rows are replaced."""
    width: float = around.evaluate(
        """(one, [left, right]) => one.querySelector(right).getBoundingClientRect().left
            - one.querySelector(left).getBoundingClientRect().right""",
        [left, right],
    )
    return width


def names(page: Page) -> list[str]:
    """Of the rows, in their order."""
    return [text.partition("\n")[0].strip() for text in page.locator("tbody th a").all_inner_texts()]


@pytest.fixture
def several(backend: Backend) -> Backend:
    """Three that have ended, one of them badly, and one that runs."""
    create(backend, "bert-base", Tags=[{"Key": "team", "Value": "nlp"}])
    create(backend, "bert-large", Environment={"EXIT": "3"})
    create(
        backend,
        "resnet",
        ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
    )
    create(backend, "runs", Environment={"WAIT": "1"})
    for name in ("bert-base", "bert-large", "resnet"):
        backend.ended(name)
    wait_for(lambda: backend.application.jobs.describe("runs")["SecondaryStatus"] == "Training")
    return backend


def test_lists_keep_nobody_out(several: Backend, look: Look) -> None:
    """axe-core finds no serious fault; nothing is wider than a phone, even one of 320 pixels, as WCAG asks."""
    for options in (*LOOKS, {"viewport": NARROW}):
        page = look("/ui/jobs", **options)
        for path in PAGES:
            page.goto(f"{several.endpoint}{path}")
            if options in LOOKS:
                assert serious_faults(page) == [], (path, options)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, options)
            assert len(page.content().encode()) < 200_000


def test_search_as_you_type(several: Backend, look: Look) -> None:
    """The rows follow the field, and the address keeps what was asked for."""
    page = look("/ui/jobs")
    assert names(page) == ["runs", "resnet", "bert-large", "bert-base"]
    page.get_by_label("Name contains").press_sequentially("bert")
    expect(page.locator("tbody tr")).to_have_count(2)
    assert names(page) == ["bert-large", "bert-base"]
    page.wait_for_url("**/ui/jobs?q=bert*")
    expect(page.get_by_label("Name contains")).to_be_focused()
    page.reload()
    assert names(page) == ["bert-large", "bert-base"]
    page.get_by_role("combobox", name="Status", exact=True).select_option("Failed")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody .reason")).to_contain_text(
        "AlgorithmError"
    )  # the first line of its FailureReason
    page.get_by_label("Name contains").fill("nothing like it")
    expect(page.locator("#rows .empty")).to_contain_text("No job matches")
    expect(page.get_by_role("status").filter(has_text="No job matches")).to_have_count(1)  # it is said, too


def test_filters_and_order(several: Backend, look: Look) -> None:
    """By tag, instance and day; each column by a click on its head."""
    page = look("/ui/jobs?tag=team%3Dnlp")
    assert names(page) == ["bert-base"]
    page.goto(f"{several.endpoint}/ui/jobs?tag=team")
    assert names(page) == ["bert-base"]
    page.goto(f"{several.endpoint}/ui/jobs?instance=ml.trn1.32xlarge")
    assert names(page) == ["resnet"]
    page.goto(f"{several.endpoint}/ui/jobs?until=2020-01-01")
    expect(page.get_by_text("No job matches")).to_be_visible()
    page.goto(f"{several.endpoint}/ui/jobs?since=2020-01-01")
    assert len(names(page)) == 4
    page.get_by_role("link", name="Name", exact=True).click()
    page.wait_for_url("**sort=name*")
    assert names(page) == ["runs", "resnet", "bert-large", "bert-base"]
    page.get_by_role("link", name="Name").first.click()
    page.wait_for_url("**order=up*")
    assert names(page) == ["bert-base", "bert-large", "resnet", "runs"]


def test_without_javascript_it_can_be_read_searched_and_changed(several: Backend, look: Look) -> None:
    """Every page is whole as it comes."""
    page = look("/ui/jobs", java_script_enabled=False)
    assert len(names(page)) == 4
    page.get_by_label("Name contains").fill("bert")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert names(page) == ["bert-large", "bert-base"]
    page.goto(f"{several.endpoint}/ui/jobs")
    page.get_by_role("link", name="What today's jobs would have cost").click()
    expect(page.locator("main")).to_contain_text(
        "nothing can be modelled from what the 3 that ended have left"
    )
    page.goto(f"{several.endpoint}/ui/jobs")
    page.get_by_role("button", name="Stop runs").click()
    assert several.ended("runs")["TrainingJobStatus"] == "Stopped"


def test_one_page_too_many_says_so_and_goes_on(
    backend: Backend, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list and a job's page; once another is closed they follow, and the line is gone."""
    monkeypatch.setattr(site, "MOST_FOLLOWERS", 1)
    monkeypatch.setattr(site, "_AGAIN_MS", 300)
    create(backend, "watched", Environment={"WAIT": "1"})
    for path in ("/ui/jobs", "/ui/jobs/watched"):
        first = look("/ui/jobs")
        time.sleep(1)  # it follows
        second = look(path)
        expect(second.locator("#connection")).to_contain_text("1 pages follow")
        time.sleep(2)  # several tries
        expect(second.locator("#connection")).to_contain_text("1 pages follow")
        first.close()
        expect(second.locator("#connection")).to_be_empty()
        second.close()


def test_a_job_from_pending_to_completed_while_one_looks(
    backend: Backend, look: Look, tmp_path: Path
) -> None:
    """Its row follows without a reload, and so does the queue."""
    go = tmp_path / "go"

    def script(container: Any) -> int:
        while not go.exists():
            container.sleep(0.02)
        return 0

    backend.runner.script = script
    backend.runner.crowded = "no machine is free"
    page, queue = look("/ui/jobs"), look("/ui/queue")
    expect(page.get_by_text("No training job has run here yet")).to_be_visible()
    create(backend, "watched")
    row, waiting = page.locator("tbody tr"), queue.locator("tbody tr")
    expect(row).to_contain_text("Pending")
    expect(waiting).to_contain_text("no machine is free")
    assert queue.locator("[aria-sort]").count() == 0  # its order is its own
    backend.runner.crowded = None
    expect(row).to_contain_text("Training")
    expect(queue.get_by_text("No job waits")).to_be_visible()
    go.touch()
    expect(row).to_contain_text("Completed")
    expect(row.get_by_role("button")).to_have_count(0)


def test_stop_from_the_page(several: Backend, look: Look) -> None:
    """One click, and one is where one was."""
    page = look("/ui/jobs?sort=name")
    page.get_by_role("button", name="Stop runs").click()
    page.wait_for_url("**/ui/jobs?sort=name")
    expect(page.locator("tbody tr").first).to_contain_text("Stopped")
    assert several.ended("runs")["TrainingJobStatus"] == "Stopped"


def test_delete_asks_twice(several: Backend, look: Look, watch: Watch) -> None:
    """A job that is deleted from its own question is gone; one that runs stays, and it says what to do."""
    page = look("/ui/jobs/runs/delete")
    assert gap(page.locator(".buttons"), "button", "a") > 10  # a thumb does not mean one and hit the other
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("stop it first")).to_be_visible()
    watch.errors.clear()  # the browser's own line about the status 400
    assert several.application.jobs.describe("runs")["TrainingJobStatus"] == "InProgress"
    page.goto(f"{several.endpoint}/ui/jobs/bert-large/delete")
    page.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/ui/jobs")
    assert "bert-large" not in names(page)
    assert "bert-base" in names(page)


def test_run_again(several: Backend, look: Look) -> None:
    """A new job of the same request."""
    page = look("/ui/jobs/bert-base/run-again")
    page.get_by_label("Its name").fill("bert-again")
    with page.expect_navigation():
        page.get_by_role("button", name="Run it").click()
    again, before = several.ended("bert-again"), several.application.jobs.describe("bert-base")
    assert again["TrainingJobStatus"] == "Completed"
    assert again["HyperParameters"] == before["HyperParameters"]
    assert several.application.jobs.list_tags(again["TrainingJobArn"]) == [{"Key": "team", "Value": "nlp"}]


def test_keyboard_alone(several: Backend, look: Look) -> None:
    """The first key leads past the frame; what has the focus shows it, and keeps it while rows change."""
    page = look("/ui/jobs")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    link = page.get_by_role("link", name="bert-base", exact=True)
    link.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    create(several, "another")
    expect(page.get_by_role("link", name="another", exact=True)).to_be_visible()
    expect(link).to_be_focused()


def test_hostile_texts_stay_texts(backend: Backend, look: Look) -> None:
    """A reason of a failure, tags in the search: none is markup, none is invisible, none turns its surroundings."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202eabc\x1b[31mred\x07"

    def script(container: Any) -> int:
        container.write("/opt/ml/output/failure", evil + "x" * 100_000)
        return 1

    backend.runner.script = script
    create(backend, "hostile")
    backend.ended("hostile")
    page = look("/ui/jobs")
    page.on("dialog", lambda _: pytest.fail("a script ran"))
    reason = page.locator("tbody .reason")
    expect(reason).to_contain_text("<script>alert(1)</script>")
    assert "\u202e" not in page.content()
    assert "\x1b" not in page.content()
    page.goto(f"{backend.endpoint}/ui/jobs?q=%3Cscript%3Ealert(3)%3C/script%3E&tag=%3Cb%3Ek%3C/b%3E")
    expect(page.get_by_label("Name contains")).to_have_value("<script>alert(3)</script>")
    assert page.locator("main b, main script, main img").count() == 0
    assert len(page.content().encode()) < 200_000


def test_a_phone_ticks_and_sorts_and_folds_its_filters(several: Backend, look: Look) -> None:
    """Every box is in sight; there are no heads to click, so a field sorts; what narrows the list is not folded."""
    page = look("/ui/jobs", viewport={**PHONE, "height": 3000})
    for name in ("bert-base", "resnet"):
        expect(page.get_by_label(f"Compare {name}", exact=True)).to_be_in_viewport(ratio=1)
    row = page.locator("tbody tr").first
    assert 0 < gap(row, ".status", ".state") < 20  # side by side, whatever room there is
    expect(page.get_by_label("Tag")).to_be_hidden()
    page.get_by_text("More filters").click()
    expect(page.get_by_label("Tag")).to_be_visible()
    page.get_by_label("Sort by").select_option(label="name")
    page.wait_for_url("**sort=name*")
    expect(page.locator("tbody tr").first).to_contain_text("runs")
    page.get_by_label("Sort by").select_option(label="cost on AWS")
    expect(page.locator("#rows")).to_contain_text("No job that has ended has a modelled cost.")
    page.goto(f"{several.endpoint}/ui/jobs?tag=team")
    expect(page.get_by_label("Tag")).to_be_visible()
