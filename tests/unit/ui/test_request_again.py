"""From a described job back to the request that makes it."""

from __future__ import annotations

from datetime import datetime, timezone

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.wire import create_request as sent
from windtunnel_local.service import answers
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request import validation
from windtunnel_local.ui.request_again import next_name, request_again

NOW = datetime(2026, 7, 31, 12, 0, 0, 123_000, tzinfo=timezone.utc)


def test_there_and_back() -> None:
    """What was sent is sent again, under the new name; the service takes it."""
    members = {
        "Environment": {"A": "1"},
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90},
        "HyperParameters": {"epochs": "3", "sagemaker_job_name": '"one"'},
        "CheckpointConfig": {"S3Uri": "s3://out/checkpoints"},
    }
    request = sent("one", **members)
    job = Job("one", "arn", request, lifecycle.begin(NOW))
    tags = [{"Key": "team", "Value": "nlp"}]
    again = request_again(answers.described(job), tags, "two")
    changed = {"epochs": "3", "sagemaker_job_name": '"two"'}
    assert again == {**request, "TrainingJobName": "two", "HyperParameters": changed, "Tags": tags}
    validation.validate(again)


@given(st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", fullmatch=True))
def test_the_next_name_is_one(name: str) -> None:
    """Of any job's: it fits, and it is another."""
    found = next_name(name, NOW)
    validation.validate(sent(found))
    assert found != name
    assert found.endswith("-2026-07-31-12-00-00-123")


def test_a_time_in_a_name_is_replaced() -> None:
    """Names do not grow from run to run."""
    assert next_name("bert-2026-07-30-09-12-44-001", NOW) == "bert-2026-07-31-12-00-00-123"
    assert next_name("bert", NOW) == "bert-2026-07-31-12-00-00-123"
