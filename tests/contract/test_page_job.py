"""The page of a job as requests see it: its files, its bounds, its events."""

from __future__ import annotations

import http.client
import json
import math
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore.config import Config

from tests.contract.conftest import Backend, wait_for
from tests.contract.page import Visitor, visitor
from tests.fakes.counters import counters  # noqa: F401  a fixture
from tests.fakes.runner import FakeContainer
from tests.fakes.wire import IMAGE, create_request
from windtunnel_local.service.observed import logs
from windtunnel_local.ui import site


@pytest.fixture
def visit(backend: Backend) -> Visitor:
    """One who was let in, where jobs have a bucket."""
    backend.client("s3").create_bucket(Bucket="out")
    return visitor(backend)


@pytest.fixture(scope="module")
def ended(shared_backend: Backend) -> Visitor:
    """One who was let in, where the jobs `job` and `other` have ended."""
    shared_backend.client("s3").create_bucket(Bucket="out")
    for name in ("job", "other"):
        shared_backend.run(name)
    return visitor(shared_backend)


def test_files_are_kept_and_not_opened(ended: Visitor) -> None:
    """As an attachment, of no type that a browser would run."""
    answer = ended.ask("/ui/jobs/job/file?path=output/model.tar.gz", headers={"Accept": "text/html"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'attachment; filename="model.tar.gz"'
    for path in ("/ui/jobs/job/log.txt", "/ui/jobs/job/request.json", "/ui/jobs/job/request_estimator.py"):
        answer = ended.ask(path)
        assert answer.headers["content-disposition"].startswith("attachment;"), path
        assert answer.headers["content-type"].startswith("text/plain"), path


@pytest.mark.parametrize(
    "path",
    ["", "none", "../other/output/model.tar.gz", "/etc/passwd", "output/../../other/output/model.tar.gz", "output",
     "output/", "..%2f..%2fetc/passwd", "\0", "%00", "a" * 2000,
     "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")],
)  # fmt: skip
def test_no_other_file_is_given(ended: Visitor, path: str) -> None:
    """Of another job, of this machine, or of none: there is no such page."""
    assert ended.ask(f"/ui/jobs/job/file?path={quote(path)}").status == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("after=", 200), ("after=x", 400), ("before=algo-1-1:x", 400), ("at=", 400), ("at=algo-1-1:0,algo-2-1:0", 400),
        ("at=algo-9-1:0", 200), ("before=algo-9-1:5", 200), ("q=%22", 200), ("q=x&token=x", 400), ("host=none", 200),
        ("error=1", 303), ("after=algo-1-1:999999999999999", 200),
    ],
)  # fmt: skip
def test_places_in_the_log(ended: Visitor, query: str, status: int) -> None:
    """What leads nowhere shows nothing; what is no place is refused with a word."""
    for form in ("", "&format=json"):
        answer = ended.ask(f"/ui/jobs/job/log?{query}{form}")
        assert answer.status == (200 if form and status == 303 else status), (form, answer.body)


def test_what_is_not_in_the_log(ended: Visitor) -> None:
    """An error that was looked for in all of it, a line, and a job."""
    assert "tells of an error" in ended.ask("/ui/jobs/job/log?none=all").body
    assert ended.ask("/ui/jobs/job/log/line?at=algo-1-1:0").status == 404
    wrong = ended.ask("/ui/jobs/job/log/line?at=x")
    assert wrong.status == 400 and "it looks like algo-1-" in wrong.body
    assert ended.ask("/ui/jobs/none/log").status == 404


