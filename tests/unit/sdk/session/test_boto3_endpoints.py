"""boto3 behind the port of endpoints: AWS's refusals in our words, and no question is asked twice."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.stub import Stubber

from tests.fakes.http import serving
from windtunnel import EndpointNotFound, ServiceCallFailed, WindtunnelError
from windtunnel.session import boto3_calls
from windtunnel.session.aws import AwsSession
from windtunnel.session.boto3_calls import BotoCalls
from windtunnel.session.boto3_endpoints import BotoEndpoints
from windtunnel.session.endpoint_service import EndpointService

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "s", "region_name": "eu-west-1"}
ARN = "arn:aws:sagemaker:eu-west-1:123456789012"
TIMES = {"CreationTime": datetime.now(timezone.utc), "LastModifiedTime": datetime.now(timezone.utc)}


class Stubbed:
    """A boto3 session whose real clients answer what was agreed, in that order, and check each request."""

    region_name = "eu-west-1"

    def __init__(self) -> None:
        self.stubs: dict[str, Stubber] = {}
        self.configs: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}

    def on(self, service: str) -> Stubber:
        """The stub of a service."""
        if service not in self.stubs:
            self._clients[service] = boto3.client(service, **KEYS)
            self.stubs[service] = Stubber(self._clients[service])
        return self.stubs[service]

    def client(self, service: str, **keywords: Any) -> Any:
        """The stubbed client."""
        self.configs[service] = keywords.get("config")
        self.on(service)
        return self._clients[service]


@pytest.fixture
def boto() -> Iterator[Stubbed]:
    """All that was agreed is asked."""
    stubbed = Stubbed()
    for service in ("sagemaker", "sagemaker-runtime", "logs"):
        stubbed.on(service)
    with ExitStack() as active:
        for stub in stubbed.stubs.values():
            active.enter_context(stub)
        yield stubbed
    for stub in stubbed.stubs.values():
        stub.assert_no_pending_responses()


def endpoints(boto: Stubbed) -> EndpointService:
    return AwsSession(boto).endpoints


@contextmanager
def answering(*answers: int | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers with these statuses, or hangs up; its URL, and what it was asked."""
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            status = answers[len(asked) - 1]
            if status is None:
                self.close_connection = True
                return
            if status == 200:
                time.sleep(1)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}", asked


@pytest.mark.parametrize(("answers", "asked"), [((None,) * 5, 1), ((200,) * 5, 1), ((503, 400), 2)])
def test_botocore_does_not_ask_again_what_may_have_arrived(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[int | None, ...], asked: int
) -> None:
    """The connection closed, or the answer was late: the model may be at work. Refused, it is asked again."""
    monkeypatch.setattr(boto3_calls, "_RUNTIME_READ_TIMEOUT_S", 0.3)
    with answering(*answers) as (url, questions):
        keywords = {"endpoint_url": url, "config": Config(retries={"mode": "standard"})}
        session = boto3.Session(**KEYS)
        service = BotoEndpoints(BotoCalls(lambda: (session, keywords), local=False))
        with pytest.raises(ServiceCallFailed):
            service.invoke({"EndpointName": "e", "Body": b"hello"})
        assert questions == [b"hello"] * asked


def test_a_missing_endpoint(boto: Stubbed) -> None:
    """By AWS's words, of whichever call; what is missing behind an endpoint is another matter."""
    stub, runtime = boto.on("sagemaker"), boto.on("sagemaker-runtime")
    for method in ("describe_endpoint", "delete_endpoint"):
        stub.add_client_error(method, "ValidationException", f'Could not find endpoint "{ARN}:endpoint/e".')
    with pytest.raises(
        EndpointNotFound, match=r"'e' in this account and region\. `windtunnel endpoints --aws`"
    ):
        endpoints(boto).describe("e")
    with pytest.raises(EndpointNotFound):
        endpoints(boto).delete("e")
    said = "Endpoint e of account 123456789012 not found."
    runtime.add_client_error("invoke_endpoint", "ValidationError", said)
    with pytest.raises(EndpointNotFound):
        endpoints(boto).invoke({"EndpointName": "e", "Body": b""})
    assert boto.configs["sagemaker-runtime"].read_timeout == 80
    runtime.add_client_error(
        "invoke_endpoint", "ModelError", "Received server error (500) from primary: not found"
    )
    with pytest.raises(ServiceCallFailed, match="ModelError") as failed:
        endpoints(boto).invoke({"EndpointName": "e", "Body": b""})
    assert not isinstance(failed.value, EndpointNotFound)


def test_a_model_that_exists(boto: Stubbed) -> None:
    """No error; any other refusal is one."""
    stub = boto.on("sagemaker")
    stub.add_client_error(
        "create_model", "ValidationException", f'Cannot create already existing model "{ARN}:model/m".'
    )
    assert endpoints(boto).create_model({"ModelName": "m"}) is False
    stub.add_client_error("create_model", "ValidationException", "Could not access model data")
    with pytest.raises(ServiceCallFailed, match="Could not access"):
        endpoints(boto).create_model({"ModelName": "m"})


def test_all_pages_and_logs(boto: Stubbed) -> None:
    """All endpoints; the group of an endpoint's log has its name, and none yet is no error."""
    summary = {
        "EndpointName": "e",
        "EndpointArn": f"{ARN}:endpoint/e",
        "EndpointStatus": "InService",
        **TIMES,
    }
    first = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}
    stub, logs = boto.on("sagemaker"), boto.on("logs")
    stub.add_response("list_endpoints", {"Endpoints": [summary], "NextToken": "t"}, first)
    stub.add_response("list_endpoints", {"Endpoints": [summary]}, {**first, "NextToken": "t"})
    assert len(endpoints(boto).list_all()) == 2
    group = {"logGroupName": "/aws/sagemaker/Endpoints/e"}
    logs.add_response("describe_log_streams", {"logStreams": [{"logStreamName": "AllTraffic/i-1"}]}, group)
    assert endpoints(boto).log_streams("e") == ["AllTraffic/i-1"]
    logs.add_client_error("describe_log_streams", "ResourceNotFoundException", "none")
    assert endpoints(boto).log_streams("e") == []


def test_a_question_is_asked_once() -> None:
    """When its answer is lost, locally too: the model may have done what it was asked. A broken answer is an error."""

    class Lost:
        def __init__(self, answer: Any) -> None:
            self.calls, self.answer = 0, answer
            self.meta = boto3.client("sagemaker-runtime", **KEYS).meta

        def client(self, _: str, **__: Any) -> Any:
            return self

        def close(self) -> None: ...

        def invoke_endpoint(self, **_: Any) -> Any:
            self.calls += 1
            if isinstance(self.answer, Exception):
                raise self.answer
            return {"Body": self.answer}

    class Breaks(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1:1")

    for answer in (ConnectionClosedError(endpoint_url="http://127.0.0.1:1"), Breaks()):
        lost = Lost(answer)
        service = BotoEndpoints(BotoCalls(lambda lost=lost: (lost, {}), local=True))  # type: ignore[misc]
        with pytest.raises(WindtunnelError):
            service.invoke({"EndpointName": "e", "Body": b""})
        assert lost.calls == 1
