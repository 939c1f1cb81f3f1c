"""Sessions over the fake service, in a temporary home and directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.fake_endpoints import FakeEndpoints
from tests.unit.sdk.fake_service import FakeService
from tests.unit.sdk.fake_transforms import FakeTransforms
from windtunnel.session.aws import AwsSession
from windtunnel.session.local import LocalSession


class BotoSession:
    """The one attribute of boto3.Session that the SDK reads without a client."""

    region_name = "us-east-1"

    def client(self, *_: Any) -> Any:
        """No client in unit tests."""
        raise AssertionError("unit tests make no boto3 client")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WINDTUNNEL_LOCAL_CORES", raising=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with src/train.py and data/train.csv."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print(1)\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("a,b\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def service() -> FakeService:
    """A service whose jobs complete."""
    return FakeService()


@pytest.fixture
def endpoints() -> FakeEndpoints:
    """A service whose endpoints come up."""
    return FakeEndpoints()


@pytest.fixture
def transforms() -> FakeTransforms:
    """A service whose transform jobs complete."""
    return FakeTransforms()


@pytest.fixture
def local(
    service: FakeService, endpoints: FakeEndpoints, transforms: FakeTransforms, tmp_path: Path
) -> LocalSession:
    """A local session that looks without pausing."""
    session = LocalSession(tmp_path / "home", service=service, endpoints=endpoints, transforms=transforms)
    session.log_poll_s = session.least_poll_s = session.describe_poll_s = 0.0
    return session


@pytest.fixture
def aws(service: FakeService, endpoints: FakeEndpoints, transforms: FakeTransforms) -> AwsSession:
    """An AWS session that looks without pausing."""
    session = AwsSession(
        BotoSession(), default_bucket="bkt", service=service, endpoints=endpoints, transforms=transforms
    )
    session.log_poll_s = session.least_poll_s = session.describe_poll_s = session.settle_s = 0.0
    return session