def test_an_error_that_was_not_looked_for_so_far_is_not_denied(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search has its bound; what it says holds of the lines that it looked at."""
    monkeypatch.setattr(logs, "MAX_SCANNED", 1)
    visit.backend.run(Environment={"LINES": "50"})
    assert visit.ask("/ui/jobs/job/log?error=1").headers["location"].endswith("?none=some")
    for path in ("?none=some", "?error=1&format=json"):
        assert "None of the first" in visit.ask(f"/ui/jobs/job/log{path}").body


def test_the_largest_request_has_a_page_of_bounded_size(visit: Visitor) -> None:
    """A hundred hyperparameters, variables and fifty tags of all the characters that AWS allows, a log of markup."""
    visit.backend.run(
        HyperParameters={f"{'<' * 200}{number}": "<" * 2500 for number in range(100)},
        Environment={f"V{number}": "&" * 512 for number in range(99)} | {"LINES": "400"},
        Tags=[{"Key": f"k{number}", "Value": "x" * 256} for number in range(50)],
        AlgorithmSpecification={
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": f"m{number}", "Regex": "line ([0-9]+)"} for number in range(40)],
        },
    )
    answer = visit.ask("/ui/jobs/job")
    assert answer.status == 200
    size = len(answer.body.encode())
    assert size < 200_000, size
    assert len(visit.ask("/ui/jobs/job/request.json").body) > 250_000


def test_documents_that_a_job_has_overwritten(visit: Visitor) -> None:
    """They are none of ours, whatever their size: its pages are there without what they told."""
    visit.backend.run()
    large = b'{"x": [' + b"0," * 9_000_000 + b"0]}"
    for content in (b"{}", b'{"hosts": 7}', b"[" * 100_000, b"9" * 5000, b"\xff", large):
        for name in ("usage.json", "counters.json", "steps.json"):
            visit.backend.application.objects.put("out", f"models/job/windtunnel/{name}", BytesIO(content))
        for path in ("", "/answer", "/trace", "/-/live"):
            assert visit.ask(f"/ui/jobs/job{path}").status == 200, (path, content[:20])


def test_a_job_that_ran_nothing_on_the_device_is_told_so(visit: Visitor, counters: Any) -> None:  # noqa: F811
    """As in `windtunnel diagnostics`; beside another job, too."""
    document = counters(diagnostics=[])
    document["graphs"] = {**document["graphs"], "count": 0, "ledger": []}
    content = json.dumps(document).encode()
    for name in ("job", "other"):
        visit.backend.run(name)
    visit.backend.application.objects.put("out", "models/job/windtunnel/counters.json", BytesIO(content))
    for path in ("/ui/jobs/job", "/ui/compare?job=other&job=job"):
        assert "Nothing ran on a NeuronCore, which trn1 would bill." in visit.ask(path).body, path


def test_odd_lines_and_file_names_fit_their_pages(visit: Visitor) -> None:
    """Sizes are bytes as they are sent; a search leads on behind the last line that had room."""
    backend = visit.backend
    odd = ('"' * 2000, "\u202e" * 2000, "\U0001f600" * 2000)

    def script(container: FakeContainer) -> int:
        for number in range(120):
            container.print(f"odd {number} {odd[number % 3]}")
        return 0

    backend.runner.script = script
    backend.run()
    for number in range(200):
        backend.application.objects.put("out", f"models/job/{odd[number % 3][:200]}{number}", BytesIO(b""))
    for path in ("", "/log?after=", "/log?before=", "/log?q=odd", "/log?q=odd&format=json"):
        answer = visit.ask(f"/ui/jobs/job{path}")
        assert answer.status == 200
        assert len(answer.body.encode()) < 200_000, path
    found: list[int] = []
    token: str | None = ""
    while token is not None:
        page = json.loads(visit.ask(f"/ui/jobs/job/log?q=odd&format=json&token={quote(token)}").body)
        found += [int(line[3].split()[1]) for line in page["lines"]]
        token = page["token"]
    assert found == list(range(120))


def test_events_end_with_the_job(visit: Visitor) -> None:
    """All lines come, then the word that there will be no more, and the connection is closed."""
    visit.backend.run(Environment={"LINES": "7"})
    answer = visit.ask("/ui/jobs/job/-/live")
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = [
        json.loads(line.removeprefix("data: "))
        for line in answer.body.splitlines()
        if line.startswith("data: ")
    ]
    lines = [line[3] for message in found for line in message.get("log", {}).get("lines", [])]
    assert [line for line in lines if line.startswith("line")] == [f"line {number}" for number in range(7)]
    assert found[-1]["end"].startswith("The job has ended: Completed")
    template = Path(site.__file__).with_name("templates").joinpath("job.html").read_text()
    shown = re.findall(r'<div id="(\w+)">{{ parts\.(\w+) }}', template)
    assert all(element == part for element, part in shown)
    assert {*found[0]["parts"], "cores"} == {part for _, part in shown}  # of cores nothing was seen here
    assert visit.ask("/ui/jobs/job/-/live?after=x").status == 400
    assert visit.ask("/ui/jobs/none/-/live").status == 404


def test_events_of_a_job_that_is_stopped_end(visit: Visitor) -> None:
    """Whoever looks is told, and let go."""
    backend = visit.backend
    backend.client("sagemaker").create_training_job(**create_request(Environment={"WAIT": "1"}))
    wait_for(lambda: backend.application.jobs.describe("job")["SecondaryStatus"] == "Training")
    with ExitStack() as open_connections:
        response, _ = following(visit, open_connections)
        backend.application.jobs.stop("job")
        text = response.read().decode()
    assert "The job has ended: Stopped" in text


def following(
    visit: Visitor, open_connections: ExitStack, path: str = "/ui/jobs/job"
) -> tuple[http.client.HTTPResponse, bytes]:
    """A connection to a page's events, a job's unless told otherwise, and their first line."""
    connection = http.client.HTTPConnection("127.0.0.1", visit.port, timeout=60)
    open_connections.callback(connection.close)
    host = {"Host": f"127.0.0.1:{visit.port}", "Cookie": visit.cookie}
    connection.request("GET", f"{path}/-/live", headers=host)
    response = connection.getresponse()
    assert response.status == 200
    return response, response.readline()


def test_only_so_many_follow_at_once(visit: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told so, in a message that its browser can show; when one leaves, there is room."""
    monkeypatch.setattr(site, "MOST_FOLLOWERS", 2)
    backend = visit.backend
    backend.client("sagemaker").create_training_job(**create_request(Environment={"WAIT": "1"}))
    wait_for(lambda: backend.application.jobs.describe("job")["SecondaryStatus"] == "Training")
    with ExitStack() as first:
        following(visit, first)
        with ExitStack() as second:
            following(visit, second)
            for path in ("/ui/jobs/job/-/live", "/ui/jobs/-/live", "/ui/endpoints/-/live"):
                answer = visit.ask(path)
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert answer.body.startswith("retry: 10000\nevent: full\ndata: ")
                assert "2 pages follow" in answer.body and "Close one" in answer.body
        time.sleep(0.1)

        def room() -> bool:
            with ExitStack() as third:
                return following(visit, third)[1].startswith(b"data: ")

        wait_for(room)


def test_a_page_that_is_closed_makes_room_at_once(visit: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the next heartbeat: where nothing happens, nothing else is sent from which its end would be known."""
    monkeypatch.setattr(site, "MOST_FOLLOWERS", 1)
    monkeypatch.setattr(site, "_HEARTBEAT_S", math.inf)

    def follows() -> bool:
        with ExitStack() as closed_again:
            return following(visit, closed_again, "/ui/endpoints")[1].startswith(b"data: ")

    for _ in range(2):
        wait_for(follows)


def test_pages_leave_the_api_its_threads(visit: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """More slow pages at once than there are threads: a call is answered meanwhile."""
    application, released = visit.backend.application, threading.Event()
    describe = application.jobs.describe

    def slow(name: str) -> dict[str, Any]:
        released.wait()
        return describe(name)

    monkeypatch.setattr(application.jobs, "describe", slow)
    once = Config(read_timeout=60, retries={"total_max_attempts": 1})
    with ThreadPoolExecutor(50) as pool:
        pages = [pool.submit(visit.ask, "/ui/jobs/none/log") for _ in range(50)]
        try:
            wait_for(lambda: application.api._under_way == len(pages))
            assert visit.backend.client("s3", config=once).list_buckets()
        finally:
            released.set()
        assert {page.result().status for page in pages} == {404}
