"""TensorBoard of a job from its page, with a `tensorboard` package that lists what it was given."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import Backend, serving, wait_for
from tests.contract.page import Answer, Visitor, visitor
from tests.contract.test_server_process import Process
from tests.fakes.runner import FakeContainer
from tests.fakes.tensorboard_package import PROGRAM, install
from tests.fakes.wire import create_request
from windtunnel_local.ui.tensorboard import boards, event_files

BROKEN = "raise ImportError('no module named <b>protobuf</b>')"
PATIENCE_S = 20.0
WRITES = threading.Event()
"""Set: a job with WRITE goes on writing."""


def write_events(container: FakeContainer) -> int:
    """Event files where TensorBoard finds them, and what only looks like some; more of it when it is told to."""
    place = "/opt/ml/output/tensorboard"
    given = container.plan.environment
    if "SILENT" not in given:
        container.write(f"{place}/neuron/algo-1/events.out.tfevents.1", "cores")
        container.write(f"{place}/run/events.out.tfevents.2", "loss 1\n")
        container.write(f"{place}/projector_config.pbtxt", "/etc/passwd")
        container.path(f"{place}/run/tfevents.link").symlink_to("/etc/passwd")
        os.mkfifo(container.path(f"{place}/run/tfevents.pipe"))
    if "WAIT" in given:
        container.sleep_until(WRITES)
        container.write(f"{place}/run/events.out.tfevents.2", "loss 1\nloss 0\n")
        container.sleep_until(container.terminated)
    return 0


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies of event files go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    WRITES.clear()
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `tensorboard` where the server runs."""
    folder = install(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visitor]:
    """One who was let in."""
    with serving(tmp_path / "home", write_events) as backend:
        backend.client("s3").create_bucket(Bucket="out")
        yield visitor(backend)


def run(backend: Backend, name: str = "job", status: str = "Completed", **members: Any) -> None:
    """A job, until it has a status."""
    backend.client("sagemaker").create_training_job(**create_request(name, **members))
    wait_for(lambda: backend.application.jobs.describe(name)["TrainingJobStatus"] == status)


def opened(visit: Visitor, name: str = "job") -> str:
    """Click; the address that the answer leads to."""

    def answer() -> Answer | None:
        found = visit.post(f"/ui/jobs/{name}/tensorboard")
        assert found.status == 200, found.body
        return None if "It starts." in found.body else found

    body = wait_for(answer).body
    found = re.search(
        r'<meta http-equiv="refresh" content="0;url=(http://127\.0\.0\.1:\d+/[\w-]{30,}/)">', body
    )
    assert found, body
    assert f'href="{found[1]}" target="_blank" rel="noopener noreferrer"' in body
    return found[1]


def shown(address: str) -> Any:
    """What the fake answers."""
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:  # noqa: S310  of http
        return json.load(answer)


def ended(pid: int) -> bool:
    """Whether a process is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_click_opens_it_on_the_event_files_and_nothing_else(
    visit: Visitor, package: Path, temporary: Path
) -> None:
    """On loopback, below an address that is on no command line; a second click ends it, and nothing is left."""
    run(visit.backend)
    page = visit.ask("/ui/jobs/job").body
    assert re.search(r'action="/ui/jobs/job/tensorboard"[^>]* target="_blank" rel="noopener"', page)
    assert "Close TensorBoard" not in page
    address = opened(visit)
    found = shown(address)
    assert found["files"] == {
        "neuron/algo-1/events.out.tfevents.1": "cores",
        "run/events.out.tfevents.2": "loss 1\n",
    }
    assert found["flags"]["--host"] == "127.0.0.1"
    secret = address.split("/")[-2]
    assert secret not in Path(f"/proc/{found['pid']}/cmdline").read_text()
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        shown(address.replace(secret, "x"))
    refused.value.close()
    assert opened(visit) == address
    assert "tensorboard" not in sys.modules
    assert "Close TensorBoard" in visit.ask("/ui/jobs/job").body
    assert visit.post("/ui/jobs/job/tensorboard/close").status == 303
    wait_for(lambda: ended(found["pid"]) and not list(temporary.iterdir()))
    assert "It does not run" in visit.ask("/ui/jobs/job/tensorboard").body
    assert not visit.backend.application.page.busy()


def test_a_running_job_is_followed(visit: Visitor, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes comes while it runs, and what it has left once it has ended."""
    monkeypatch.setattr(boards, "_REFRESH_S", 0.05)
    run(visit.backend, status="InProgress", Environment={"WAIT": "1"})
    wait_for(lambda: visit.backend.application.jobs.describe("job")["SecondaryStatus"] == "Training")
    address = opened(visit)
    wait_for(lambda: shown(address)["files"].get("run/events.out.tfevents.2") == "loss 1\n")
    WRITES.set()
    wait_for(lambda: shown(address)["files"]["run/events.out.tfevents.2"] == "loss 1\nloss 0\n")
    visit.backend.application.jobs.stop("job")
    wait_for(lambda: visit.backend.application.jobs.describe("job")["TrainingJobStatus"] == "Stopped")
    assert len(shown(address)["files"]) == 2


