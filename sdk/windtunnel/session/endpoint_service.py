"""The port of models and endpoints: what the SDK asks of SageMaker's hosting, and of CloudWatch for its logs.

`boto3_endpoints` makes the calls, against AWS or the local backend; tests use a small real class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windtunnel.session.training_service import LogLine

LOG_GROUP = "/aws/sagemaker/Endpoints"
"""Each endpoint has a group below it, of its own name."""


@dataclass(frozen=True)
class Answer:
    """A model's answer, whole."""

    body: bytes
    content_type: str


class EndpointService(Protocol):
    """What the SDK needs. All calls block; a refused one raises `ServiceCallFailed`."""

    def create_model(self, request: Mapping[str, Any]) -> bool:
        """CreateModel; False when there is one of that name already."""

    def delete_model(self, name: str) -> None:
        """DeleteModel."""

    def create_config(self, request: Mapping[str, Any]) -> None:
        """CreateEndpointConfig."""

    def describe_config(self, name: str) -> dict[str, Any]:
        """DescribeEndpointConfig."""

    def delete_config(self, name: str) -> None:
        """DeleteEndpointConfig."""

    def create(self, request: Mapping[str, Any]) -> None:
        """CreateEndpoint: asks, does not wait."""

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeEndpoint; raises `EndpointNotFound`."""

    def delete(self, name: str) -> None:
        """DeleteEndpoint: asks, does not wait; raises `EndpointNotFound`."""

    def list_all(self) -> list[dict[str, Any]]:
        """ListEndpoints: all summaries, newest first."""

    def invoke(self, request: Mapping[str, Any]) -> Answer:
        """InvokeEndpoint, waiting for the model, up to 60 s; raises `EndpointNotFound`."""

    def invoke_async(self, request: Mapping[str, Any]) -> tuple[str, str | None]:
        """InvokeEndpointAsync: where the answer will be, and where the reason if there is none."""

    def log_streams(self, endpoint: str) -> list[str]:
        """Names of the endpoint's log streams, one a container; empty while there are none."""

    def read_log(self, endpoint: str, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start) and the token that continues behind them."""
