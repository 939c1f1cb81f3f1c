"""From a job's page to its TensorBoard, in a real browser."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend, serving
from tests.contract.test_page_tensorboard import write_events
from tests.fakes.tensorboard_package import install

pytestmark = pytest.mark.browser


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A server with a job that has left event files, where TensorBoard is installed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(str(install(tmp_path / "packages").parent))
    with serving(tmp_path / "home", write_events) as running:
        running.client("s3").create_bucket(Bucket="out")
        running.run("boards")
        yield running


def test_one_click_leads_there_in_a_new_tab(look: Look) -> None:
    """Which knows nothing of the page that it was opened from; a second click ends it."""
    page = look("/ui/jobs/boards")
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


def test_what_it_says_without_one_is_for_all(look: Look) -> None:
    """axe-core finds no serious fault."""
    page = look("/ui/jobs/boards/tensorboard")
    assert "It does not run" in page.inner_text("main")
    assert serious_faults(page) == []
