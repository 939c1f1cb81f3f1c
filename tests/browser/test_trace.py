"""The trace in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend
from tests.contract.test_page_trace import PAGE, tracing

pytestmark = pytest.mark.browser


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """A server with a job that has counted."""
    with tracing(tmp_path / "home") as running:
        yield running


@LOOKS
def test_the_trace_keeps_nobody_out(look: Look, options: dict[str, Any]) -> None:
    """axe-core finds no serious fault; nothing but its tables is wider than a phone."""
    page = look(PAGE, **options)
    assert serious_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_closer_and_back_by_links_and_fields(look: Look) -> None:
    """The address keeps the window; the drawing follows."""
    page = look(f"{PAGE}?from=1&to=8")
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
