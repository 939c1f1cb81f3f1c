"""The port of models and endpoints: the SDK's calls to SageMaker hosting, and to CloudWatch Logs for its logs.

`boto3_endpoints` makes the calls, against AWS or the local backend; tests use a small real class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windtunnel.session.training_service import LogLine

LOG_GROUP = "/aws/sagemaker/Endpoints"
"""Prefix of log groups: each endpoint has one, ``<prefix>/<endpoint's name>``."""


@dataclass(frozen=True)
class Answer:
    """A model's complete answer."""

    body: bytes
    content_type: str


class EndpointService(Protocol):
    """The calls that the SDK needs. All of them block; a refused call raises `ServiceCallFailed`."""

    def create_model(self, request: Mapping[str, Any]) -> bool:
        """CreateModel; False if a model of that name exists already."""

    def delete_model(self, name: str) -> None:
        """DeleteModel."""

    def create_config(self, request: Mapping[str, Any]) -> None:
        """CreateEndpointConfig."""

    def describe_config(self, name: str) -> dict[str, Any]:
        """DescribeEndpointConfig."""

    def delete_config(self, name: str) -> None:
        """DeleteEndpointConfig."""

    def create(self, request: Mapping[str, Any]) -> None:
        """CreateEndpoint; does not wait for the endpoint."""

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeEndpoint; raises `EndpointNotFound`."""

    def delete(self, name: str) -> None:
        """DeleteEndpoint; does not wait for the end; raises `EndpointNotFound`."""

    def list_all(self) -> list[dict[str, Any]]:
        """ListEndpoints: all summaries, newest first."""

    def invoke(self, request: Mapping[str, Any]) -> Answer:
        """InvokeEndpoint; waits up to 60 s for the model; raises `EndpointNotFound`."""

    def invoke_async(self, request: Mapping[str, Any]) -> tuple[str, str | None]:
        """InvokeEndpointAsync; returns the ``s3://`` URIs of the answer to come and, instead of it, of an error."""

    def log_streams(self, endpoint: str) -> list[str]:
        """Names of the endpoint's log streams, one for each container; empty while there are none."""

    def read_log(self, endpoint: str, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """The lines after ``token`` (None: from the start), and the token for the next call."""