def test_names_and_sizes_of_others_have_bounds(
    visit: Visitor, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in S3 may be any text: no file outside the folder, and no more of them than has room."""
    monkeypatch.setattr(event_files, "MOST_BYTES", 100)
    run(visit.backend, Environment={"SILENT": "1"}, OutputDataConfig={"S3OutputPath": "s3://out"})
    s3 = visit.backend.client("s3")
    names = ["../tfevents", "a/../../tfevents", "/tfevents", "a//tfevents", "x" * 300 + "tfevents", "tfevents\0",
             "./tfevents", "ok/<b> \n\u202e/tfevents", "tfevents", "tfevents/tfevents"]  # fmt: skip
    for name in names:
        s3.put_object(Bucket="out", Key=f"job/tensorboard-output/{name}", Body=b"x")
    s3.put_object(Bucket="out", Key="job/tensorboard-output/zz.tfevents", Body=b"z" * 200)
    answer = visit.post("/ui/jobs/job/tensorboard")
    assert "There was no room for all event files" in answer.body
    assert "http-equiv" not in answer.body
    address = re.search(r'href="(http://127[^"]*)"', answer.body)
    assert address
    found = shown(address[1])["files"]
    assert found.keys() == {"ok/<b> \n\u202e/tfevents", "tfevents", "zz.tfevents"}
    assert sum(map(len, found.values())) == 100


def test_nobody_else_starts_one(visit: Visitor, package: Path, temporary: Path) -> None:
    """No form without its token, none from another page, and no job that is none."""
    run(visit.backend)
    for answer in (
        visit.post("/ui/jobs/job/tensorboard", csrf="x"),
        visit.post("/ui/jobs/job/tensorboard", {"Origin": "http://127.0.0.1:1"}),
        Visitor(visit.backend).ask("/ui/jobs/job/tensorboard", "POST", {"csrf": visit.csrf()}),
        visit.post("/ui/jobs/job/tensorboard/close", csrf="x"),
    ):
        assert answer.status == 403
    assert visit.post("/ui/jobs/none/tensorboard").status == 404
    assert visit.ask("/ui/jobs/job/tensorboard").status == 200
    assert not list(temporary.iterdir())
    assert not visit.backend.application.page.busy()


def test_of_too_many_the_oldest_ends(visit: Visitor, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the one that was asked for is there."""
    monkeypatch.setattr(boards, "MOST", 2)
    pids = []
    for name in ("first", "second", "third"):
        run(visit.backend, name)
        pids.append(shown(opened(visit, name))["pid"])
    wait_for(lambda: ended(pids[0]))
    assert not ended(pids[1])
    assert not ended(pids[2])


def test_it_ends_when_nobody_looks(
    visit: Visitor, package: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And keeps the server from leaving until then."""
    monkeypatch.setattr(boards, "IDLE_S", 2.0)
    monkeypatch.setattr(boards, "_REFRESH_S", 0.05)
    run(visit.backend)
    wait_for(lambda: not visit.backend.application.busy())
    opened(visit)
    assert visit.backend.application.busy()
    wait_for(lambda: not visit.backend.application.busy() and not list(temporary.iterdir()))


def test_one_that_does_not_start_says_why(visit: Visitor, package: Path) -> None:
    """Its last words, as text; the next click tries again."""
    run(visit.backend)
    (package / "program.py").write_text(BROKEN)
    answer = visit.post("/ui/jobs/job/tensorboard")
    assert "It did not start" in answer.body
    assert html.escape("no module named <b>protobuf</b>") in answer.body.replace("&#39;", "&#x27;")
    assert "http-equiv" not in answer.body
    (package / "program.py").write_text(PROGRAM)
    opened(visit)


def test_without_it_the_page_says_what_to_do_to_whoever_wants_it(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder of that name, as a script's logs often have, is no TensorBoard."""
    (tmp_path / "work" / "tensorboard").mkdir(parents=True)
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / "work"), *(p for p in sys.path if "packages/tensorboard" not in p)]
    )
    run(visit.backend)
    run(visit.backend, "silent", Environment={"SILENT": "1"})
    assert "pip install tensorboard" in visit.ask("/ui/jobs/job").body
    assert "TensorBoard" not in visit.ask("/ui/jobs/silent").body
    assert "pip install tensorboard" in visit.post("/ui/jobs/job/tensorboard").body
    assert not visit.backend.application.page.busy()


def test_without_event_files_the_page_says_where_to_write_them(visit: Visitor, package: Path) -> None:
    """To a job that has asked for them; a job that has not is left alone."""
    boards_at = {"S3OutputPath": "s3://out/boards", "LocalPath": "/tmp/boards"}
    silent: dict[str, Any] = {"Environment": {"SILENT": "1"}}
    run(visit.backend, "silent", **silent)
    run(visit.backend, "asked", TensorBoardOutputConfig=boards_at, **silent)
    assert "TensorBoard" not in visit.ask("/ui/jobs/silent").body
    assert "<bdi>/tmp/boards</bdi>" in visit.ask("/ui/jobs/asked").body
    assert "/opt/ml/output/tensorboard" in visit.post("/ui/jobs/silent/tensorboard").body
    assert not visit.backend.application.page.busy()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_server(tmp_path: Path, package: Path, temporary: Path, how: signal.Signals) -> None:
    """However that ends, with the copies of the event files."""
    home = tmp_path / "home"
    with serving(home, write_events) as backend:
        backend.client("s3").create_bucket(Bucket="out")
        run(backend)
    server = Process(
        home, PYTHONPATH=os.pathsep.join([str(package.parent), *sys.path]), TMPDIR=str(temporary)
    )
    try:
        backend.endpoint = server.note()["endpoint"]
        visit = visitor(backend)
        pid = shown(opened(visit))["pid"]
        assert list(temporary.iterdir())
        server.popen.send_signal(how)
        server.end()
        wait_for(lambda: ended(pid) and not list(temporary.iterdir()))
    finally:
        server.popen.kill()  # no error when it has ended
        if server.popen.stdout and not server.popen.stdout.closed:
            server.popen.communicate()
