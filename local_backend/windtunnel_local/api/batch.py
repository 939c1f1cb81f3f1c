"""SageMaker's operations on transform jobs: pass the request's members to the service."""

from __future__ import annotations

from windtunnel_local.api.rpc import Operations
from windtunnel_local.api.sagemaker import listed
from windtunnel_local.service.batch.transform_jobs import TransformJobService


def operations(jobs: TransformJobService) -> Operations:
    """The operations of SageMaker on transform jobs."""
    return {
        "CreateTransformJob": lambda request: {"TransformJobArn": jobs.create(request)},
        "DescribeTransformJob": lambda request: jobs.describe(request["TransformJobName"]),
        "ListTransformJobs": lambda request: jobs.list(listed("transform-job", request)),
        "StopTransformJob": lambda request: jobs.stop(request["TransformJobName"]),
    }
