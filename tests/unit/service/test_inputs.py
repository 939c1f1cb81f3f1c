"""Channels and source code on their way into the job's folder."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.fakes.archive import archive
from tests.fakes.objects import FakeObjects
from tests.unit.service.samples import channel, job, request
from windtunnel_local.service.data.inputs import provide_channels, provide_source
from windtunnel_local.service.data.listing import relative_key
from windtunnel_local.service.ground.containers import Mount
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job_paths import JobPaths


def unchecked() -> None:
    """Nobody stops the download."""


@pytest.fixture
def objects(tmp_path: Path) -> FakeObjects:
    return FakeObjects(tmp_path / "objects", "data")


def fetch(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, uri: str, hosts: int = 1
) -> tuple[Mount, ...]:
    """The mounts, which are the same on all hosts."""
    accepted = request(hosts=hosts, InputDataConfig=[channel("train", uri)])
    mounts = provide_channels(job(tmp_path, accepted), folders, objects, unchecked)
    assert len(mounts) == hosts
    assert len(set(mounts.values())) == 1
    return mounts["algo-1"]


def files(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("key", "prefix", "place"),
    [
        ("a/b.csv", "", "a/b.csv"),
        ("data/train/a.csv", "data/train/", "a.csv"),
        ("data/train/x/a.csv", "data/train", "x/a.csv"),
        ("data/train.csv", "data/train.csv", "train.csv"),
        ("data/train.csv", "data/tr", "train.csv"),
        ("data/train2/b.csv", "data/train", "train2/b.csv"),
        ("train.csv", "train.csv", "train.csv"),
    ],
)
def test_where_a_key_goes(key: str, prefix: str, place: str) -> None:
    """As SageMaker lays out an S3Prefix."""
    assert relative_key(key, prefix) == place


def test_a_prefix_is_copied_for_every_host(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """Hosts share one copy; the object store's file is never the script's."""
    for key in ("train/a.csv", "train/deep/b.csv", "train/folder/", "other/c.csv"):
        objects.put_text("data", key, key)
    assert fetch(tmp_path, objects, folders, "s3://data/train", hosts=2) == ()
    expected = {"a.csv": "train/a.csv", "deep/b.csv": "train/deep/b.csv"}
    one, two = folders.channel("algo-1", "train"), folders.channel("algo-2", "train")
    assert files(one) == files(two) == expected
    assert (one / "folder").is_dir()
    assert (one / "a.csv").stat().st_ino == (two / "a.csv").stat().st_ino
    (one / "a.csv").write_text("changed by a script")
    assert objects.read("data", "train/a.csv") == b"train/a.csv"


def test_fetching_again_starts_over(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """What a crash left half does not stay."""
    objects.put_text("data", "train/a.csv", "a")
    left = folders.channel("algo-1", "train") / "half"
    left.parent.mkdir(parents=True)
    left.write_text("x")
    fetch(tmp_path, objects, folders, "s3://data/train/")
    assert files(folders.channel("algo-1", "train")) == {"a.csv": "a"}


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3://data/nothing", 'No S3 objects found under S3 URL "s3://data/nothing"'),
        ("s3://nobucket/x", "the bucket of s3://nobucket/x does not exist"),
        ("file:///no/such/path", "does not exist: file:///no/such/path"),
    ],
)
def test_what_is_not_there(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, uri: str, says: str
) -> None:
    """The reason names the channel, the address and the fix."""
    with pytest.raises(InputError) as error:
        fetch(tmp_path, objects, folders, uri)
    assert str(error.value).startswith("ClientError: Data download failed:")
    assert says in str(error.value)
    assert "'train'" in str(error.value)


def test_a_key_that_climbs_out_is_refused(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """A key is data of somebody else."""
    objects.put_text("data", "train/../../../evil", "x")
    with pytest.raises(InputError, match="would leave the channel's folder"):
        fetch(tmp_path, objects, folders, "s3://data/train/")


def test_a_local_folder_is_mounted(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """Read-only and without a copy; the mount point is there, so that no engine makes it as root."""
    data = tmp_path / "with space"
    data.mkdir()
    for uri in (f"file://{data}", data.as_uri()):
        assert fetch(tmp_path, objects, folders, uri) == (
            Mount(str(data), "/opt/ml/input/data/train", read_only=True),
        )
    assert folders.channel("algo-1", "train").is_dir()


def test_a_local_file_is_mounted(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """It appears in the channel's folder under its name."""
    data = tmp_path / "train.csv"
    data.write_text("x")
    (mount,) = fetch(tmp_path, objects, folders, f"file://{data}")
    assert mount.target == "/opt/ml/input/data/train/train.csv"
    assert (folders.channel("algo-1", "train") / "train.csv").is_file()


# --- source -------------------------------------------------------------------


def test_broken_source(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """Missing, and not what it should be: before any container starts."""
    code = {"sagemaker_submit_directory": json.dumps("s3://data/code.tar.gz")}
    accepted = job(tmp_path, request(HyperParameters=code))
    with pytest.raises(InputError, match="NoSuchKey"):
        provide_source(accepted, folders, objects)
    objects.put("data", "code.tar.gz", io.BytesIO(b"no archive"))
    with pytest.raises(InputError, match=r"s3://data/code\.tar\.gz cannot be read"):
        provide_source(accepted, folders, objects)
    objects.put("data", "code.tar.gz", io.BytesIO(archive(("train.py", b"x"))))
    provide_source(accepted, folders, objects)
    with tarfile.open(folders.source) as tar:
        assert tar.getnames() == ["train.py"]


def test_data_behind_links_is_there(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """Links that a container could not follow are copied as what they point to, for every host."""
    elsewhere, data = tmp_path / "elsewhere", tmp_path / "data"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "a.csv").write_text("a")
    (elsewhere / "deep" / "b.csv").write_text("b")
    (data / "own").mkdir(parents=True)
    (data / "own" / "c.csv").write_text("c")
    (data / "a.csv").symlink_to(elsewhere / "a.csv")
    (data / "all").symlink_to("../elsewhere")
    (data / "circle").symlink_to(data)
    (data / "loop").symlink_to("loop")
    (data / "nowhere").symlink_to("nowhere-else")
    assert fetch(tmp_path, objects, folders, f"file://{data}", hosts=2) == ()
    for host in ("algo-1", "algo-2"):
        channel_folder = folders.channel(host, "train")
        expected = {"a.csv": "a", "all/a.csv": "a", "all/deep/b.csv": "b", "own/c.csv": "c"}
        assert files(channel_folder) == expected
        assert not any(path.is_symlink() for path in channel_folder.rglob("*"))


def test_links_inside_the_data_are_mounted(tmp_path: Path, objects: FakeObjects, folders: JobPaths) -> None:
    """They lead to the same file in the container; a file given by a link keeps the link's name."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("a")
    (data / "same.csv").symlink_to("a.csv")
    (data / "loop").symlink_to("loop")
    (mount,) = fetch(tmp_path, objects, folders, f"file://{data}")
    assert mount == Mount(str(data), "/opt/ml/input/data/train", read_only=True)
    (mount,) = fetch(tmp_path, objects, folders, f"file://{data}/same.csv")
    assert mount == Mount(f"{data}/a.csv", "/opt/ml/input/data/train/same.csv", read_only=True)
