"""The folder of a kept container between two jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.service.samples import config, job, request
from windtunnel_local.service.data import warm_pool_folders
from windtunnel_local.service.ground.containers import JobPlan
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.request import plan

RESOURCES = {
    "InstanceType": "ml.trn1.2xlarge",
    "InstanceCount": 1,
    "VolumeSizeInGB": 30,
    "KeepAlivePeriodInSeconds": 60,
}
HOST = "algo-1"


def prepared(home: Path, checkpoints: str) -> tuple[Job, JobPaths, JobPlan]:
    """A job that has run, with files everywhere."""
    where = {"S3Uri": "s3://out/c", "LocalPath": checkpoints}
    made = job(home, request(ResourceConfig=RESOURCES, CheckpointConfig=where))
    folders, planned = config(home).paths(made.slot), plan.plan_job(made, config(home))
    for folder in folders.folders(HOST):
        folder.mkdir(parents=True, exist_ok=True)
    warm_pool_folders.make_folders(made, folders)
    for mount in planned.containers[0].mounts:
        if mount.target.startswith("/opt/ml/"):
            (folders.ml(HOST) / Path(mount.target).relative_to("/opt/ml")).mkdir(parents=True, exist_ok=True)
    for folder in [path for path in folders.root.rglob("*") if path.is_dir()]:
        (folder / "left").mkdir()
        (folder / "left" / "file").write_text("x")
        (folder / "link").symlink_to(home)
    return made, folders, planned


@pytest.mark.parametrize("checkpoints", ["/opt/ml/checkpoints", "/opt/ml/mine/deep", "/elsewhere"])
def test_everything_goes_but_what_is_mounted(tmp_path: Path, checkpoints: str) -> None:
    """Folders that a container has mounted are the same ones afterwards: an order and the cache are whole."""
    precious = tmp_path / "precious"
    precious.write_text("x")
    made, folders, planned = prepared(tmp_path, checkpoints)
    mounted = {Path(mount.source): Path(mount.source).stat().st_ino for mount in planned.containers[0].mounts}
    assert warm_pool_folders.empty(made, folders, planned)
    assert {path: path.stat().st_ino for path in mounted} == mounted
    assert precious.exists()
    whole = (folders.keeper(HOST), folders.keeper_private(HOST), folders.warm_pool_cache(HOST))
    left = [path for path in folders.root.rglob("*") if not path.is_dir()]
    assert {path for path in left if not any(keep in path.parents for keep in whole)} == set()
    for keep in whole:
        assert (keep / "left" / "file").read_text() == "x"
    assert warm_pool_folders.empty(made, folders, planned), "again"


@pytest.mark.parametrize("name", ["ml", "home", "ml/sagemaker/warmpoolcache", "ml/mine"])
def test_a_job_that_put_a_link_in_the_place_of_a_folder(tmp_path: Path, name: str) -> None:
    """Its containers are not kept, and nothing behind the link is touched."""
    made, folders, planned = prepared(tmp_path, "/opt/ml/mine/deep")
    target = tmp_path / "target" / "deep"
    target.mkdir(parents=True)
    (target / "file").write_text("x")
    place = folders.host(HOST) / name
    place.rename(tmp_path / "moved")
    place.symlink_to(target.parent)
    if name != "ml/mine":
        assert not warm_pool_folders.empty(made, folders, planned)
    else:
        warm_pool_folders.empty(made, folders, planned)
    assert (target / "file").read_text() == "x"


@pytest.mark.parametrize("name", ["hosts", "algo-1", "ml"])
def test_a_folder_that_is_swapped_for_a_link_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Something of the job that still runs does not make the server remove what is not the job's."""
    made, folders, planned = prepared(tmp_path, "/opt/ml/checkpoints")
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("x")
    empty = warm_pool_folders.empty_folder

    def swapped(folder: Path, *rest: Any) -> None:
        if folder.name == name and not folder.is_symlink():
            folder.rename(tmp_path / "moved")
            folder.symlink_to(target)
        empty(folder, *rest)

    monkeypatch.setattr(warm_pool_folders, "empty_folder", swapped)
    assert not warm_pool_folders.empty(made, folders, planned)
    assert (target / "file").read_text() == "x"


def test_plans_of_matching_jobs_are_the_same_container(tmp_path: Path) -> None:
    """Whatever channels, code and variables they have."""
    first = job(tmp_path, request("one", ResourceConfig=RESOURCES))
    members: dict[str, Any] = {
        "Environment": {"A": "1"},
        "HyperParameters": {"sagemaker_submit_directory": "s3://out/s.tar.gz"},
    }
    second = job(tmp_path, request("two", ResourceConfig=RESOURCES, **members))
    one, two = (
        plan.plan_job(each, config(tmp_path)).containers[0] for each in (first, replace(second, slot="one"))
    )
    assert one.environment != two.environment
    assert (one.mounts, one.keeper, one.image) == (two.mounts, two.keeper, two.image)
