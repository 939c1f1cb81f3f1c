"""SageMaker's operations on transform jobs, without HTTP.

Answers are dicts in the shape of AWS's responses, with `datetime` for timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from windtunnel_local.service.batch.transform_request import accepted
from windtunnel_local.service.batch.transform_run import ACTIVE, TransformRun
from windtunnel_local.service.ground.errors import JobExists, ResourceExists, ValidationFailed
from windtunnel_local.service.ground.hosting import Resource, ResourceQuery, TransformState
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting.accepted import check_count, check_runner, container_of
from windtunnel_local.service.hosting.record_thread import RecordThreads
from windtunnel_local.service.hosting.records import Records, all_of, decoded_transform, encoded

_KIND: Literal["transform-job"] = "transform-job"
_UNPROCESSED = {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "None"}


class TransformJobService:
    """The operations on transform jobs. Thread-safe; no call waits for a container."""

    def __init__(self, ports: Ports, records: Records) -> None:
        """Starts nothing; `resume` and `create` do. ``records``: the same object that `HostingService` has."""
        self._ports = ports
        self._records = records
        self._runs = RecordThreads(lambda name: TransformRun(name, ports, records))

    # --- the server's life ---

    def resume(self) -> None:
        """Adopt the jobs that an earlier server left. Call once."""
        for job in all_of(self._ports.store, _KIND):
            if job.status in ACTIVE or job.record["instances"]:
                self._runs.look(job.name)

    def busy(self) -> bool:
        """Whether any job runs."""
        return bool(self._runs.all())

    def shutdown(self) -> None:
        """Stop watching all jobs, within seconds; their containers run on. Idempotent."""
        self._runs.shutdown()

    # --- operations ---

    def create(self, request: Mapping[str, Any]) -> str:
        """Create and start a job; return its ARN.

        Raises:
            ValidationFailed: the request is not valid.
            JobExists: the name is taken.
            ResourceNotFound: the model does not exist.
        """
        job = accepted(request)
        check_runner(self._ports.runner)
        model = self._records.get("model", request["ModelName"])
        state = TransformState(job.variant(container_of(model.request)))
        check_count(state.variant.count)
        name = request["TransformJobName"]
        try:
            arn = self._records.create(_KIND, name, request, "InProgress", encoded(state)).arn
        except ResourceExists:
            raise JobExists(
                "Job name must be unique within an AWS account and region, and a job with this name already exists"
                f" ({self._ports.config.arn(_KIND, name)})"
            ) from None
        self._runs.look(name)
        return arn

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeTransformJob's answer; raises ``ResourceNotFound``."""
        job = self._records.get(_KIND, name)
        return {**_asked(job.request), **_common(job), **_times(job)}

    def list(self, query: ResourceQuery) -> dict[str, Any]:
        """ListTransformJobs' answer: one page. Raises ``ValidationFailed`` for a token from another list."""
        found, token = self._ports.store.list_resources(query)
        answer: dict[str, Any] = {
            "TransformJobSummaries": [
                {"TransformJobName": job.name, "LastModifiedTime": job.modified, **_common(job)}
                for job in found
            ]
        }
        return answer if token is None else {**answer, "NextToken": token}

    def stop(self, name: str) -> None:
        """Make a job Stopping. Raises ``ResourceNotFound``, and ``ValidationFailed`` if the job has ended."""

        def stopping(job: Resource) -> Resource:
            if job.status not in ACTIVE:
                raise ValidationFailed(
                    f"The request was rejected because the transform job is in status {job.status}."
                )
            return replace(job, status="Stopping")

        self._records.amend(_KIND, name, stopping)
        self._runs.look(name)


def _asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request, with the defaults that AWS shows for members left out."""
    return {
        **request,
        "TransformInput": {"CompressionType": "None", "SplitType": "None", **request["TransformInput"]},
        "TransformOutput": {"AssembleWith": "None", "KmsKeyId": "", **request["TransformOutput"]},
        "DataProcessing": {**_UNPROCESSED, **request.get("DataProcessing", {})},
    }


def _common(job: Resource) -> dict[str, Any]:
    """The members that Describe and List both show."""
    state = decoded_transform(job.record)
    ended = {"TransformEndTime": datetime.fromisoformat(state.ended)} if state.ended else {}
    reason = {"FailureReason": state.failure_reason} if state.failure_reason else {}
    return {
        "TransformJobArn": job.arn,
        "TransformJobStatus": job.status,
        "CreationTime": job.created,
        **ended,
        **reason,
    }


def _times(job: Resource) -> dict[str, Any]:
    started = decoded_transform(job.record).started
    return {"TransformStartTime": datetime.fromisoformat(started)} if started else {}
