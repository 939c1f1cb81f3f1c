"""Lists, Search, tags and the log group, as boto3 asks for them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.config import Config

from tests.contract.conftest import Backend, refused
from tests.fakes.wire import create_request

UNCHECKED = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
GROUP = "/aws/sagemaker/TrainingJobs"


@pytest.fixture(scope="module")
def sagemaker(shared_backend: Backend) -> Any:
    """A client, and three ended jobs of different hyperparameters and tags, which tests leave as they are."""
    shared_backend.client("s3").create_bucket(Bucket="out")
    for number in range(3):
        shared_backend.run(
            f"job-{number}",
            HyperParameters={"lr": f"0.{number}"},
            Tags=[{"Key": "team", "Value": "a" if number else "b"}],
            Environment={"EXIT": "3"} if number == 2 else {},
        )
    return shared_backend.client("sagemaker")


def listed(client: Any, **arguments: Any) -> list[str]:
    found = client.list_training_jobs(**{"SortBy": "Name", "SortOrder": "Ascending", **arguments})
    return [job["TrainingJobName"] for job in found["TrainingJobSummaries"]]


def test_every_filter_of_a_list(sagemaker: Any, shared_backend: Backend) -> None:
    """Alone and together; what no job can have matches none."""
    now = datetime.now(timezone.utc)
    hour = timedelta(hours=1)
    assert listed(sagemaker) == ["job-0", "job-1", "job-2"]
    assert listed(sagemaker, NameContains="b-1") == ["job-1"]
    assert listed(sagemaker, StatusEquals="Failed") == ["job-2"]
    assert listed(sagemaker, CreationTimeAfter=now + hour) == []
    assert len(listed(sagemaker, CreationTimeBefore=now + hour, LastModifiedTimeAfter=now - hour)) == 3
    assert listed(sagemaker, LastModifiedTimeBefore=now - hour) == []
    assert listed(sagemaker, WarmPoolStatusEquals="Available") == []
    plan = "arn:aws:sagemaker:us-east-1:000000000000:training-plan/large-plan"
    assert listed(sagemaker, TrainingPlanArnEquals=plan) == []
    assert listed(sagemaker, SortBy="Status", StatusEquals="Completed") == ["job-0", "job-1"]
    # Without an order, the newest comes first, as in the note of AWS's reference on this operation.
    newest = sagemaker.list_training_jobs(MaxResults=1)
    [summary] = newest["TrainingJobSummaries"]
    assert (summary["TrainingJobName"], summary["TrainingJobStatus"]) == ("job-2", "Failed")
    assert "TrainingEndTime" in summary
    anything = shared_backend.client("sagemaker", config=UNCHECKED)
    assert "greater than or equal to 1" in refused(anything.list_training_jobs, MaxResults=0)[1]
    assert "less than or equal to 100" in refused(anything.list_training_jobs, MaxResults=101)[1]


def test_a_list_holds_while_jobs_are_added(sagemaker: Any, shared_backend: Backend) -> None:
    """The next page begins behind the last job that was shown."""
    first = sagemaker.list_training_jobs(MaxResults=2)
    sagemaker.create_training_job(**create_request("later"))
    rest = sagemaker.list_training_jobs(MaxResults=2, NextToken=first["NextToken"])
    shown = [job["TrainingJobName"] for page in (first, rest) for job in page["TrainingJobSummaries"]]
    assert shown == ["job-2", "job-1", "job-0"]
    assert "NextToken" not in rest
    assert refused(sagemaker.list_training_jobs, NextToken="x")[0] == "ValidationException"
    shared_backend.ended("later")
    sagemaker.delete_training_job(TrainingJobName="later")


def test_search_finds_jobs_and_shows_them_whole(sagemaker: Any) -> None:
    """In the shape of AWS's TrainingJob, with tags; in pages, through boto3's own paginator."""
    expression = {
        "Filters": [
            {"Name": "HyperParameters.lr", "Operator": "GreaterThanOrEqualTo", "Value": "0.1"},
            {"Name": "Tags.team", "Operator": "Equals", "Value": "a"},
        ],
        "SubExpressions": [
            {"Filters": [{"Name": "TrainingJobStatus", "Operator": "NotEquals", "Value": "Failed"}]}
        ],
    }
    (found,) = sagemaker.search(Resource="TrainingJob", SearchExpression=expression)["Results"]
    job = found["TrainingJob"]
    described = sagemaker.describe_training_job(TrainingJobName="job-1")
    assert job["Tags"] == [{"Key": "team", "Value": "a"}]
    only_described = {"ResponseMetadata", "ProfilingStatus"}
    assert {k: v for k, v in job.items() if k != "Tags"} == {
        k: v for k, v in described.items() if k not in only_described
    }
    pages = sagemaker.get_paginator("search").paginate(
        Resource="TrainingJob", SortBy="CreationTime", SortOrder="Ascending", PaginationConfig={"PageSize": 2}
    )
    names = [[r["TrainingJob"]["TrainingJobName"] for r in page["Results"]] for page in pages]
    assert names == [["job-0", "job-1"], ["job-2"]]


def test_what_search_does_not_serve(sagemaker: Any) -> None:
    """Named, with AWS's code."""
    code, message = refused(sagemaker.search, Resource="Endpoint")
    assert (code, "Endpoint" in message) == ("ValidationException", True)
    twice = [{"Name": "TrainingJobName", "Operator": "Contains", "Value": text} for text in "ab"]
    assert refused(sagemaker.search, Resource="TrainingJob", SearchExpression={"Filters": twice})[1] == (
        "'CONTAINS' operator usage limit of 1 exceeded."
    )
    assert "NextToken" in refused(sagemaker.search, Resource="TrainingJob", NextToken="x")[1]
    code, message = refused(sagemaker.get_search_suggestions, Resource="TrainingJob")
    assert code == "UnsupportedOperation"
    assert "GetSearchSuggestions" in message


