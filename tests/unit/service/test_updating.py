"""UpdateTrainingJob."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.service.conftest import World
from tests.unit.service.samples import job, request
from windtunnel_local.service.ground.errors import JobNotFound, ValidationFailed
from windtunnel_local.service.ground.job import WarmPool
from windtunnel_local.service.request.updates import updated
from windtunnel_local.store import SqliteStore

KEEP = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}}


def kept(tmp_path: Path, status: Any) -> Any:
    resources = {**request()["ResourceConfig"], "KeepAlivePeriodInSeconds": 60}
    return replace(job(tmp_path, request(ResourceConfig=resources)), warm_pool=WarmPool(status))


@pytest.mark.parametrize("status", ["InUse", "Available"])
def test_how_long_a_warm_pool_is_kept(tmp_path: Path, status: str) -> None:
    """Also to nothing, which ends it; the rest of ResourceConfig stays, and so does the request."""
    before = kept(tmp_path, status)
    after = updated(before, KEEP)
    assert (before.keep_alive_s, after.keep_alive_s) == (60, 600)
    assert after.current["ResourceConfig"]["InstanceType"] == "ml.trn1.2xlarge"
    assert after.request == before.request
    assert updated(after, {"ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}).keep_alive_s == 0


@pytest.mark.parametrize("status", ["Terminated", "Reused"])
def test_a_warm_pool_that_is_gone(tmp_path: Path, status: str) -> None:
    """There is nothing left whose time could change."""
    with pytest.raises(ValidationFailed, match=f"its warm pool is {status}. The warm pool must be InUse or"):
        updated(kept(tmp_path, status), KEEP)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (KEEP, "created without KeepAlivePeriodInSeconds"),
        ({"RemoteDebugConfig": {"EnableRemoteDebug": True}}, "RemoteDebugConfig is not supported: it opens"),
        (
            {"ProfilerRuleConfigurations": [{"RuleConfigurationName": "r"}]},
            "ProfilerRuleConfigurations is not",
        ),
    ],
)
def test_what_cannot_be_updated(tmp_path: Path, asked: dict[str, Any], says: str) -> None:
    """Refused by name; what asks for nothing is no reason to refuse."""
    with pytest.raises(ValidationFailed, match=says):
        updated(job(tmp_path), asked)
    assert updated(job(tmp_path), {"RemoteDebugConfig": {"EnableRemoteDebug": False}}) == job(tmp_path)


def test_an_update_is_shown_and_lasts(world: World) -> None:
    """The profiler's settings are merged, as AWS merges them, while the job is in progress."""
    world.runner.script = lambda container: container.sleep_until(container.terminated)
    world.train(request(ProfilerConfig={"S3OutputPath": "s3://out/p"}))
    for config in ({"ProfilingIntervalInMilliseconds": 500}, {"DisableProfiler": True}):
        arn = world.service.update({"TrainingJobName": "job", "ProfilerConfig": config})
        assert arn == world.job().arn
    world.crash_and_serve()
    shown = {"S3OutputPath": "s3://out/p", "ProfilingIntervalInMilliseconds": 500, "DisableProfiler": True}
    assert world.service.describe("job")["ProfilerConfig"] == shown
    world.service.stop("job")
    world.finish()
    with pytest.raises(ValidationFailed, match="rejected because the training job is in status Stopped"):
        world.service.update({"TrainingJobName": "job", "ProfilerConfig": config})
    with pytest.raises(JobNotFound):
        world.service.update({"TrainingJobName": "other"})


def test_the_record_keeps_updates(tmp_path: Path) -> None:
    """Over a restart of the server."""
    store = SqliteStore(tmp_path / "state.sqlite")
    store.insert_job(kept(tmp_path, "Available"), {})
    store.update_job(updated(kept(tmp_path, "Available"), KEEP))
    found = store.get_job("job")
    store.close()
    assert found is not None
    assert found.keep_alive_s == 600
