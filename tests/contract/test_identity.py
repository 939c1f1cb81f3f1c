"""STS and IAM with real boto3: who am I, sessions that work, and what the SDKs ask about roles."""

from __future__ import annotations

import urllib.request
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend, refused

ACCOUNT = "000000000000"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/service-role/Trainer"


@pytest.fixture
def backend(shared_backend: Backend) -> Backend:
    """These only ask: one server will do."""
    shared_backend.clock.offset = timedelta(0)
    return shared_backend


def assumed(sts: Any, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = sts.assume_role(**{"RoleArn": ROLE, "RoleSessionName": "rehearsal", **arguments})
    return answer


def session_client(backend: Backend, answer: dict[str, Any], service: str, version: str | None = None) -> Any:
    made = answer["Credentials"]
    return backend.client(
        service,
        config=Config(signature_version=version, retries={"total_max_attempts": 1}),
        aws_access_key_id=made["AccessKeyId"],
        aws_secret_access_key=made["SecretAccessKey"],
        aws_session_token=made["SessionToken"],
    )


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_session_may_do_what_the_account_may(backend: Backend) -> None:
    """Its keys sign for every service, and STS says whose they are."""
    answer = assumed(backend.client("sts"), DurationSeconds=900)
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/Trainer/rehearsal"
    assert answer["AssumedRoleUser"]["Arn"] == arn
    who = session_client(backend, answer, "sts").get_caller_identity()
    assert (who["Account"], who["Arn"]) == (ACCOUNT, arn)
    assert who["UserId"] == answer["AssumedRoleUser"]["AssumedRoleId"]
    assert session_client(backend, answer, "sagemaker").list_training_jobs()["TrainingJobSummaries"] == []
    s3 = session_client(backend, answer, "s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="key", Body=b"data")
    version_4 = session_client(backend, answer, "s3", "s3v4")
    for signer in (s3, version_4):
        url = signer.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "key"})
        assert ("AWSAccessKeyId=" in url) == (signer is s3)
        with urllib.request.urlopen(url) as response:  # noqa: S310  our own server
            assert response.read() == b"data"


def test_a_session_ends(backend: Backend) -> None:
    """With its own time, and with AWS's word for that."""
    answer = assumed(backend.client("sts"), DurationSeconds=900)
    backend.clock.offset = timedelta(seconds=901 - 890)  # within the clock skew, 10 s before the end
    session_client(backend, answer, "sts").get_caller_identity()
    backend.clock.offset = timedelta(seconds=880)  # a busy machine may need some of the rest
    session_client(backend, answer, "sts").get_caller_identity()
    backend.clock.offset = timedelta(seconds=901)
    # The request itself is now too old as well: what is asked first is whether the session lasts.
    for service, expected in (("sts", "ExpiredToken"), ("sagemaker", "ExpiredTokenException")):
        client = session_client(backend, answer, service)
        call = client.get_caller_identity if service == "sts" else client.list_training_jobs
        with pytest.raises(ClientError) as error:
            call()
        assert code(error) == expected


def test_get_session_token(backend: Backend) -> None:
    """The user's own temporary credentials; they make no further ones, as on AWS."""
    answer = backend.client("sts").get_session_token()
    sts = session_client(backend, answer, "sts")
    assert sts.get_caller_identity()["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/windtunnel"
    with pytest.raises(ClientError) as error:
        sts.get_session_token()
    assert code(error) == "AccessDenied"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"RoleArn": "arn:aws:iam::000000000000:user/me"}, "a role's ARN is"),
        ({"Policy": "{}"}, "does not simulate Policy"),
        ({"RoleSessionName": "a b"}, "roleSessionName"),
        ({"DurationSeconds": 90000}, "durationSeconds"),
    ],
)
def test_what_cannot_be_assumed_is_refused(backend: Backend, arguments: dict[str, Any], words: str) -> None:
    """With what is valid."""
    with pytest.raises(ClientError, match=words) as error:
        assumed(backend.client("sts"), **arguments)
    assert code(error) == "ValidationError"


def test_a_role_that_a_role_assumes_lasts_an_hour_at_most(backend: Backend) -> None:
    """AWS's limit of role chaining."""
    first = assumed(backend.client("sts"), DurationSeconds=43200)
    sts = session_client(backend, first, "sts")
    assumed(sts, DurationSeconds=3600)
    with pytest.raises(ClientError, match="role chaining"):
        assumed(sts, DurationSeconds=3601)


def test_a_web_identity_gets_nothing(backend: Backend) -> None:
    """Its call is not signed; nobody here could check the token."""
    sts = backend.client("sts")
    with pytest.raises(ClientError) as error:
        sts.assume_role_with_web_identity(RoleArn=ROLE, RoleSessionName="x" * 8, WebIdentityToken="token")
    assert code(error) == "MissingAuthenticationToken"


def test_simulate_principal_policy_says_what_holds_here(backend: Backend) -> None:
    """Every action on every resource is allowed; pages follow one another."""
    iam = backend.client("iam")
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=ROLE,
        ActionNames=["s3:PutObject", "sagemaker:CreateTrainingJob", "logs:*"],
        ResourceArns=["arn:aws:s3:::a/*", "arn:aws:s3:::b/*"],
        PaginationConfig={"PageSize": 4},
    )
    results = [result for page in pages for result in page["EvaluationResults"]]
    assert len(results) == 6
    assert {result["EvalDecision"] for result in results} == {"allowed"}
    assert results[0]["EvalActionName"] == "s3:PutObject"
    assert results[1]["EvalResourceName"] == "arn:aws:s3:::b/*"


@pytest.mark.parametrize(
    "arguments",
    [
        {"PolicySourceArn": "arn:aws:s3:::bucket-of-mine"},
        {"ActionNames": ["everything"]},
        {"PolicyInputList": ["{}"]},
        {"Marker": "x"},
    ],
)
def test_a_simulation_that_would_deceive_is_refused(backend: Backend, arguments: dict[str, Any]) -> None:
    """What is no principal, no action, or a policy that nobody reads."""
    with pytest.raises(ClientError) as error:
        backend.client("iam").simulate_principal_policy(
            **{"PolicySourceArn": ROLE, "ActionNames": ["s3:GetObject"], **arguments}
        )
    assert code(error) == "InvalidInput"


def test_a_role_is_what_the_resource_api_says(backend: Backend) -> None:
    """SDK v2 makes an ARN of a role's name in this way. What else IAM has is refused."""
    session = boto3.Session(
        aws_access_key_id=backend.credentials.access_key_id,
        aws_secret_access_key=backend.credentials.secret_access_key,
        region_name="us-east-1",
    )
    role = session.resource("iam", endpoint_url=backend.endpoint).Role("Trainer")
    assert role.arn == f"arn:aws:iam::{ACCOUNT}:role/Trainer"
    assert role.assume_role_policy_document["Statement"][0]["Principal"] == {
        "Service": "sagemaker.amazonaws.com"
    }
    role.meta.client.close()
    iam = backend.client("iam")
    assert refused(iam.get_role, RoleName="a b")[0] == "ValidationError"
    assert refused(iam.list_users)[0] == "UnsupportedOperation"
