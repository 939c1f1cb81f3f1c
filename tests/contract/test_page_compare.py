"""Jobs side by side, from a real server."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.contract.conftest import Backend
from tests.contract.page import visitor
from tests.contract.test_page_answer import ended_job
from tests.fakes.counters import counters
from tests.fakes.wire import create_request

__all__ = ["counters"]

PATIENCE = "windtunnel_local.ui.pages.compare._PATIENCE_S"
HOSTILE = '</table><script>alert(1)</script>\u202e"'


def compare(*names: str) -> str:
    """The page's address."""
    return f"/ui/compare?{urlencode([('job', name) for name in names])}"


@pytest.fixture(scope="module")
def pair(shared_backend: Backend, counters: Any) -> Backend:
    """A server with such jobs."""
    return with_jobs(shared_backend, counters)


def with_jobs(backend: Backend, counters: Any) -> Backend:
    """An old job, and a new one with another hyperparameter and one finding less."""
    note = {"kind": "sync", "severity": "warning", "line": "train.py:7", "message": "It waits. " + HOSTILE}
    ended_job(backend, "old", counters(diagnostics=[note]))
    backend.client("sagemaker").create_training_job(
        **create_request("new", HyperParameters={"epochs": "3", "lr": HOSTILE})
    )
    ended_job(backend, "newest", counters(diagnostics=[]))
    ended_job(backend, "unseen", counters())  # of an older simulator, which looked for nothing
    return backend


def test_what_differs_is_shown_and_the_rest_folded(pair: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cost as modelled, and what is gone."""
    monkeypatch.setattr(PATIENCE, 60.0)
    body = visitor(pair).ask(compare("newest", "old")).body
    assert body.index("old</bdi>") < body.index("newest</bdi>")
    assert "Hyperparameters: no difference" in body
    assert "1 that all share" in body
    assert '<strong class="gone">gone</strong>' in body
    assert body.count(", prices of ") == 2
    assert " style=" not in body


def test_a_cost_that_is_not_known_yet_is_told_from_none(
    backend: Backend, counters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that has no time for it."""
    monkeypatch.setattr(PATIENCE, -1.0)
    body = visitor(with_jobs(backend, counters)).ask(compare("newest", "old")).body
    assert body.count("being worked out: load this page again") == 2


def test_text_of_jobs_stays_text(pair: Backend) -> None:
    """Hyperparameters and findings are what a script or a user wrote."""
    body = visitor(pair).ask(compare("old", "new", "unseen")).body
    assert "not looked at" in body
    assert "<script>alert" not in body
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in body


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), "Choose 2 to 6 jobs"),
        (("old",), "Choose 2 to 6 jobs"),
        (("old", "old"), "Choose 2 to 6 jobs"),
        (("old", "nobody", "<b>"), "There is no job of the name <bdi>&lt;b&gt;"),
        (("a", "b", "c", "d", "e", "f", "g"), "1 more was asked for"),
        (("old", "newest", "\x00" * 300), "There is no job"),
    ],
)
def test_any_query_is_a_page(pair: Backend, names: tuple[str, ...], words: str) -> None:
    """It says what it lacks."""
    answer = visitor(pair).ask(compare(*names))
    assert answer.status == 200
    assert words in answer.body


def test_six_jobs_with_all_that_a_job_may_have_fit_a_page(shared_backend: Backend) -> None:
    """Long values are cut where they stand side by side, and of too many rows it says how many more there are."""
    names = [f"big-{number}" for number in range(6)]
    longest = '"\u202e'  # as they are sent
    values = {f"{longest * 100}{number:02}": longest * 1200 for number in range(80)}
    sagemaker = shared_backend.client("sagemaker")
    for job in names:
        own = {name: f"{job}{value}" for name, value in values.items()}
        sagemaker.create_training_job(**create_request(job, HyperParameters=own))
    answer = visitor(shared_backend).ask(compare(*names))
    assert answer.status == 200
    assert len(answer.body.encode()) < 200_000
    assert re.search("[1-9][0-9] more differ", answer.body)


def test_findings_that_a_script_made_up_fit_a_page(shared_backend: Backend, counters: Any) -> None:
    """A job's own code may have written any counters.json: megabytes of page came of one like this."""
    odd = '\u202e"<' * 150
    made_up = [
        {"kind": f"{number}{odd}", "severity": odd, "line": odd, "message": odd, "advice": odd}
        for number in range(100)
    ]
    for name in ("one", "two"):
        ended_job(shared_backend, name, counters(diagnostics=made_up))
    one = visitor(shared_backend)
    for path in (compare("one", "two"), "/ui/jobs/one", "/ui/jobs/one/answer"):
        answer = one.ask(path)
        assert answer.status == 200
        assert len(answer.body.encode()) < 200_000, path
    assert re.search("[1-9][0-9] more are left out", one.ask(compare("one", "two")).body)
