"""An `EndpointService` in memory: a real class with SageMaker's visible behaviour. botocore checks each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from windtunnel.errors import EndpointNotFound, ServiceCallFailed
from windtunnel.session.endpoint_service import Answer
from windtunnel.session.training_service import LogLine

CREATED = datetime(2026, 1, 31, 12, 0, 0, tzinfo=timezone.utc)


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def validated(operation: str, request: Mapping[str, Any], service: str = "sagemaker") -> dict[str, Any]:
    """The request, if botocore would send it."""
    shape = _model(service).operation_model(operation).input_shape
    report = ParamValidator().validate(dict(request), shape)
    assert not report.has_errors(), report.generate_report()
    return dict(request)


class FakeEndpoints:
    """Each look at an endpoint moves it one step along ``script``; its model answers what it was asked."""

    def __init__(self, *script: str, failure: str | None = None) -> None:
        self.script = script or ("Creating", "Creating", "InService")
        self.failure = failure
        self.models: dict[str, dict[str, Any]] = {}
        self.configs: dict[str, dict[str, Any]] = {}
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.looks: dict[str, int] = {}
        self.calls: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.answer = Answer(b'{"label": 1}', "application/json")
        self.printed: dict[str, dict[str, list[str]]] = {}
        self.printed_at_ms = int(CREATED.timestamp() * 1000)

    def _add(self, kind: str, what: dict[str, dict[str, Any]], name: str, request: dict[str, Any]) -> None:
        self.calls.append(f"Create{kind}")
        if name in what:
            said = f'Cannot create already existing {kind.lower()} "arn:aws:sagemaker:::{name}".'
            raise ServiceCallFailed(f"Create{kind}", "ValidationException", said)
        what[name] = request

    def _drop(self, kind: str, what: dict[str, dict[str, Any]], name: str) -> None:
        self.calls.append(f"Delete{kind}")
        if name not in what:
            said = f'Could not find {kind.lower()} "arn:aws:sagemaker:::{name}".'
            raise ServiceCallFailed(f"Delete{kind}", "ValidationException", said)
        del what[name]

    def create_model(self, request: Mapping[str, Any]) -> bool:
        """Record it."""
        if request["ModelName"] in self.models:
            self.calls.append("CreateModel")
            return False
        self._add("Model", self.models, request["ModelName"], validated("CreateModel", request))
        return True

    def delete_model(self, name: str) -> None:
        """Forget it."""
        self._drop("Model", self.models, name)

    def create_config(self, request: Mapping[str, Any]) -> None:
        """Record it."""
        checked = validated("CreateEndpointConfig", request)
        assert all(one["ModelName"] in self.models for one in checked["ProductionVariants"])
        self._add("EndpointConfig", self.configs, request["EndpointConfigName"], checked)

    def describe_config(self, name: str) -> dict[str, Any]:
        """What was recorded."""
        if name not in self.configs:
            said = "Could not find endpoint configuration"
            raise ServiceCallFailed("DescribeEndpointConfig", "ValidationException", said)
        return self.configs[name]

    def delete_config(self, name: str) -> None:
        """Forget it."""
        self._drop("EndpointConfig", self.configs, name)

    def create(self, request: Mapping[str, Any]) -> None:
        """Record it; from now on each look moves it."""
        checked = validated("CreateEndpoint", request)
        assert checked["EndpointConfigName"] in self.configs
        self._add("Endpoint", self.endpoints, request["EndpointName"], checked)

    def describe(self, name: str) -> dict[str, Any]:
        """The next step of the script."""
        if name not in self.endpoints:
            raise EndpointNotFound("DescribeEndpoint", name, local=True)
        self.looks[name] = self.looks.get(name, -1) + 1
        status = self.script[min(self.looks[name], len(self.script) - 1)]
        made = self.endpoints[name]
        found = {
            "EndpointName": name,
            "EndpointArn": f"arn:aws:sagemaker:us-east-1:000000000000:endpoint/{name}",
            "EndpointConfigName": made["EndpointConfigName"],
            "EndpointStatus": status,
            "CreationTime": CREATED,
        }
        if status == "Failed":
            found["FailureReason"] = self.failure
        if status == "InService":
            found["ProductionVariants"] = [{"VariantName": "AllTraffic", "CurrentInstanceCount": 2}]
        return found

    def delete(self, name: str) -> None:
        """Forget it."""
        if name not in self.endpoints:
            raise EndpointNotFound("DeleteEndpoint", name, local=True)
        self._drop("Endpoint", self.endpoints, name)

    def list_all(self) -> list[dict[str, Any]]:
        """Newest first."""
        last = len(self.script) - 1
        status = {name: self.script[min(self.looks.get(name, 0), last)] for name in self.endpoints}
        return [{"EndpointName": name, "EndpointStatus": status[name]} for name in reversed(self.endpoints)]

    def invoke(self, request: Mapping[str, Any]) -> Answer:
        """The answer set."""
        asked = validated("InvokeEndpoint", request, "sagemaker-runtime")
        if asked["EndpointName"] not in self.endpoints:
            raise EndpointNotFound("InvokeEndpoint", asked["EndpointName"], local=True)
        self.asked.append(asked)
        return self.answer

    def invoke_async(self, request: Mapping[str, Any]) -> tuple[str, str | None]:
        """Where nothing will be."""
        self.asked.append(validated("InvokeEndpointAsync", request, "sagemaker-runtime"))
        return "s3://models/out/1.out", "s3://models/failed/1-error.out"

    def log_streams(self, endpoint: str) -> list[str]:
        """Streams that have lines."""
        return sorted(self.printed.get(endpoint, ()))

    def read_log(self, endpoint: str, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """Two lines a page."""
        start = int(token or 0)
        lines = self.printed[endpoint][stream][start : start + 2]
        return [LogLine(self.printed_at_ms + start + i, line) for i, line in enumerate(lines)], str(
            start + len(lines)
        )
