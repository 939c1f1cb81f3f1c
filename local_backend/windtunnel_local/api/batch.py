"""SageMaker's transform jobs: the wire's members to the service's arguments."""

from __future__ import annotations

from typing import Any

from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.api.sagemaker import LISTED
from windtunnel_local.service.batch.transform_jobs import TransformJobService
from windtunnel_local.service.ground.hosting import ResourceQuery


def operations(jobs: TransformJobService) -> Operations:
    """The operations of SageMaker on transform jobs."""

    def listed(request: Input) -> Output:
        arguments: dict[str, Any] = {LISTED[member]: value for member, value in request.items()}
        return jobs.list(ResourceQuery("transform-job", **arguments))

    def stop(request: Input) -> Output:
        jobs.stop(request["TransformJobName"])
        return {}

    return {
        "CreateTransformJob": lambda request: {"TransformJobArn": jobs.create(request)},
        "DescribeTransformJob": lambda request: jobs.describe(request["TransformJobName"]),
        "ListTransformJobs": listed,
        "StopTransformJob": stop,
    }
