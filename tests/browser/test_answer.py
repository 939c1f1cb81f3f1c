"""The answer in a real browser: figures follow the controls, and the address keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, PHONE, Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend
from tests.contract.test_page_answer import PAGE
from tests.fakes.counters import counters

__all__ = ["counters"]

pytestmark = pytest.mark.browser


@pytest.fixture
def rehearsed(backend: Backend, counters: Any) -> Backend:
    """A server with one job that has left counters."""
    import json

    backend.run("bert")
    body = json.dumps(counters(job="bert")).encode()
    backend.client("s3").put_object(Bucket="out", Key="models/bert/windtunnel/counters.json", Body=body)
    return backend


@LOOKS
def test_the_answer_keeps_nobody_out(rehearsed: Backend, look: Look, options: dict[str, Any]) -> None:
    """axe-core finds no serious fault; nothing is wider than a phone."""
    page = look(f"{PAGE}?samples=3600000", **options)
    assert serious_faults(page) == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_figures_follow_the_controls_and_the_link_keeps_them(rehearsed: Backend, look: Look) -> None:
    """Without a button pressed; the same address shows the same again."""
    page = look(PAGE)
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
    page = look(PAGE)
    nodes = page.get_by_label("Nodes of each")
    nodes.fill("two")
    expect(page.locator("#error-nodes")).to_have_text("'two' is no whole number from 1.")
    nodes.fill("2")
    expect(page.locator("#error-nodes")).to_be_hidden()
    expect(page.locator(".answer tbody")).to_contain_text("x 2")


def test_a_phone_folds_no_field_away_that_is_wrong(rehearsed: Backend, look: Look) -> None:
    """An address may have it; else the fields are folded."""
    page = look(f"{PAGE}?nodes=two", viewport=PHONE)
    expect(page.locator("#error-nodes")).to_be_visible()
    page.get_by_role("link", name="As the job has it").click()
    expect(page.get_by_label("Nodes of each")).to_be_hidden()


def test_without_javascript_a_button_shows_the_choice(rehearsed: Backend, look: Look) -> None:
    """The form is one of GET."""
    page = look(PAGE, java_script_enabled=False)
    page.get_by_label("Samples of an epoch").fill("36e6")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".answer")).to_contain_text("36,000,000 samples")
