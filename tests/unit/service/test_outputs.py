"""What a job leaves behind."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.fakes.objects import FakeObjects
from tests.unit.service.samples import job, request
from windtunnel_local.service.data.checkpoints import fetch_checkpoints, store_checkpoints
from windtunnel_local.service.data.outputs import require_output_bucket, store_artifacts
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths


@pytest.fixture
def objects(tmp_path: Path) -> FakeObjects:
    return FakeObjects(tmp_path / "objects", "out")


@pytest.fixture
def folders(tmp_path: Path) -> JobPaths:
    folders = JobPaths(tmp_path / "jobs" / "job")
    for host in ("algo-1", "algo-2"):
        for folder in folders.folders(host):
            folder.mkdir(parents=True)
    return folders


def names(objects: FakeObjects, key: str) -> list[str]:
    with tarfile.open(objects.path("out", key)) as tar:
        return tar.getnames()


def test_hosts_become_one_archive(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """The first host's file wins where two wrote the same name; output.tar.gz is a thing of its own."""
    for host in ("algo-1", "algo-2"):
        (folders.model(host) / "same").write_text(host)
        (folders.model(host) / host).write_text("x")
    (folders.output_data("algo-2") / "plot.txt").write_text("x")
    two = job(tmp_path, request(hosts=2))
    assert store_artifacts(two, folders, objects) == "s3://out/models/job/output/model.tar.gz"
    assert names(objects, "models/job/output/model.tar.gz") == ["algo-1", "algo-2", "same"]
    assert names(objects, "models/job/output/output.tar.gz") == ["plot.txt"]
    with tarfile.open(objects.path("out", "models/job/output/model.tar.gz")) as tar:
        content = tar.extractfile("same")
        assert content is not None
        assert content.read() == b"algo-1"


def uncompressed(tmp_path: Path, hosts: int = 2) -> Job:
    output = {"S3OutputPath": "s3://out/models", "CompressionType": "NONE"}
    return job(tmp_path, request(hosts=hosts, OutputDataConfig=output))


def test_uncompressed_output(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """CompressionType NONE: file by file, links as what they lead to; the model's address is a prefix."""
    for host in ("algo-1", "algo-2"):
        (folders.model(host) / "deep").mkdir()
        (folders.model(host) / "deep" / "weights").write_text(host)
    (folders.model("algo-2") / "link").symlink_to("deep/weights")
    (folders.model("algo-2") / "out").symlink_to("/etc/passwd")
    (folders.model("algo-2") / "empty").mkdir()
    (folders.output_data("algo-2") / "plot.txt").write_text("x")
    assert store_artifacts(uncompressed(tmp_path), folders, objects) == "s3://out/models/job/output/model/"
    assert objects.keys("out") == [
        "models/job/output/data/plot.txt",
        "models/job/output/model/deep/weights",
        "models/job/output/model/link",
    ]
    assert objects.read("out", "models/job/output/model/deep/weights") == b"algo-1"
    assert objects.read("out", "models/job/output/model/link") == b"algo-2"


def test_uncompressed_nothing(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """No file, no object, no address."""
    (folders.model("algo-1") / "empty folder").mkdir()
    assert store_artifacts(uncompressed(tmp_path), folders, objects) is None
    assert objects.keys("out") == []


def test_nothing_written_stores_nothing(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """As on AWS: an empty model directory makes no object."""
    (folders.model("algo-1") / "empty folder").mkdir()
    assert store_artifacts(job(tmp_path), folders, objects) is None
    assert objects.keys("out") == []


def test_links_are_kept_inside_and_not_followed_outside(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, caplog: pytest.LogCaptureFixture
) -> None:
    """A script must not get files of this machine into its model."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    model = folders.model("algo-1")
    (model / "weights").write_text("w")
    (model / "latest").symlink_to("weights")
    (model / "stolen").symlink_to(secret)
    (model / "climbing").symlink_to("../../../../../../secret")
    (model / "folder").symlink_to(tmp_path)
    os.mkfifo(model / "pipe")
    store_artifacts(job(tmp_path), folders, objects)
    assert names(objects, "models/job/output/model.tar.gz") == ["latest", "weights"]
    assert "stolen is a link that leads out" in caplog.text


def test_a_replaced_directory_is_not_stored(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """Not even when a script turned the directory itself, or one above it, into a link."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_text("x")
    folders.model("algo-1").rmdir()
    folders.model("algo-1").symlink_to(tmp_path / "data")
    folders.output_data("algo-1").rmdir()
    folders.output_data("algo-1").parent.rmdir()
    folders.output_data("algo-1").parent.symlink_to(tmp_path)
    assert store_artifacts(job(tmp_path), folders, objects) is None
    assert objects.keys("out") == []


def test_equal_content_makes_equal_bytes(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """No times and no owners: a model that did not change has the same checksum."""
    path = folders.model("algo-1") / "weights"
    path.write_text("w")
    (folders.model("algo-1") / "again").hardlink_to(path)
    store_artifacts(job(tmp_path), folders, objects)
    before = objects.read("out", "models/job/output/model.tar.gz")
    os.utime(path, (1, 1))
    store_artifacts(job(tmp_path), folders, objects)
    assert objects.read("out", "models/job/output/model.tar.gz") == before
    with tarfile.open(objects.path("out", "models/job/output/model.tar.gz")) as tar:
        assert [(m.name, m.isreg(), m.size) for m in tar] == [("again", True, 1), ("weights", True, 1)]


def test_a_missing_output_bucket_is_found_before_the_training(tmp_path: Path, objects: FakeObjects) -> None:
    """Not after hours of it."""
    accepted = request(OutputDataConfig={"S3OutputPath": "s3://nowhere/x"})
    with pytest.raises(InputError, match="s3://nowhere/x does not exist"):
        require_output_bucket(job(tmp_path, accepted), objects)


def test_checkpoints_go_both_ways(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """New and changed files are stored, removed ones deleted; what others put there stays."""
    accepted = request(hosts=2, CheckpointConfig={"S3Uri": "s3://out/ckpt"})
    two = job(tmp_path, accepted)
    for key in ("ckpt/old", "ckpt/kept", "ckpt/step/1", "ckpt2/other"):
        objects.put_text("out", key, "before")
    fetch_checkpoints(two, folders, objects, lambda: None)
    for host in two.hosts:
        assert (folders.checkpoints(host) / "step" / "1").read_text() == "before"
        assert not (folders.checkpoints(host) / "2").exists()
        (folders.checkpoints(host) / "old").unlink()
    (folders.checkpoints("algo-2") / "kept").write_text("changed on the second host")
    (folders.checkpoints("algo-1") / "new").write_text("new")
    objects.put_text("out", "ckpt/foreign", "x")
    store_checkpoints(two, folders, objects)
    assert objects.keys("out") == ["ckpt/foreign", "ckpt/kept", "ckpt/new", "ckpt/step/1", "ckpt2/other"]
    assert objects.read("out", "ckpt/kept") == b"changed on the second host"


@pytest.mark.parametrize("keys", [("c/a", "c/a/b"), ("c/a\0b",)])
def test_checkpoints_that_no_directory_can_hold(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, keys: tuple[str, ...]
) -> None:
    """The user's objects, not a fault of ours."""
    for key in keys:
        objects.put_text("out", key, "x")
    with pytest.raises(InputError, match="download failed"):
        fetch_checkpoints(
            job(tmp_path, request(CheckpointConfig={"S3Uri": "s3://out/c"})), folders, objects, lambda: None
        )
