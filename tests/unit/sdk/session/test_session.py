"""Sessions: names of buckets and roles, and data uploaded by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.sdk.conftest import BotoSession
from tests.unit.sdk.fake_service import FakeService
from windtunnel import AwsSession, ConfigurationError, LocalSession, Session, get_execution_role
from windtunnel.errors import ServiceCallFailed
from windtunnel.session.boto3_training import BotoService
from windtunnel.session.local_server import Backend
from windtunnel.session.resolve import resolve_session, shared_local_session
from windtunnel.session.training_service import LOG_GROUP


def test_buckets(local: LocalSession, service: FakeService) -> None:
    """Each side has its own default bucket; on AWS the account is asked for once."""
    assert local.default_bucket() == "windtunnel-us-east-1-000000000000"
    assert AwsSession(BotoSession(), service=service).default_bucket() == "sagemaker-us-east-1-123456789012"
    assert AwsSession(BotoSession(), default_bucket="mine", service=service).default_bucket() == "mine"
    assert Session(default_bucket="mine").default_bucket() == "mine"


def test_roles(local: LocalSession, aws: AwsSession) -> None:
    """A name becomes an ARN; locally none is needed."""
    arn = "arn:aws:iam::1:role/x"
    assert local.resolve_role(None) == "arn:aws:iam::000000000000:role/windtunnel-local"
    assert (local.resolve_role(arn), aws.resolve_role(arn)) == (arn, arn)
    assert aws.resolve_role("x") == "arn:aws:iam::123456789012:role/x"
    assert get_execution_role(local) == local.resolve_role(None)


def test_upload_data(local: LocalSession, service: FakeService, project: Path) -> None:
    """As SDK v2's Session.upload_data: a directory's prefix, a file's own URI."""
    bucket = local.default_bucket()
    assert local.upload_data("data", key_prefix="p") == f"s3://{bucket}/p"
    assert local.upload_data("data/train.csv", key_prefix="q") == f"s3://{bucket}/q/train.csv"
    assert sorted(service.objects) == [(bucket, "p/train.csv"), (bucket, "q/train.csv")]
    # The name of a bucket that is on AWS.
    assert local.upload_data("data", bucket="mine") == "s3://mine/data"
    with pytest.raises(ConfigurationError, match="nowhere does not exist"):
        local.upload_data("nowhere")


@pytest.mark.parametrize(
    ("prefix", "key", "uri"),
    [
        ("p/train/", "p/train/train.csv", "s3://b/p/train"),
        ("/p//q", "p/q/train.csv", "s3://b/p/q"),
        ("", "train.csv", "s3://b"),
    ],
)
def test_slashes_of_a_prefix_are_as_sdk_v2_has_them(
    local: LocalSession, service: FakeService, project: Path, prefix: str, key: str, uri: str
) -> None:
    """Notebooks write prefixes with a slash at the end: the files are not below a folder without a name."""
    assert local.upload_data("data", "b", prefix) == uri
    assert local.upload_data("data/train.csv", "b", prefix) == f"s3://b/{key}"
    assert list(service.objects) == [("b", key)]


def test_upload_data_makes_the_default_bucket_by_its_name(service: FakeService, project: Path) -> None:
    """Notebooks name it: ``bucket=session.default_bucket()``. One of the user's own on AWS is not made."""
    session = AwsSession(BotoSession(), service=service)
    named = session.default_bucket()
    assert session.upload_data("data", bucket=named) == f"s3://{named}/data"
    with pytest.raises(ServiceCallFailed, match="NoSuchBucket"):
        session.upload_data("data", bucket="mine")


def test_region_is_needed_on_aws() -> None:
    """Without a region nothing can be named."""
    nowhere = BotoSession()
    nowhere.region_name = ""
    with pytest.raises(ConfigurationError, match="has no region"):
        _ = AwsSession(nowhere, service=FakeService()).region


def test_one_session_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Estimators share the default session, so clients are made once; another home has another."""
    first = shared_local_session()
    assert resolve_session() is first
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "other"))
    assert resolve_session() is not first


def test_logs_are_found(local: LocalSession, aws: AwsSession) -> None:
    """Each side says where the log is."""
    asked = "windtunnel logs j", LOG_GROUP, "j/"
    assert local.place_of_log(*asked).startswith("windtunnel logs j   (")
    assert "/aws/sagemaker/TrainingJobs, streams j/" in aws.place_of_log(*asked)


_BENT = """\
[profile work]
region = eu-west-1
s3 =
    use_accelerate_endpoint = true
    addressing_style = virtual
"""


@pytest.mark.parametrize("profile", ["work", "of-another-machine"])
def test_a_profile_of_the_users_is_no_business_of_the_local_backend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str
) -> None:
    """One that is not there, or that says how S3 on AWS is reached: the backend is asked as ever."""
    (tmp_path / "config").write_text(_BENT)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", profile)
    program = Path(__file__).with_name("fake_backend.py")
    backend = Backend(tmp_path / "home", [sys.executable, str(program), "ok"])
    session = LocalSession(backend=backend)
    service = session.service
    assert isinstance(service, BotoService)
    try:
        client = service.client("s3")
        url = client.generate_presigned_url("head_bucket", {"Bucket": "b"})
        assert url.startswith(f"{session.endpoint()}/b?")
        assert client.meta.region_name == "us-east-1"
    finally:
        service.close()
        backend.stop()


def test_a_default_bucket_without_network_names_the_way_out() -> None:
    """A dry run needs the account only for the bucket's name."""

    class Unreachable(FakeService):
        def account_id(self) -> str:
            raise ServiceCallFailed("get_caller_identity", "EndpointConnectionError", "no route")

    with pytest.raises(ServiceCallFailed, match=r"AwsSession\(default_bucket=\.\.\.\) names one"):
        AwsSession(BotoSession(), service=Unreachable()).default_bucket()
