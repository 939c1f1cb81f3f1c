"""`windtunnel endpoints`, `invoke`, `endpoint-logs`, `rm --endpoint`: an endpoint from the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_endpoints import FakeEndpoints
from tests.unit.sdk.fake_service import FakeService
from windtunnel import Model
from windtunnel.session.endpoint_service import Answer
from windtunnel.session.local import LocalSession


@pytest.fixture
def endpoint(jobs: FakeService, local: LocalSession, endpoints: FakeEndpoints) -> FakeEndpoints:
    """An endpoint ``e`` that serves, on two instances."""
    Model("mine:1", name="m", session=local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    return endpoints


def test_endpoints_and_their_bill(endpoint: FakeEndpoints, invoke: Invoke, project: Path) -> None:
    """Name, state, instances and dollars; a price that is not known is no 0."""
    captured = invoke("endpoints")
    header, row = captured.out.splitlines()
    assert header.split()[:2] == ["NAME", "STATUS"]
    assert row.split()[:5] == ["e", "InService", "2", "x", "ml.c5.xlarge"] and row.split()[-1] == "?"
    assert "Here they cost nothing" in captured.err
    listed = {
        "instance_type": "ml.c5.xlarge", "region": "us-east-1", "offering": "SageMaker hosting on-demand",
        "usd_per_hour": "0.25", "effective_date": "2025-01-01", "fetched_at": "2025-01-02T00:00:00Z", "sku": "S",
        "description": "",
    }  # fmt: skip
    (project / "home").mkdir(exist_ok=True)
    prices = {"schema": "windtunnel.prices/1", "prices": [listed]}
    (project / "home" / "prices.json").write_text(json.dumps(prices))
    day, so_far = invoke("endpoints").out.splitlines()[1].split()[-2:]
    assert day == "12.00" and float(so_far.replace(",", "")) > 12
    assert json.loads(invoke("endpoints", "--json").out)[0]["EndpointStatus"] == "InService"
    assert invoke("endpoints", "--quiet").out == "e\n"


def test_none(jobs: FakeService, invoke: Invoke) -> None:
    """Said on stderr."""
    assert invoke("endpoints") == ("", "No endpoints.\n")


def test_a_failed_one_has_its_reason(endpoint: FakeEndpoints, invoke: Invoke) -> None:
    """And one whose configuration is gone is listed all the same; neither has cost anything so far."""
    endpoint.script, endpoint.failure = ("Failed",), "no\n\x1b[2J ping"
    endpoint.configs.clear()
    row = invoke("endpoints").out.splitlines()[1]
    assert row.split()[2] == "?" and row.endswith("?        no \\x1b[2J ping")


def test_invoke(endpoint: FakeEndpoints, invoke: Invoke, project: Path) -> None:
    """JSON from the line, or a file as it is; the answer and nothing else on stdout."""
    assert invoke("invoke", "e", "--json", '{"inputs": "good"}').out == '{"label": 1}'
    (project / "cat.png").write_bytes(b"\x89PNG")
    line = ["invoke", "e", "--file", "cat.png", "--content-type", "image/png", "--accept", "text/csv"]
    invoke(*line)
    assert endpoint.asked == [
        {
            "EndpointName": "e",
            "ContentType": "application/json",
            "Accept": "application/json",
            "Body": b'{"inputs": "good"}',
        },
        {"EndpointName": "e", "ContentType": "image/png", "Accept": "text/csv", "Body": b"\x89PNG"},
    ]


@pytest.mark.parametrize("body", [b"1,2", b"1,2\n"])
def test_an_answer_ends_its_line_on_a_terminal_alone(
    endpoint: FakeEndpoints, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """Once, also where the answer has a line's end; a pipe or a file gets the bytes as they are."""
    endpoint.answer = Answer(body, "text/csv")
    asked = ("invoke", "e", "--json", "1")
    assert invoke(*asked).out == body.decode()
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert invoke(*asked).out == "1,2\n"


