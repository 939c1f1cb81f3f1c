"""Requests and jobs that tests start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.clock import START
from tests.fakes.wire import create_request
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.lifecycle import begin

LOCAL_IMAGE = "windtunnel-training"


def request(name: str = "job", hosts: int = 1, **members: Any) -> dict[str, Any]:
    """A valid CreateTrainingJob request; ``members`` replace its own, None removes one."""
    resources = {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": hosts, "VolumeSizeInGB": 30}
    return create_request(name, **{"ResourceConfig": resources, **members})


def channel(name: str, uri: str, **members: Any) -> dict[str, Any]:
    """A channel of InputDataConfig."""
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, **members}


def config(home: Path, **members: Any) -> ServiceConfig:
    """A backend's settings."""
    return ServiceConfig(
        **{
            "home": home,
            "account_id": "000000000000",
            "region": "us-east-1",
            "image": LOCAL_IMAGE,
            "user": "1000:1000",
            "stop_grace_s": 120.0,
            **members,
        }
    )


def job(home: Path, accepted: dict[str, Any] | None = None) -> Job:
    """A job that was just accepted."""
    accepted = accepted or request()
    name = accepted["TrainingJobName"]
    return Job(name, config(home).arn("training-job", name), accepted, begin(START))
