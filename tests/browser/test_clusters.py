"""The clusters of this machine, in a real browser."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, Look
from tests.browser.faults import serious_faults
from tests.contract.conftest import Backend
from tests.fakes.cluster import cluster_at, submit
from windtunnel_local.cluster import node_log

pytestmark = pytest.mark.browser

NODES = ("compute1-st-queue1-i1-1", "compute1-dy-queue1-i1-1")


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
