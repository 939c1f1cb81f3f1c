"""The lists of jobs, endpoints and transform jobs, and what can be done there; as plain requests."""

from __future__ import annotations

import html
import json
import re
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.contract.conftest import Backend, wait_for
from tests.contract.page import visitor
from tests.contract.test_batch_transform import Batch
from tests.contract.test_endpoints import Deployed
from tests.fakes.counters import Counters, counters
from tests.fakes.wire import create_request
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.job import Job
from windtunnel_local.ui.costs import CostBook
from windtunnel_local.ui.pages.by_cost import by_cost, newest_first
from windtunnel_local.ui.pages.job_filter import JobFilter

__all__ = ["counters"]


def test_endpoints_are_listed_searched_and_deleted(backend: Backend) -> None:
    """Deleting asks first; the model stays."""
    deployed = Deployed(backend)
    deployed.endpoint("one")
    deployed.endpoint("two")
    page = visitor(backend)
    listed = page.ask("/ui/endpoints").body
    assert "<bdi>one</bdi>" in listed
    assert "InService" in listed
    found = page.ask("/ui/endpoints?q=tw").body
    assert "<bdi>two</bdi>" in found
    assert "<bdi>one</bdi>" not in found
    assert "Nothing matches" in page.ask("/ui/endpoints?q=three").body
    deployed.endpoint("three", status="Failed", FAIL="3")
    assert "has ended (exit code 3)" in page.ask("/ui/endpoints?q=three").body
    asked = page.ask("/ui/endpoints/one/delete")
    assert "Delete <bdi>one</bdi>?" in asked.body
    assert page.post("/ui/endpoints/one/delete").headers["location"] == "/ui/endpoints"
    wait_for(lambda: "<bdi>one</bdi>" not in page.ask("/ui/endpoints").body)
    assert page.ask("/ui/endpoints/one/delete").status == 404
    assert backend.client("sagemaker").describe_model(ModelName="one")["ModelName"] == "one"


def test_long_reasons_fit_the_list(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container chooses what it is said to have failed of."""
    now = datetime.now(timezone.utc)
    row = {"TransformJobStatus": "Failed", "CreationTime": now, "FailureReason": "\u202e" * 5000}
    rows = [{"TransformJobName": f"job-{number}", **row} for number in range(50)]
    monkeypatch.setattr(backend.application.transforms, "list", lambda _: {"TransformJobSummaries": rows})
    answer = visitor(backend).ask("/ui/transform-jobs")
    assert answer.status == 200
    assert len(answer.body) < 200_000


def test_transform_jobs_are_listed_and_stopped(backend: Backend) -> None:
    """One that has ended is left as it is."""
    batch = Batch(backend)
    batch.deployed.model("m")
    batch.put(a="text")
    batch.create(name="done")
    batch.end("done")
    page = visitor(backend)
    listed = page.ask("/ui/transform-jobs").body
    assert "<bdi>done</bdi>" in listed
    assert "Completed" in listed
    assert page.post("/ui/transform-jobs/done/stop").headers["location"] == "/ui/transform-jobs"
    assert batch.end("done")["TransformJobStatus"] == "Completed"
    assert page.post("/ui/transform-jobs/none/stop").status == 404


def test_lists_are_paged(backend: Backend) -> None:
    """Fifty on a page, each once, to the last."""
    names = [f"job-{number:03}" for number in range(102)]
    for name in names:
        arn = f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{name}"
        job = Job(name, arn, create_request(name), lifecycle.begin(datetime.now(timezone.utc)))
        backend.application.store.insert_job(job)
    page = visitor(backend)
    path, seen, pages = "/ui/jobs?sort=name&order=up", [], 0
    while path:
        body = page.ask(path).body
        seen += re.findall(r"<bdi>(job-\d+)</bdi></a>", body)
        following = re.search(r'rel="next" href="([^"]+)"', body)
        path = html.unescape(following[1]) if following else ""
        pages += 1
    assert seen == names
    assert pages == 3


def rehearsed(backend: Backend, name: str, document: dict[str, Any] | None) -> None:
    """A job that has ended and left these counters."""
    backend.run(name)
    if document is not None:
        body = json.dumps(document).encode()
        backend.client("s3").put_object(
            Bucket="out", Key=f"models/{name}/windtunnel/counters.json", Body=body
        )


def listed(body: str) -> list[str]:
    """The names of the rows, in their order."""
    return re.findall(r'<th scope="row".*?<bdi>([^<]+)</bdi></a>', body)


@pytest.fixture(scope="module")
def costly(shared_backend: Backend, counters: Counters) -> Backend:
    """Of four jobs that have ended three have a cost, which their age does not tell."""
    shared_backend.client("s3").create_bucket(Bucket="out")
    for name, n in (("two", 2), ("four", 4), ("one", 1)):
        rehearsed(shared_backend, name, counters(job=name, instance_count=n, world_size=2 * n, cores_used=2))
    rehearsed(shared_backend, "none", None)
    return shared_backend


def test_jobs_in_the_order_of_their_cost(costly: Backend) -> None:
    """The dearest first, or the cheapest; what has no cost is counted; a filter holds."""
    page = visitor(costly)
    dearest = page.ask("/ui/jobs?sort=cost").body
    assert listed(dearest) == ["four", "two", "one"]
    assert "All jobs with a modelled cost; 1 that ended has none." in dearest
    assert listed(page.ask("/ui/jobs?sort=cost&order=up").body) == ["one", "two", "four"]
    assert listed(page.ask("/ui/jobs?sort=cost&q=o&order=up").body) == ["one", "two", "four"]
    assert listed(page.ask("/ui/jobs?sort=cost&q=tw").body) == ["two"]
    nothing = page.ask("/ui/jobs?sort=cost&q=none").body
    assert "No job that has ended has a modelled cost." in nothing
    head = page.ask("/ui/jobs").body  # and the order is offered there
    assert re.search(r'aria-sort="none"><a href="/ui/jobs\?sort=cost">On AWS, modelled', head)
    assert re.search(r'href="/ui/jobs/none/answer"[^>]*>none</a>', head)


def test_what_was_not_looked_at_is_said(costly: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how many were, and what to do."""
    assert "were looked at" not in visitor(costly).ask("/ui/jobs?sort=cost").body
    for name in ("_PATIENCE_S", "_BY_COST_PATIENCE_S"):
        monkeypatch.setattr(f"windtunnel_local.ui.pages.jobs.{name}", -1.0)
    some = visitor(costly).ask("/ui/jobs?sort=cost").body
    assert "Only the newest 4 that ended were looked at" in some
    assert "narrow the list" in some


def test_an_order_by_cost_keeps_to_its_time(costly: Backend) -> None:
    """Without time it has looked at nothing and says so, and of those it has looked at it keeps the first."""
    jobs, book = costly.application.jobs, CostBook(costly.application.objects)
    everything = JobFilter().search()
    nothing = by_cost(jobs, book, everything, 2, within_s=0)
    assert (nothing.jobs, nothing.whole) == ([], False)
    some = by_cost(jobs, book, everything, 2, within_s=20)
    assert [job["TrainingJobName"] for job in some.jobs] == ["four", "two"]
    assert (some.of, some.without, some.whole) == (3, 1, True)
    assert set(some.costs) == {"four", "two"}
    assert len(list(newest_first(jobs, everything))) == 1
