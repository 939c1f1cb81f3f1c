"""The clusters of a home on the page, from their folders alone; as plain requests."""

from __future__ import annotations

import http.client
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from html import unescape

import pytest

from tests.contract.conftest import Backend
from tests.contract.page import Visitor, visitor
from tests.fakes.cluster import POST, cluster_at, submit
from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.layout import Layout

STATIC = "compute1-st-queue1-i1-1"
DYNAMIC = tuple(f"compute1-dy-queue1-i1-{number}" for number in (1, 2, 3, 4))
HOSTILE = "<script>alert(1)</script>\u202e\"'&"
BEGAN = datetime(2026, 11, 23, 2, 40, tzinfo=timezone.utc)


@pytest.fixture
def layout(shared_backend: Backend) -> Iterator[Layout]:
    """Of a cluster on which job 1 took 300 s of four dynamic nodes, which came 10 s before and left 100 s after it."""
    made = cluster_at(shared_backend.home)
    node_log.append(made.folder, STATIC, "trn1.32xlarge", "up", BEGAN - timedelta(hours=1))
    for node in DYNAMIC:
        node_log.append(made.folder, node, "trn1.32xlarge", "up", BEGAN - timedelta(seconds=10))
        node_log.append(made.folder, node, "trn1.32xlarge", "down", BEGAN + timedelta(seconds=400))
    made.completed_jobs.write_text(
        f"JobId=1 UserId=ubuntu(1000) Name={HOSTILE} JobState=COMPLETED Partition=compute1 TimeLimit=UNLIMITED "
        "StartTime=2026-11-23T02:40:00 EndTime=2026-11-23T02:45:00 NodeList=compute1-dy-queue1-i1-[1-4] NodeCnt=4 "
        "SubmitTime=2026-11-23T02:39:00 ExitCode=0:0 \n"
    )
    yield made
    shutil.rmtree(made.folder.parent)


@pytest.fixture
def page(shared_backend: Backend) -> Visitor:
    """One who was let in."""
    return visitor(shared_backend)


def words(body: str) -> str:
    """What is read, without marks."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", body)).split())


def test_a_home_without_clusters(page: Visitor) -> None:
    """Names the command that makes one."""
    answer = page.ask("/ui/clusters")
    assert answer.status == 200
    assert "windtunnel cluster create -c cluster.yaml -n NAME" in words(answer.body)


def test_clusters_are_listed(layout: Layout, page: Visitor) -> None:
    """Each with its states, its nodes by queue and its jobs; one whose files are damaged says so."""
    submit(layout, 2, "runs", (STATIC,))
    submit(layout, 3, "waits")
    broken = cluster_at(layout.folder.parents[1], "broken")
    (broken.folder / "cluster.json").write_text("{")
    listed = page.ask("/ui/clusters").body
    assert 'href="/ui/clusters/post"' in listed
    told = words(listed)
    assert "CREATE_COMPLETE" in told and "us-west-2" in told and "RUNNING" in told
    assert "compute1 1 of 16" in told
    assert "1 running, 1 pending" in told
    assert "DAMAGED" in told and "cluster.json is damaged" in told
    assert "DAMAGED" in page.ask("/ui/clusters/broken").body


def test_a_cluster(layout: Layout, page: Visitor) -> None:
    """Its queues, nodes, jobs and file; and the commands that change it, for nothing here does."""
    submit(layout, 2, "runs", (STATIC,))
    body = page.ask("/ui/clusters/post").body
    told = words(body)
    assert "c5.4xlarge" in told and "172.18.0.2" in told
    assert f"{STATIC} up trn1.32xlarge, static" in told
    assert DYNAMIC[0] not in told
    assert "Bill so far" in told
    submit(layout, 3, "waits")
    assert re.search("3 waits PENDING .* – – 2 runs RUNNING", words(page.ask("/ui/clusters/post").body))
    assert "COMPLETED compute1 4" in told and "5 min 00 s" in told
    assert words(POST) in told
    for word in ("ssh", "update", "stop", "start", "delete", "report"):
        assert f"windtunnel cluster {word} post" in told
    assert "<form" not in body
    assert page.post("/ui/clusters/post").status == 405


def test_the_bill_of_a_job(layout: Layout, page: Visitor) -> None:
    """As the report has it: 4 nodes for 300 s, and for 110 s more; the rest is the command's."""
    told = words(page.ask("/ui/clusters/post/jobs/1").body)
    assert "4 nodes x 300 s = 1,200 node-seconds, 440 more idle" in told
    assert "EC2 $7.17 + $2.63 idle" in told
    assert "windtunnel cluster report post 1" in told
    assert DYNAMIC[3] in told


def test_the_bill_of_a_job_so_far(layout: Layout, page: Visitor) -> None:
    """Of one that runs, of its nodes until now; of one that waits nothing."""
    submit(layout, 2, "runs", (STATIC,))
    submit(layout, 3, "waits")
    told = words(page.ask("/ui/clusters/post/jobs/2").body)
    assert "Bill so far" in told and "1 node x" in told
    assert "nothing is billed yet" in words(page.ask("/ui/clusters/post/jobs/3").body)


def test_what_others_chose_is_text(layout: Layout, page: Visitor) -> None:
    """Names of jobs and nodes, and the file, are neither marks nor hidden."""
    submit(layout, 2, HOSTILE, (STATIC,))
    node_log.append(layout.folder, HOSTILE, "trn1.32xlarge", "up")
    (layout.folder / "configuration.yaml").write_text(f"{POST}# {HOSTILE}\n")
    for path in ("", "/post", "/post/jobs/1", "/post/jobs/2"):
        body = page.ask(f"/ui/clusters{path}").body
        assert "<script>alert" not in body
        assert "\u202e" not in body
    assert unescape(page.ask("/ui/clusters/post").body).count("<script>alert(1)</script>\\u202e\"'&") == 3


def test_what_is_not_there(layout: Layout, page: Visitor) -> None:
    """Is said as that, whatever was asked for."""
    clusters = ("none", "none/-/live", "..", "%2e%2e", "post%2f..%2fpost", "-")
    for path in (*clusters, "post/jobs/9", "post/jobs/x", f"post/jobs/{'9' * 5000}"):
        assert page.ask(f"/ui/clusters/{path}").status == 404, path
    assert "All clusters" in page.ask("/ui/clusters/post/jobs/9").body


@pytest.mark.parametrize("path", ["/ui/clusters/-/live", "/ui/clusters/post/-/live"])
def test_pages_follow(layout: Layout, page: Visitor, path: str) -> None:
    """What is there comes first, then a job that was submitted since."""
    with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Cookie": page.cookie})
        response = connection.getresponse()
        assert response.status == 200
        assert "0 pending" in message(response)
        submit(layout, 2, "waits")
        assert "1 pending" in message(response)


def message(response: http.client.HTTPResponse) -> str:
    """The next one, as text."""
    line = b""
    while not line.startswith(b"data: "):
        line = response.readline()
        assert line
    return words(" ".join(json.loads(line.removeprefix(b"data: ")).values()))
