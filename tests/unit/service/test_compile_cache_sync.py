"""A Neuron compile cache in S3 reaches the hosts of a job, and what they add reaches S3."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.objects import FakeObjects, ReplacedObjects
from tests.unit.service.samples import config, job, request
from windtunnel_local.service.data.compile_cache import fetch_cache, store_cache
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import NEURON_CACHE, JobPaths
from windtunnel_local.service.request.plan import plan_job
from windtunnel_local.service.request.requests import cache_uri

KEY = "cache/neuronxcc-1/MODULE_1+d41d8cd9/model.done"


def a_job(tmp_path: Path, hosts: int = 1, **environment: str) -> Job:
    wanted: dict[str, Any] = request(hosts=hosts)
    wanted["Environment"] = environment
    return job(tmp_path, wanted)


def nothing() -> None:
    """No one stops the job."""


@pytest.mark.parametrize(
    ("environment", "uri"),
    [
        ({}, None),
        ({"NEURON_COMPILE_CACHE_URL": "/opt/ml/checkpoints/cache"}, None),
        ({"NEURON_COMPILE_CACHE_URL": "s3://out/cache"}, "s3://out/cache"),
        (
            {"NEURON_COMPILE_CACHE_URL": "s3://out/a", "NEURON_CC_FLAGS": "-O1 --cache_dir=s3://out/b"},
            "s3://out/b",
        ),
        ({"NEURON_COMPILE_CACHE_URL": "s3://out/a", "NEURON_CC_FLAGS": "--cache_dir /local"}, None),
        ({"NEURON_CC_FLAGS": "--cache_dir='s3://out/b"}, None),
    ],
)
def test_the_environment_names_the_cache(
    tmp_path: Path, environment: dict[str, str], uri: str | None
) -> None:
    """The flag beats the variable, as in the container."""
    assert cache_uri(a_job(tmp_path, 1, **environment)) == uri


def test_both_hosts_see_what_is_there_and_what_they_add_is_stored(tmp_path: Path) -> None:
    """Only entries of the cache, and no lock or draft."""
    objects, folders = FakeObjects(tmp_path / "objects", "out"), JobPaths(tmp_path / "folder")
    objects.put("out", KEY, BytesIO(b""))
    objects.put("out", "cache/mine.txt", BytesIO(b"x"))
    two = a_job(tmp_path, hosts=2, NEURON_COMPILE_CACHE_URL="s3://out/cache/")
    fetch_cache(two, folders, objects, nothing)
    for host in two.hosts:
        root = folders.neuron_cache(host) / "out"
        assert [path for path in root.rglob("*") if path.is_file()] == [root / KEY]
        new = root / "cache" / "neuronxcc-1" / "MODULE_2+d41d8cd9"
        new.mkdir()
        for name in ("model.neff", "model.done", "model.lock", ".draft-abc"):
            (new / name).write_text("x")
    store_cache(two, folders, objects)
    assert [info.key.rpartition("cache/")[2] for info in objects.list("out", "cache/")] == [
        "mine.txt",
        "neuronxcc-1/MODULE_1+d41d8cd9/model.done",
        "neuronxcc-1/MODULE_2+d41d8cd9/model.done",
        "neuronxcc-1/MODULE_2+d41d8cd9/model.neff",
    ]


def test_a_missing_bucket_is_said_before_the_job_runs(tmp_path: Path) -> None:
    """With the variable to change."""
    objects, folders = FakeObjects(tmp_path / "objects", "out"), JobPaths(tmp_path / "folder")
    with pytest.raises(InputError, match="NEURON_COMPILE_CACHE_URL"):
        fetch_cache(a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://other/x"), folders, objects, nothing)
    with pytest.raises(InputError, match="leads out"):
        fetch_cache(a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://out/../x"), folders, objects, nothing)


def test_a_key_that_leads_out_is_left_alone(tmp_path: Path) -> None:
    """Nothing outside the job's folder is written."""
    objects, folders = FakeObjects(tmp_path / "objects", "out"), JobPaths(tmp_path / "folder")
    objects.put("out", "neuronxcc-1/../../../escaped", BytesIO(b""))
    one = a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://out")
    fetch_cache(one, folders, objects, nothing)
    assert not list((tmp_path / "folder").rglob("escaped"))


def test_what_no_key_can_name_is_left_out(tmp_path: Path) -> None:
    """A script can write here, too: a name that is no text. The rest is stored."""
    objects, folders = FakeObjects(tmp_path / "objects", "out"), JobPaths(tmp_path / "folder")
    asked = a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://out/cache/")
    fetch_cache(asked, folders, objects, nothing)
    entry = folders.neuron_cache("algo-1") / "out" / "cache" / "neuronxcc-1"
    entry.mkdir(parents=True)
    for name in (b"good", b"\xff\xfe"):
        Path(os.fsdecode(os.fsencode(entry) + b"/" + name)).write_text("x")
    store_cache(asked, folders, objects)
    assert objects.keys("out") == ["cache/neuronxcc-1/good"]


def test_only_a_job_with_such_a_cache_gets_its_folder(tmp_path: Path) -> None:
    """Mounted and named in one place; other jobs are as they were."""
    (container,) = plan_job(
        a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://out/c"), config(tmp_path)
    ).containers
    assert container.environment["WINDTUNNEL_S3_CACHE_DIR"] == NEURON_CACHE
    assert [mount.target for mount in container.mounts].count(NEURON_CACHE) == 1
    (plain,) = plan_job(a_job(tmp_path), config(tmp_path)).containers
    assert "WINDTUNNEL_S3_CACHE_DIR" not in plain.environment
    assert NEURON_CACHE not in [mount.target for mount in plain.mounts]


def test_an_entry_that_another_job_replaces_is_taken(tmp_path: Path) -> None:
    """Several jobs share a cache: what one of them stores fails no other."""
    objects, folders = ReplacedObjects(tmp_path / "objects", "out"), JobPaths(tmp_path / "folder")
    objects.put("out", KEY, BytesIO(b"neff"))
    asked = a_job(tmp_path, NEURON_COMPILE_CACHE_URL="s3://out/cache/")
    fetch_cache(asked, folders, objects, nothing)
    assert (folders.neuron_cache("algo-1") / "out" / KEY).read_bytes() == b"neff"
