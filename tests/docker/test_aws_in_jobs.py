"""A job's own code uses S3 as on AWS, if that was asked for: with keys of its role, which end with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.docker.conftest import SCRIPTS, estimator, found_by, kill_server, own_session
from windtunnel import LocalSession, TrainingJob

pytestmark = pytest.mark.docker

BUCKET = "of-the-script"
WANTED = {"WINDTUNNEL_AWS_IN_JOBS": "1"}


def client(session: LocalSession, service: str, *keys: str) -> Any:
    """A boto3 client of the session's backend; ``keys``: others than the home's."""
    running, own = session.backend.ensure(), session.backend.credentials()
    id_, secret, *token = keys or (own.access_key_id, own.secret_access_key)
    return boto3.client(
        service,
        endpoint_url=running.endpoint,
        region_name=own.region,
        aws_access_key_id=id_,
        aws_secret_access_key=secret,
        aws_session_token=token[0] if token else None,
    )


@pytest.fixture(scope="module")
def s3(session: LocalSession) -> Any:
    """The test's own client, with a bucket and an object for the jobs."""
    s3 = client(session, "s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="in.csv", Body=b"x,y\n1,2\n3,4\n")
    return s3


def keys_of(job: TrainingJob, folder: Path) -> list[list[str]]:
    """The script's own keys, and those that it was given for them."""
    keys: list[list[str]] = json.loads((job.download_model(folder) / "keys.json").read_text())
    return keys


def refusal(session: LocalSession, keys: list[str]) -> str:
    """The code with which the backend answers them."""
    with pytest.raises(ClientError) as error:
        client(session, "s3", *keys).list_buckets()
    return str(error.value.response["Error"]["Code"])


def test_a_script_uses_s3(session: LocalSession, s3: Any, tmp_path: Path) -> None:
    """boto3, s3fs and datasets read and write, as the job's role; the keys end with the job, also those that
    it got for them; the secret is not in the log. The backend is reached only through the container's own loopback.
    """
    source = tmp_path / "source"
    source.mkdir()
    shutil.copy(SCRIPTS / "aws.py", source)
    (source / "requirements.txt").write_text("s3fs\n")
    job = estimator(
        session,
        "aws.py",
        source_dir=str(source),
        role="arn:aws:iam::123456789012:role/service-role/Trainer",
        hyperparameters={"bucket": BUCKET, "s3fs": ""},
        environment=WANTED,
    ).fit(logs=False)
    who = "arn:aws:sts::000000000000:assumed-role/Trainer/SageMaker"
    assert found_by(job) == {"who": who, "read": "x,y\n1,2\n3,4\n", "gateway": False, "rows": 2}
    assert s3.head_object(Bucket=BUCKET, Key="out/boto3")["ContentLength"] == 9 << 20
    assert s3.get_object(Bucket=BUCKET, Key="out/s3fs")["Body"].read() == b"x,y\n1,2\n3,4\n"
    own, chained = keys_of(job, tmp_path)
    assert refusal(session, own) == refusal(session, chained) == "ExpiredToken"
    assert not any(own[1] in line or own[2] in line for line in job.logs())


def test_the_next_server_of_the_home_serves_the_job(tmp_path: Path) -> None:
    """By the same port of the container, with the same keys."""
    with own_session(tmp_path / "home") as session:
        bucket = client(session, "s3")
        bucket.create_bucket(Bucket=BUCKET)
        bucket.put_object(Bucket=BUCKET, Key="in.csv", Body=b"x")
        job = estimator(
            session, "aws.py", hyperparameters={"bucket": BUCKET, "wait": ""}, environment=WANTED
        ).fit(wait=False)
        assert "waiting" in job.logs(follow=True)
        kill_server(session)
        client(session, "s3").put_object(Bucket=BUCKET, Key="go-on", Body=b"")
        job.wait(logs=False)
        assert found_by(job)["read"] == "x"


def test_jobs_in_a_kept_container_have_keys_of_their_own(
    session: LocalSession, s3: Any, tmp_path: Path
) -> None:
    """The second job finds the port open, and the first one's keys have ended."""
    jobs = [
        estimator(
            session,
            "aws.py",
            hyperparameters={"bucket": BUCKET},
            keep_alive_period_in_seconds=300,
            environment=WANTED,
        ).fit(logs=False)
        for _ in range(2)
    ]
    try:
        assert jobs[0].describe()["WarmPoolStatus"]["Status"] == "Reused"
        assert [found_by(job)["read"] for job in jobs] == ["x,y\n1,2\n3,4\n"] * 2
        assert [refusal(session, keys_of(job, tmp_path / job.name)[0]) for job in jobs] == [
            "ExpiredToken"
        ] * 2
    finally:
        client(session, "sagemaker").update_training_job(
            TrainingJobName=jobs[1].name, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
        )
