"""What a job leaves behind."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.objects import FakeObjects
from tests.unit.service.samples import job, request
from windtunnel_local.service.data.checkpoints import fetch_checkpoints, store_checkpoints
from windtunnel_local.service.data.outputs import require_place, store_artifacts
from windtunnel_local.service.data.sparse_files import add_file
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths

FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Which Debian 12's own Python has not."""


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
    """Of two files of one name the first host's wins; links inside stay; output.tar.gz is a thing of its own."""
    for host in ("algo-1", "algo-2"):
        (folders.model(host) / "same").write_text(host)
        (folders.model(host) / host).write_text("x")
    (folders.model("algo-1") / "latest").symlink_to("same")
    (folders.output_data("algo-2") / "plot.txt").write_text("x")
    two = job(tmp_path, request(hosts=2))
    assert store_artifacts(two, folders, objects) == "s3://out/models/job/output/model.tar.gz"
    assert names(objects, "models/job/output/model.tar.gz") == ["algo-1", "algo-2", "latest", "same"]
    assert names(objects, "models/job/output/output.tar.gz") == ["plot.txt"]
    with tarfile.open(objects.path("out", "models/job/output/model.tar.gz")) as tar:
        content = tar.extractfile("same")
        assert content is not None
        assert content.read() == b"algo-1"


def test_holes_are_packed_as_such(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """50 GiB of them take no time and no room; GNU tar and Python's tarfile make the same file of it again."""
    size = 50 << 30
    (folders.model("algo-1") / "deep").mkdir()
    with (folders.model("algo-1") / "deep" / "sparse").open("wb") as file:
        file.write(b"first" * 1000)
        file.seek(20 << 30)
        file.write(os.urandom(3 << 20))
        file.truncate(size)
    begun = time.monotonic()
    store_artifacts(job(tmp_path, request()), folders, objects)
    archive = objects.path("out", "models/job/output/model.tar.gz")
    assert archive.stat().st_size < 4 << 20
    assert time.monotonic() - begun < 60, "50 GiB of zeros take minutes"
    (tmp_path / "tar").mkdir()
    (tmp_path / "tarfile").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path / "tar"], check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "tarfile", **FILTER)  # noqa: S202  made here
    for folder in ("tar", "tarfile"):
        made = tmp_path / folder / "deep" / "sparse"
        assert (made.stat().st_size, made.stat().st_blocks * 512 < 8 << 20) == (size, True)
        with made.open("rb") as copy, (folders.model("algo-1") / "deep" / "sparse").open("rb") as original:
            for start in (0, 20 << 30, size - 4096):
                copy.seek(start)
                original.seek(start)
                assert copy.read(4 << 20) == original.read(4 << 20)


@given(pieces=st.lists(st.tuples(st.integers(0, 40), st.binary(min_size=1, max_size=9000)), max_size=6))
def test_a_file_with_holes_comes_back_as_it_was(pieces: list[tuple[int, bytes]]) -> None:
    """Wherever its bytes are: at the beginning, at the end, or nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sparse")
        with path.open("wb") as file:
            for place, data in pieces:
                file.seek(place * 100_003)
                file.write(data)
            file.truncate(5 << 20)
        packed = io.BytesIO()
        with (
            tarfile.open(mode="w|", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
            path.open("rb") as file,
        ):
            add_file(tar, tar.gettarinfo(path, arcname="sparse"), file)
        packed.seek(0)
        with tarfile.open(fileobj=packed) as tar:
            content = tar.extractfile("sparse")
            assert content is not None
            assert content.read() == path.read_bytes()


@pytest.mark.parametrize("compression", ["GZIP", "NONE"])
def test_storing_is_abandoned_in_the_middle_of_a_file(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, compression: str
) -> None:
    """Nothing half is stored, and nothing is left."""
    (folders.model("algo-1") / "large").write_bytes(bytes(8 << 20))
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyError("stop")

    output = {"S3OutputPath": "s3://out/models", "CompressionType": compression}
    with pytest.raises(KeyError, match="stop"):
        store_artifacts(job(tmp_path, request(OutputDataConfig=output)), folders, objects, check)
    assert objects.keys("out") == []


def uncompressed(tmp_path: Path) -> Job:
    output = {"S3OutputPath": "s3://out/models", "CompressionType": "NONE"}
    return job(tmp_path, request(hosts=2, OutputDataConfig=output))


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


@pytest.mark.parametrize("of", [job, uncompressed])
def test_nothing_written_stores_nothing(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, of: Callable[[Path], Job]
) -> None:
    """As on AWS: an empty model directory makes no object, and has no address."""
    (folders.model("algo-1") / "empty folder").mkdir()
    assert store_artifacts(of(tmp_path), folders, objects) is None
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


def test_a_key_that_is_too_long_is_found_before_the_training(tmp_path: Path, objects: FakeObjects) -> None:
    """S3 takes 1,024 bytes, of which the model's name and the job's need some."""
    long = request(OutputDataConfig={"S3OutputPath": "s3://out/" + "x" * 1001})
    says = r"would have 1025 bytes.* Shorten OutputDataConfig\.S3OutputPath, which has 1010 bytes"
    with pytest.raises(InputError, match=says):
        require_place(job(tmp_path, long), objects)
    require_place(
        job(tmp_path, request(OutputDataConfig={"S3OutputPath": "s3://out/" + "x" * 1000})), objects
    )


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
