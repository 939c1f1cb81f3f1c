"""Chromium in front of a real server, with a fake container engine behind. Every page that is opened is watched."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.contract.conftest import Backend, serving, train
from windtunnel.session.page_token import page_token

PATIENCE_MS = 60_000
PHONE = {"width": 390, "height": 844}
LOOKS: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark", "viewport": PHONE})
"""What a page must look right in: both palettes, both layouts."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium: Playwright's package drives it, and brings none along.

    One a file, and not a session: while Playwright drives, this thread has a running event loop, and tests of
    other files that run one themselves would fail.
    """
    found = shutil.which("chromium-headless-shell")
    assert found, "Chromium is missing: scripts/setup.sh browser"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # No sandbox: as root it has none, and it opens this machine's own pages alone.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """A server for one test, with a bucket for what jobs make."""
    with serving(tmp_path / "home", train) as running:
        running.client("s3").create_bucket(Bucket="out")
        yield running


@dataclass
class Watch:
    """What no page may do."""

    backend: Backend
    errors: list[str] = field(default_factory=list)
    """Of consoles and scripts."""
    foreign: list[str] = field(default_factory=list)
    """Requests to anywhere else."""

    def over(self, page: Page) -> Page:
        """Keep an eye on a page."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._request)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        # Containers of other tests come and go; the page asks again.
        if message.type in ("error", "warning") and "ERR_NETWORK_CHANGED" not in message.text:
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.backend.endpoint}/ui/", "blob:", "data:")):
            self.foreign.append(request.url)


Look = Callable[..., Page]
"""Opens a path of the page in a new browser that was let in; keyword arguments are those of a browser context."""


@pytest.fixture
def watch(backend: Backend) -> Watch:
    """Of all pages of the test. A test that asks for what fails empties `errors` itself."""
    return Watch(backend)


@pytest.fixture
def look(chromium: Browser, backend: Backend, watch: Watch) -> Iterator[Look]:
    """See `Look`. In the end no page had an error, or asked anyone else for anything."""
    contexts = []

    def open_page(path: str, **options: Any) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = watch.over(context.new_page())
        token = page_token(backend.credentials.secret_access_key, time.time())
        page.goto(f"{backend.endpoint}/ui/enter?token={token}&to=/ui/jobs")
        page.wait_for_url(f"{backend.endpoint}/ui/jobs")
        page.goto(f"{backend.endpoint}{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watch.errors == []
    assert watch.foreign == []