def test_deleting_frees_the_name_and_leaves_the_model(sagemaker: Any, shared_backend: Backend) -> None:
    """The record, tags and log are gone, S3 is as it was, and the name can be used again."""
    job, named = shared_backend.run("old"), {"TrainingJobName": "old"}
    sagemaker.delete_training_job(**named)
    assert listed(sagemaker) == ["job-0", "job-1", "job-2"]
    missing = "Requested resource not found."
    assert refused(sagemaker.list_tags, ResourceArn=job["TrainingJobArn"])[1] == missing
    assert refused(sagemaker.delete_training_job, **named)[1] == missing
    logs = shared_backend.client("logs")
    assert not logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="old/")["logStreams"]
    bucket, key = job["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").split("/", 1)
    assert shared_backend.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0
    sagemaker.create_training_job(**create_request("old", Environment={"WAIT": "1"}))
    code, message = refused(sagemaker.delete_training_job, **named)
    assert (code, "InProgress" in message) == ("ResourceInUse", True)
    sagemaker.stop_training_job(**named)
    shared_backend.ended("old")
    sagemaker.delete_training_job(**named)


def test_the_limits_of_tags(sagemaker: Any, shared_backend: Backend) -> None:
    """Fifty a job, all in one page."""
    arn = sagemaker.describe_training_job(TrainingJobName="job-0")["TrainingJobArn"]
    many = [{"Key": f"k{number:02}", "Value": ""} for number in range(49)]
    sagemaker.add_tags(ResourceArn=arn, Tags=many)
    (page,) = sagemaker.get_paginator("list_tags").paginate(
        ResourceArn=arn, PaginationConfig={"PageSize": 50}
    )
    assert len(page["Tags"]) == 50
    assert "at most 50" in refused(sagemaker.add_tags, ResourceArn=arn, Tags=[{"Key": "x", "Value": ""}])[1]
    anything = shared_backend.client("sagemaker", config=UNCHECKED)
    assert "greater than or equal to 50" in refused(anything.list_tags, ResourceArn=arn, MaxResults=1)[1]
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=[tag["Key"] for tag in many])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "b"}]


@pytest.mark.usefixtures("sagemaker")
def test_the_log_group_and_its_streams(shared_backend: Backend) -> None:
    """As `aws logs` lists them; queries are refused by name."""
    logs = shared_backend.client("logs")
    (group,) = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/")["logGroups"]
    assert group["logGroupName"] == GROUP
    assert logs.describe_log_groups(logGroupNamePrefix="/aws/lambda")["logGroups"] == []
    assert len(logs.describe_log_groups(logGroupIdentifiers=[group["logGroupArn"]])["logGroups"]) == 1
    pages = logs.get_paginator("describe_log_streams").paginate(
        logGroupName=GROUP, orderBy="LastEventTime", descending=True, PaginationConfig={"PageSize": 2}
    )
    streams = [[s["logStreamName"].split("/")[0] for s in page["logStreams"]] for page in pages]
    assert streams == [["job-2", "job-1"], ["job-0"]]
    code, message = refused(logs.start_query, startTime=0, endTime=1, queryString="fields @message")
    assert (code, "StartQuery" in message) == ("UnsupportedOperation", True)
