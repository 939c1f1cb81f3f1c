"""`TransformService` over boto3: the same calls to AWS and to the local backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windtunnel.session.boto3_calls import BotoCalls
from windtunnel.session.training_service import LogLine
from windtunnel.session.transform_service import TRANSFORM_LOG_GROUP, TransformService


class BotoTransforms(TransformService):
    """`TransformService` over the clients of a session."""

    def __init__(self, calls: BotoCalls) -> None:
        self._calls = calls

    def create(self, request: Mapping[str, Any]) -> None:
        self._calls.call("sagemaker", "create_transform_job", request, repeat=False)

    def describe(self, name: str) -> dict[str, Any]:
        return dict(self._calls.call("sagemaker", "describe_transform_job", {"TransformJobName": name}))

    def in_progress(self) -> list[str]:
        pages = self._calls.pages(
            "sagemaker", "list_transform_jobs", {"StatusEquals": "InProgress", "MaxResults": 100}, "NextToken"
        )
        return [job["TransformJobName"] for page in pages for job in page["TransformJobSummaries"]]

    def stop(self, name: str) -> None:
        self._calls.call("sagemaker", "stop_transform_job", {"TransformJobName": name}, repeat=False)

    def log_streams(self, job: str) -> list[str]:
        return self._calls.streams(TRANSFORM_LOG_GROUP, f"{job}/")

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        return self._calls.events(TRANSFORM_LOG_GROUP, stream, token)
