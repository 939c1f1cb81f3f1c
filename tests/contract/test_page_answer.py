"""The page of the answer: the report's figures by what the query says, and the report as a file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.contract.conftest import Backend
from tests.contract.page import Answer, Visitor, visitor
from tests.fakes.counters import counters
from tests.fakes.runner import FakeContainer
from tests.fakes.wire import create_request
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS

__all__ = ["counters"]

PAGE = "/ui/jobs/bert/answer"
Ask = Callable[..., Answer]


def ended_job(backend: Backend, name: str, document: dict[str, Any] | str | None) -> None:
    """A job that has left these counters."""
    s3 = backend.client("s3")
    s3.create_bucket(Bucket="out")
    backend.run(name)
    if document is not None:
        body = document if isinstance(document, str) else json.dumps(document)
        s3.put_object(Bucket="out", Key=f"models/{name}/windtunnel/counters.json", Body=body.encode())


@pytest.fixture(scope="module")
def one(shared_backend: Backend, counters: Any) -> Visitor:
    """Someone who may see the page of a job that has been rehearsed."""
    ended_job(shared_backend, "bert", counters(job="bert"))
    return visitor(shared_backend)


def test_the_answer_comes_first_and_follows_the_query(one: Visitor) -> None:
    """Other instances, nodes and offerings are other figures, as the report has them."""
    usual = one.ask(PAGE)
    assert usual.status == 200
    assert usual.body.index("The answer</h2>".replace("</h2>", "")) < usual.body.index("Measured here")
    assert "trn1.32xlarge" in usual.body
    query = urlencode(
        [
            ("instance", "ml.p4d.24xlarge"), ("instance", "ml.trn1.32xlarge"), ("samples", "36000000"), ("nodes", "2"),
            ("offering", "EC2 on-demand"), ("gpu", "fp32"),
        ]
    )  # fmt: skip
    chosen = one.ask(f"{PAGE}?{query}")
    assert chosen.status == 200
    for needed in (
        "36,000,000 samples",
        "p4d.24xlarge x 2, fp32",
        "$21.957642",
        "EC2 on-demand",
        "More nodes",
    ):
        assert needed in chosen.body
    assert f"report.csv?{query}".replace("&", "&amp;") in chosen.body
    assert " style=" not in chosen.body
    assert len(chosen.body.encode()) < 200_000


def test_more_nodes_have_the_batch_of_the_answer(one: Visitor) -> None:
    """The one that was chosen, on as many nodes as were chosen: all stand on one page."""
    page = one.ask(f"{PAGE}?instance=ml.trn1.32xlarge&samples=3600000&nodes=4&batch=total&size=2048").body
    table = page.partition("Scaling on ml.trn1.32xlarge, as a table")[2].partition("</table>")[0]
    assert set(re.findall(r'data-label="batch">([^<]*)<', table)) == {"2,048"}


def test_an_instance_without_a_price_says_how_it_has_one(one: Visitor) -> None:
    """With its cost bought so, and a way to buy all so; where there is none in any way, what to do."""
    query = "instance=ml.trn1.32xlarge&instance=ml.trn2.48xlarge&samples=1000000"
    page = one.ask(f"{PAGE}?{query}").body
    assert "trn2.48xlarge has no price as SageMaker training on-demand." in page
    assert "at $35.76 an hour" in page
    way = re.search(r'href="([^"]*offering=EC2\+Capacity\+Block[^"]*)">All bought so', page)
    assert way
    bought = one.ask(unescape(way[1])).body
    assert "has no price as" not in bought
    said = re.search(r"As EC2 Capacity Block: <strong>([^<]+)</strong>", page)
    assert said
    assert f'<td class="figure" data-label="cost (80 % interval)">{said[1]}</td>' in bought
    nowhere = one.ask(f"{PAGE}?instance=ml.trn1.32xlarge&instance=ml.g5.48xlarge&on=2024-12-01").body
    assert "g5.48xlarge has no price as SageMaker training on-demand on 2024-12-01." in nowhere
    assert "windtunnel prices refresh" in nowhere
    early = one.ask(f"{PAGE}?instance=ml.trn1.32xlarge&instance=ml.p5.48xlarge&on=2023-01-01").body
    assert "$34.61" not in early and "$55.04" not in early
    assert "p5.48xlarge has no price as SageMaker training on-demand on 2023-01-01." in early
    assert "The book has none of that day in any other way." in early


def test_what_to_do_next_can_be_done_on_the_page(one: Visitor) -> None:
    """No option of a shell's and no argument of Python's: the fields beside."""
    for query in ("", "?instance=ml.trn1.32xlarge&instance=ml.p5.48xlarge", "?instance=ml.trn1.32xlarge"):
        page = one.ask(f"{PAGE}{query}").body
        assert "Samples of an epoch." in page or "Tick others." in page
        for elsewhere in ("--full-scale-samples", "--instances", "--price", "FullScale("):
            assert elsewhere not in page
    page = one.ask(f"{PAGE}?samples=3600000").body
    assert re.search(r"With a batch of \d+ \(Batch: this many in all\) \S+ costs least", page)
    assert "--batch" not in page
    ended_job(one.backend, "reviews", {**COUNTERS, "job": "reviews"})
    page = one.ask("/ui/jobs/reviews/answer?samples=3600000").body
    assert "(Batch: the job&#39;s samples on each worker)" in page and "--batch" not in page


def test_a_finding_of_no_line_names_none(shared_backend: Backend, counters: Any) -> None:
    """The report has a question mark there."""
    found = {
        "kind": "fp32",
        "severity": "note",
        "line": "?",
        "message": "It computes in fp32.",
        "advice": "Cast.",
    }
    ended_job(shared_backend, "fp32", counters(job="fp32", diagnostics=[found]))
    page = visitor(shared_backend).ask("/ui/jobs/fp32/answer").body
    assert "<li>note: It computes in fp32. Cast.</li>" in page


def test_a_failed_job_says_why_in_a_line_and_has_nothing_to_choose(backend: Backend) -> None:
    """The file keeps the whole reason."""
    backend.client("s3").create_bucket(Bucket="out")
    reason = 'ExecuteUserScriptError:\nExitCode 1\nErrorMessage "KeyError: 7"\nCommand "torchrun train.py"'

    def script(container: FakeContainer) -> int:
        container.write("/opt/ml/output/failure", reason)
        return 1

    backend.runner.script = script
    assert backend.run("bert")["TrainingJobStatus"] == "Failed"
    page = visitor(backend).ask(PAGE)
    assert "It failed: KeyError: 7" in page.body
    assert "ExecuteUserScriptError" not in page.body
    assert "<fieldset>" not in page.body
    report = json.loads(visitor(backend).ask(f"{PAGE}/report.json").body)
    assert "ExecuteUserScriptError" in report["measured"]["failure_reason"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("nodes=0", "Nodes: &#39;0&#39; is no whole number from 1"),
        ("samples=nan", "no whole number"),
        ("samples=" + "9" * 5000, "no whole number"),
        ("on=2010-01-01", "Ask for a later date"),
        ("offering=SageMaker+managed+spot", "State the discount"),
        ("instance=%3Cscript%3Ealert(1)%3C/script%3E", "none of those"),
        ("nodes=1000001", "Not with these choices"),
        ("batch=total&size=1", "Not with these choices"),
        ("%00=%ff&&&=&instance", ""),
    ],
)
def test_a_wrong_query_has_a_message_and_is_no_error(one: Visitor, query: str, words: str) -> None:
    """Beside the field, escaped, and the page is whole."""
    answer = one.ask(f"{PAGE}?{query}")
    assert answer.status == 200
    assert words in answer.body
    assert "<script>alert" not in answer.body
    assert one.ask(f"{PAGE}/report.json?{query}").status == (400 if words else 200)


def test_the_report_as_a_file(one: Visitor) -> None:
    """Each form has the choice in it, and is kept rather than opened."""
    query = "instance=ml.p4d.24xlarge&samples=1000000"
    for kind, media_type in (("json", "application/json"), ("csv", "text/csv; charset=utf-8")):
        answer = one.ask(f"{PAGE}/report.{kind}?{query}")
        assert answer.headers["content-type"] == media_type
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''bert.{kind}"
    report = json.loads(one.ask(f"{PAGE}/report.json?{query}").body)
    assert report["modelled"]["full_scale"]["train_samples"] == 1_000_000
    assert [item["instance_type"] for item in report["modelled"]["estimates"]] == ["ml.p4d.24xlarge"]
    rows = list(csv.DictReader(io.StringIO(one.ask(f"{PAGE}/report.csv?{query}").body)))
    assert {row["instance_type"] for row in rows} == {"ml.p4d.24xlarge"}
    assert one.ask(f"{PAGE}/report.exe").status == 404


def test_charts_are_drawn_where_matplotlib_is(one: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the page says what is missing, and so does the address of the file."""
    pytest.importorskip("matplotlib")
    assert "report.png" in one.ask(PAGE).body
    html = one.ask(f"{PAGE}/report.html")
    assert html.status == 200
    assert "<svg" in html.body
    monkeypatch.setattr("windtunnel.rendering.plots.chart.available", lambda: False)
    monkeypatch.setattr("windtunnel_local.ui.answer.exports.available", lambda: False)
    assert "report.png" not in one.ask(PAGE).body
    missing = one.ask(f"{PAGE}/report.png")
    assert missing.status == 404
    assert "windtunnel[plot]" in missing.body


def test_a_job_that_left_nothing_to_model_says_so(shared_backend: Backend) -> None:
    """Nothing, or what its own code wrote there."""
    for number, left in enumerate(
        [None, "", "[]", "{}", '{"schema": "windtunnel.counters/1"}', '{"schema": 7, "train": "x"}']
    ):
        ended_job(shared_backend, f"left-{number}", left)
        answer = visitor(shared_backend).ask(f"/ui/jobs/left-{number}/answer")
        assert answer.status == 200
        said = ("No answer", "no longer what was stored", "Not with")
        assert any(words in answer.body for words in said), left


def test_a_job_that_runs_has_no_answer_yet(backend: Backend) -> None:
    """The page says when it has one."""
    backend.client("s3").create_bucket(Bucket="out")
    backend.client("sagemaker").create_training_job(**create_request("bert", Environment={"WAIT": "1"}))
    answer = visitor(backend).ask(PAGE)
    assert answer.status == 200
    assert "has not ended" in answer.body
    assert visitor(backend).ask("/ui/jobs/none/answer").status == 404
