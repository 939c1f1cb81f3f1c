"""`EndpointService` over boto3: the same calls to AWS and to the local backend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from windtunnel.errors import EndpointNotFound, ServiceCallFailed
from windtunnel.session.boto3_calls import BotoCalls
from windtunnel.session.endpoint_service import LOG_GROUP, Answer, EndpointService
from windtunnel.session.training_service import LogLine

# Texts of AWS's errors; SDK v2 matches them too.
_EXISTS = "Cannot create already existing model"
_MISSING = re.compile(r"Could not find endpoint\b|^Endpoint \S+ of account \S+ not found")
_UNTYPED = "application/octet-stream"


class BotoEndpoints(EndpointService):
    """`EndpointService` over the clients of a session."""

    def __init__(self, calls: BotoCalls) -> None:
        self._calls = calls

    def create_model(self, request: Mapping[str, Any]) -> bool:
        try:
            self._change("create_model", request)
        except ServiceCallFailed as error:
            if _EXISTS in error.service_message:
                return False
            raise
        return True

    def delete_model(self, name: str) -> None:
        self._change("delete_model", {"ModelName": name})

    def create_config(self, request: Mapping[str, Any]) -> None:
        self._change("create_endpoint_config", request)

    def describe_config(self, name: str) -> dict[str, Any]:
        return self._ask("describe_endpoint_config", {"EndpointConfigName": name})

    def delete_config(self, name: str) -> None:
        self._change("delete_endpoint_config", {"EndpointConfigName": name})

    def create(self, request: Mapping[str, Any]) -> None:
        self._change("create_endpoint", request)

    def describe(self, name: str) -> dict[str, Any]:
        with self._endpoint(name):
            return self._ask("describe_endpoint", {"EndpointName": name})

    def delete(self, name: str) -> None:
        with self._endpoint(name):
            self._change("delete_endpoint", {"EndpointName": name})

    def list_all(self) -> list[dict[str, Any]]:
        newest = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}
        pages = self._calls.pages("sagemaker", "list_endpoints", newest, "NextToken")
        return [summary for page in pages for summary in page["Endpoints"]]

    def invoke(self, request: Mapping[str, Any]) -> Answer:
        """InvokeEndpoint. A request whose answer was lost is not repeated: the model may have run, with effects."""
        from botocore.exceptions import BotoCoreError

        with self._endpoint(str(request["EndpointName"])):
            answer = self._calls.call("sagemaker-runtime", "invoke_endpoint", request, repeat=False)
        try:
            with answer["Body"] as body:
                return Answer(body.read(), str(answer.get("ContentType") or _UNTYPED))
        except BotoCoreError as error:
            raise ServiceCallFailed("InvokeEndpoint", type(error).__name__, str(error)) from error

    def invoke_async(self, request: Mapping[str, Any]) -> tuple[str, str | None]:
        with self._endpoint(str(request["EndpointName"])):
            answer = self._calls.call("sagemaker-runtime", "invoke_endpoint_async", request, repeat=False)
        return answer["OutputLocation"], answer.get("FailureLocation")

    def log_streams(self, endpoint: str) -> list[str]:
        return self._calls.streams(f"{LOG_GROUP}/{endpoint}", None)

    def read_log(self, endpoint: str, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        return self._calls.events(f"{LOG_GROUP}/{endpoint}", stream, token)

    @contextmanager
    def _endpoint(self, name: str) -> Iterator[None]:
        """Turn AWS's error for a missing endpoint into `EndpointNotFound`."""
        try:
            yield
        except ServiceCallFailed as error:
            if _MISSING.search(error.service_message):
                raise EndpointNotFound(error.operation, name, local=self._calls.local) from error
            raise

    def _ask(self, method: str, members: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._calls.call("sagemaker", method, members))

    def _change(self, method: str, members: Mapping[str, Any]) -> None:
        self._calls.call("sagemaker", method, members, repeat=False)
