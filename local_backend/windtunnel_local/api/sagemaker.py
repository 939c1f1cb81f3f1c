"""SageMaker's operations on training jobs, and on the tags of all resources: pass the members to the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel_local.api.rpc import Input, Operations, Output
from windtunnel_local.api.search import query_of
from windtunnel_local.service.answers import tag_list
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.hosting import Kind, ResourceQuery
from windtunnel_local.service.ground.job import JobQuery
from windtunnel_local.service.hosting.hosting import HostingService
from windtunnel_local.service.training_jobs import TrainingJobService

_LISTED: Mapping[str, str] = {
    "NameContains": "name_contains",
    "StatusEquals": "status",
    "CreationTimeAfter": "created_after",
    "CreationTimeBefore": "created_before",
    "LastModifiedTimeAfter": "modified_after",
    "LastModifiedTimeBefore": "modified_before",
    "SortBy": "sort_by",
    "SortOrder": "sort_order",
    "MaxResults": "limit",
    "NextToken": "token",
}
"""Members of every List operation, and the field of `ListQuery` for each."""
_QUERY: Mapping[str, str] = {**_LISTED, "WarmPoolStatusEquals": "warm_pool_status"}


LOOKUPS = frozenset(
    {"DescribeTrainingJob", "ListTrainingJobs", "ListTags", "DescribeEndpoint", "DescribeTransformJob"}
)
"""Operations that run in the event loop, as they take less time than to wake a thread."""


def operations(jobs: TrainingJobService, hosting: HostingService) -> Operations:
    """The operations on training jobs and on tags."""
    return {**_on_jobs(jobs), **_on_tags(jobs, hosting)}


def _on_jobs(jobs: TrainingJobService) -> Operations:

    def list_jobs(request: Input) -> Output:
        if "TrainingPlanArnEquals" in request:  # no job here runs on capacity reserved by a plan
            return {"TrainingJobSummaries": []}
        return jobs.list(_query(request))

    return {
        "CreateTrainingJob": lambda request: {"TrainingJobArn": jobs.create(request)},
        "DescribeTrainingJob": lambda request: jobs.describe(request["TrainingJobName"]),
        "ListTrainingJobs": list_jobs,
        "Search": lambda request: jobs.search(query_of(request)),
        "StopTrainingJob": lambda request: jobs.stop(request["TrainingJobName"]),
        "UpdateTrainingJob": lambda request: {"TrainingJobArn": jobs.update(request)},
        "DeleteTrainingJob": lambda request: jobs.delete(request["TrainingJobName"]),
    }


def _on_tags(jobs: TrainingJobService, hosting: HostingService) -> Operations:
    """The operations on tags. `jobs` keeps the tags of training jobs, `hosting` those of all other resources."""

    def add_tags(request: Input) -> Output:
        arn, added = request["ResourceArn"], request["Tags"]
        if hosting.owns(arn):
            hosting.change_tags(arn, {tag["Key"]: tag["Value"] for tag in added})
            return {"Tags": tag_list(hosting.tags(arn))}
        return {"Tags": jobs.add_tags(arn, added)}

    def list_tags(request: Input) -> Output:
        if "NextToken" in request:  # a page holds at least 50 tags, and nothing has more
            raise ValidationFailed("The NextToken is not valid: all tags come in one page.")
        arn = request["ResourceArn"]
        return {"Tags": tag_list(hosting.tags(arn)) if hosting.owns(arn) else jobs.list_tags(arn)}

    def delete_tags(request: Input) -> None:
        arn, keys = request["ResourceArn"], request["TagKeys"]
        if hosting.owns(arn):
            hosting.change_tags(arn, {}, keys)
        else:
            jobs.delete_tags(arn, keys)

    return {"AddTags": add_tags, "ListTags": list_tags, "DeleteTags": delete_tags}


def listed(kind: Kind, request: Input) -> ResourceQuery:
    """The query of a List operation on another kind of resource than training jobs."""
    arguments: dict[str, Any] = {_LISTED[member]: value for member, value in request.items()}
    return ResourceQuery(kind, **arguments)


def _query(request: Input) -> JobQuery:
    unserved = request.keys() - _QUERY.keys()
    if unserved:
        raise ValidationFailed(
            f"Windtunnel does not filter by {', '.join(sorted(unserved))}. It does by {', '.join(_QUERY)}."
        )
    arguments: dict[str, Any] = {_QUERY[member]: value for member, value in request.items()}
    return JobQuery(**arguments)