def test_wrong_questions(endpoint: FakeEndpoints, invoke: Invoke) -> None:
    """What is no JSON, no file or no endpoint is said, and nothing is sent."""
    assert "is no JSON" in invoke("invoke", "e", "--json", "{inputs: 1}", exits=2).err
    assert "nope cannot be read" in invoke("invoke", "e", "--file", "nope", exits=2).err
    assert "windtunnel endpoints" in invoke("invoke", "nope", "--json", "1", exits=1).err
    assert endpoint.asked == []


def test_load(endpoint: FakeEndpoints, invoke: Invoke) -> None:
    """The same question again and again at a rate; marked as measured, with what is modelled beside it if asked for."""
    line = ["inference", "--endpoint", "e", "--json", "[[1, 2]]", "--rate", "20", "--duration", "0.2"]
    out = invoke(*line).out
    assert 1 < len(endpoint.asked) <= 1 + 4  # one that does not count, and 20 a second for 0.2 s
    assert {asked["Body"] for asked in endpoint.asked} == {b"[[1, 2]]"}
    assert "Measured here" in out and "P50" in out and "P99" in out and "inf2" not in out.lower()
    out = invoke("inference", "BERT-Base", *line[1:]).out
    assert out.index("Measured here") < out.index("INF2.XLARGE") and "MODELLED" in out.upper()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--endpoint", "e"], 2, "needs a question"),
        (["--endpoint", "e", "--json"], 2, "needs a question"),
        (["--endpoint", "e", "--json", "{a"], 2, "is no JSON"),
        (["--endpoint", "e", "--json", "[" * 2000], 2, "is no JSON"),
        (["--endpoint", "e", "--json", "1", "--duration", "0"], 2, "duration must be above 0"),
        (["--endpoint", "e", "--json", "1", "--validate"], 2, "given: --validate"),
        (
            ["--endpoint", "e", "--json", "1", "--batch-size", "8"],
            2,
            "need an ARCHITECTURE; given: --batch-size",
        ),
        (["--endpoint", "e", "--json", "1", "--on", "2026-01-01"], 2, "need an ARCHITECTURE; given: --on"),
        (["--endpoint", "nope", "--json", "1"], 1, "windtunnel endpoints"),
        (["--clients", "2"], 2, "needs --endpoint NAME"),
        (["--endpoint", "e", "--json", "1", "--clients", "51"], 2, "from 1 to 50"),
        (["--json", "BERT-Base"], 2, "put --json last"),
    ],
)
def test_a_load_that_is_none(
    endpoint: FakeEndpoints, invoke: Invoke, words: list[str], code: int, message: str
) -> None:
    """Said before anything is sent."""
    assert message in invoke("inference", *words, exits=code).err
    assert endpoint.asked == []


def test_logs(endpoint: FakeEndpoints, invoke: Invoke) -> None:
    """What it printed, or why there is nothing."""
    assert invoke("endpoint-logs", "e") == ("", "windtunnel: e has no log (yet): it is InService.\n")
    endpoint.printed["e"] = {"AllTraffic/i-1": ["a", "b", "c"]}
    invoke("endpoint-logs", "e", "-n", "1e20")
    assert invoke("endpoint-logs", "e", "-n", "2").out == "b\nc\n"
    invoke("endpoint-logs", "nope", exits=1)


def test_rm(endpoint: FakeEndpoints, invoke: Invoke) -> None:
    """Endpoint, configuration and model; a job of that name is none of its business, nor the other way round."""
    assert "No training job 'e'" in invoke("rm", "e", exits=1).err
    captured = invoke("rm", "--endpoint", "e", "nope", exits=1)
    assert captured.out == "e is deleted.\n" and "No endpoint 'nope'" in captured.err
    assert (endpoint.models, endpoint.configs, endpoint.endpoints) == ({}, {}, {})
