"""Which files of a channel reach which host, and how: manifests, shards, FastFile."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.objects import FakeObjects
from tests.unit.service.samples import channel, job, request
from windtunnel_local.service.data.inputs import HostMounts, provide_channels
from windtunnel_local.service.data.sharding import shared_out
from windtunnel_local.service.ground.containers import Mount
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job_paths import JobPaths

IN_CONTAINER = "/opt/ml/input/data/train"


@pytest.fixture
def objects(tmp_path: Path) -> FakeObjects:
    made = FakeObjects(tmp_path / "objects", "data", "lists")
    for name in "abcde":
        made.put_text("data", f"train/{name}.csv", name)
    return made


def unchecked() -> None:
    """Nobody stops the download."""


def train(uri: str = "s3://data/train/", mode: str = "File", **source: Any) -> dict[str, Any]:
    made = channel("train", uri, InputMode=mode)
    made["DataSource"]["S3DataSource"].update(source)
    return made


def provide(
    folders: JobPaths, objects: FakeObjects, given: dict[str, Any], hosts: int = 1, **options: Any
) -> HostMounts:
    accepted = request(hosts=hosts, InputDataConfig=[given])
    return provide_channels(job(folders.root, accepted), folders, objects, unchecked, **options)


def files(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


def listed(objects: FakeObjects, document: Any, uri: str = "s3://lists/train.manifest") -> dict[str, Any]:
    """A channel of a manifest, which is stored first."""
    text = document if isinstance(document, str) else json.dumps(document)
    objects.put_text("lists", "train.manifest", text)
    return train(uri, S3DataType="ManifestFile")


# --- manifests ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "entries", "expected"),
    [
        ("s3://data/train/", ["a.csv", "c.csv", "a.csv"], {"a.csv": "a", "c.csv": "c"}),
        ("s3://data/", ["train/b.csv"], {"train/b.csv": "b"}),
        ("s3://data", ["train/b.csv"], {"train/b.csv": "b"}),
        ("s3://data/train", ["/b.csv"], {"b.csv": "b"}),
        ("s3://data/tr", ["ain/b.csv"], {"train/b.csv": "b"}),
    ],
)
def test_a_manifest_names_the_files(
    folders: JobPaths, objects: FakeObjects, prefix: str, entries: list[str], expected: dict[str, str]
) -> None:
    """The keys behind its prefix, laid out as they are below it; what it does not list is not there."""
    provide(folders, objects, listed(objects, [{"prefix": prefix}, *entries]), hosts=2)
    for host in ("algo-1", "algo-2"):
        assert files(folders.channel(host, "train")) == expected


def test_a_local_manifest_of_local_files(tmp_path: Path, folders: JobPaths, objects: FakeObjects) -> None:
    """Our extension: file:// where AWS has s3://; the files are mounted read-only, without a copy."""
    data = tmp_path / "my data"
    data.mkdir()
    for name in "xy":
        (data / name).write_text(name)
    manifest = tmp_path / "train.json"
    manifest.write_text(json.dumps([{"prefix": f"file://{data}/"}, "y"]))
    mounts = provide(folders, objects, train(f"file://{manifest}", S3DataType="ManifestFile"))
    assert mounts["algo-1"] == (Mount(str(folders.view("algo-1", "train")), IN_CONTAINER, read_only=True),)
    assert files(folders.view("algo-1", "train")) == {"y": "y"}
    assert (folders.view("algo-1", "train") / "y").stat().st_ino == (data / "y").stat().st_ino


PREFIX = {"prefix": "s3://data/train/"}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("no json", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ({"prefix": "s3://data/train/"}, "it is an object with 'prefix', not a list"),
        ([], "not a list with elements"),
        (["a.csv"], 'its first element is "a.csv", without a prefix'),
        ([{"Prefix": "s3://data/"}, "a"], "its first element is an object with 'Prefix', without a prefix"),
        ([{"prefix": ""}, "a"], "without a prefix"),
        ([{"prefix": "data/train/"}, "a.csv"], "its prefix is no S3 URI: 'data/train/'"),
        ([{**PREFIX, "more": 1}, "a.csv"], "more than a prefix"),
        ([PREFIX], "lists no keys"),
        ([PREFIX, "a.csv", 7], "its element 2 is 7, not a relative key"),
        ([PREFIX, ["a.csv"]], "its element 1 is a list"),
        ([PREFIX, ""], 'its element 1 is ""'),
        ([PREFIX, "z.csv"], "there is no object s3://data/train/z.csv (NoSuchKey)"),
        ([{"prefix": "s3://nowhere/"}, "a"], "the bucket of the prefix s3://nowhere/"),
        ([{"prefix": "file:///no/such/"}, "a"], "there is no file /no/such/a"),
        ([{"prefix": "file://"}, "a"], "its prefix is no path: 'file://' is not absolute"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_named(
    folders: JobPaths, objects: FakeObjects, document: Any, says: str
) -> None:
    """The reason names the manifest and the element, and shows the format."""
    with pytest.raises(InputError) as error:
        provide(folders, objects, listed(objects, document))
    text = str(error.value)
    assert text.startswith("ClientError: Data download failed: ")
    assert says in text
    assert "s3://lists/train.manifest" in text


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3://lists/none", "there is no manifest s3://lists/none (NoSuchKey)"),
        ("s3://nowhere/none", "there is no manifest s3://nowhere/none"),
        ("file:///no/such/manifest", "there is no manifest file:///no/such/manifest"),
    ],
)
def test_a_missing_manifest(folders: JobPaths, objects: FakeObjects, uri: str, says: str) -> None:
    """Said at once, with the fix."""
    with pytest.raises(InputError) as error:
        provide(folders, objects, train(uri, S3DataType="ManifestFile"))
    assert says in str(error.value)


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_listed_key_that_climbs_out_is_refused(folders: JobPaths, objects: FakeObjects, mode: str) -> None:
    """A manifest is data of somebody else, too."""
    objects.put_text("data", "train/../../evil", "x")
    given = listed(objects, [PREFIX, "../../evil"])
    with pytest.raises(InputError, match=r"would leave the channel's folder, as '../../evil'"):
        provide(folders, objects, {**given, "InputMode": mode})


# --- shards -------------------------------------------------------------------


def test_shards_are_even_and_complete(folders: JobPaths, objects: FakeObjects) -> None:
    """Each object goes to one host, by the order of keys; empty folders go to all."""
    objects.put_text("data", "train/folder/", "")
    provide(folders, objects, train(S3DataDistributionType="ShardedByS3Key"), hosts=2)
    one, two = folders.channel("algo-1", "train"), folders.channel("algo-2", "train")
    assert files(one) == {"a.csv": "a", "c.csv": "c", "e.csv": "e"}
    assert files(two) == {"b.csv": "b", "d.csv": "d"}
    assert (one / "folder").is_dir()
    assert (two / "folder").is_dir()


def test_more_hosts_than_objects(folders: JobPaths, objects: FakeObjects) -> None:
    """As on AWS, the rest gets nothing; the folder is there."""
    provide(folders, objects, train("s3://data/train/a.csv", S3DataDistributionType="ShardedByS3Key"), 2)
    assert files(folders.channel("algo-1", "train")) == {"a.csv": "a"}
    assert files(folders.channel("algo-2", "train")) == {}
    assert folders.channel("algo-2", "train").is_dir()


def test_a_sharded_local_folder(tmp_path: Path, folders: JobPaths, objects: FakeObjects) -> None:
    """Also deterministic, and not copied: each host sees its part of it."""
    data = tmp_path / "local"
    (data / "deep").mkdir(parents=True)
    for name in ("a", "b", "deep/c"):
        (data / name).write_text(name)
    (data / "link").symlink_to(data / "a")
    mounts = provide(folders, objects, train(f"file://{data}", S3DataDistributionType="ShardedByS3Key"), 2)
    views = [folders.view(host, "train") for host in ("algo-1", "algo-2")]
    assert [m[0].source for m in mounts.values()] == [str(view) for view in views]
    assert [files(view) for view in views] == [{"a": "a", "link": "a"}, {"b": "b", "deep/c": "deep/c"}]
    assert (views[0] / "a").stat().st_ino == (data / "a").stat().st_ino
    assert not (views[0] / "link").is_symlink()


def test_a_channel_for_one_group(folders: JobPaths, objects: FakeObjects) -> None:
    """Only its hosts get it, and share it out among themselves."""
    group = {"InstanceGroupName": "head", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1}
    workers = {**group, "InstanceGroupName": "workers", "InstanceCount": 2}
    given = train(S3DataDistributionType="ShardedByS3Key", InstanceGroupNames=["workers"])
    accepted = request(ResourceConfig={"InstanceGroups": [group, workers]}, InputDataConfig=[given])
    mounts = provide_channels(job(folders.root, accepted), folders, objects, unchecked)
    assert mounts == dict.fromkeys(("algo-1", "algo-2", "algo-3"), ())
    assert not folders.channel("algo-1", "train").exists()
    assert sorted(files(folders.channel("algo-2", "train"))) == ["a.csv", "c.csv", "e.csv"]
    assert sorted(files(folders.channel("algo-3", "train"))) == ["b.csv", "d.csv"]


@given(st.integers(0, 60), st.integers(1, 7), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_any_split_is_whole_even_and_the_same_again(count: int, hosts: int, seed: int | None) -> None:
    """Every file once, shares that differ by one at most, whatever the seed."""
    names = tuple(f"algo-{i}" for i in range(1, hosts + 1))
    wanted = {**train(S3DataDistributionType="ShardedByS3Key")}
    if seed is not None:
        wanted["ShuffleConfig"] = {"Seed": seed}
    split = list(shared_out(range(count), names, wanted))
    assert [file for file, _ in split] == list(range(count))
    assert all(len(chosen) == 1 for _, chosen in split)
    shares = Counter(chosen[0] for _, chosen in split)
    assert max(shares[n] for n in names) - min(shares[n] for n in names) <= 1
    assert split == list(shared_out(range(count), names, wanted))


def test_a_seed_shuffles_the_shares() -> None:
    """ShuffleConfig with ShardedByS3Key: another seed, another split."""
    names = ("algo-1", "algo-2", "algo-3")
    sharded = train(S3DataDistributionType="ShardedByS3Key")
    splits = {
        tuple(chosen for _, chosen in shared_out(range(30), names, {**sharded, "ShuffleConfig": {"Seed": s}}))
        for s in range(5)
    }
    assert len(splits) == 5


# --- FastFile -----------------------------------------------------------------


def test_fast_file_costs_no_copy_and_is_mounted_read_only(folders: JobPaths, objects: FakeObjects) -> None:
    """The objects' own bytes, beside the folder that the container can write to."""
    mounts = provide(folders, objects, train(mode="FastFile"), hosts=2)
    for host, (mount,) in mounts.items():
        view = folders.view(host, "train")
        assert mount == Mount(str(view), IN_CONTAINER, read_only=True)
        assert files(view) == {f"{name}.csv": name for name in "abcde"}
        assert (view / "a.csv").stat().st_ino == objects.path("data", "train/a.csv").stat().st_ino
        assert not view.is_relative_to(folders.ml(host))
        assert list(folders.channel(host, "train").iterdir()) == []


def test_replaced_and_deleted_objects_stay_readable(folders: JobPaths, objects: FakeObjects) -> None:
    """The job goes on with what it was given."""
    provide(folders, objects, train(mode="FastFile"))
    objects.put_text("data", "train/a.csv", "new")
    objects.delete("data", "train/b.csv")
    view = folders.view("algo-1", "train")
    assert ((view / "a.csv").read_text(), (view / "b.csv").read_text()) == ("a", "b")
    assert objects.read("data", "train/a.csv") == b"new"


def test_fast_file_again_after_a_crash(folders: JobPaths, objects: FakeObjects) -> None:
    """What was linked before is replaced by what is there now; no object is written to."""
    provide(folders, objects, train(mode="FastFile"))
    objects.put_text("data", "train/a.csv", "new")
    objects.delete("data", "train/b.csv")
    provide(folders, objects, train(mode="FastFile"))
    assert files(folders.view("algo-1", "train")) == {
        "a.csv": "new",
        "c.csv": "c",
        "d.csv": "d",
        "e.csv": "e",
    }
    assert objects.read("data", "train/a.csv") == b"new"


def test_fast_file_by_manifest_and_shard(folders: JobPaths, objects: FakeObjects) -> None:
    """All three together."""
    given = listed(objects, [PREFIX, "e.csv", "b.csv", "a.csv"])
    given["DataSource"]["S3DataSource"]["S3DataDistributionType"] = "ShardedByS3Key"
    provide(folders, objects, {**given, "InputMode": "FastFile"}, hosts=2)
    assert files(folders.view("algo-1", "train")) == {"a.csv": "a", "e.csv": "e"}
    assert files(folders.view("algo-2", "train")) == {"b.csv": "b"}


def test_a_runner_without_read_only_mounts_gets_copies(folders: JobPaths, objects: FakeObjects) -> None:
    """Or a script could write into the object store."""
    assert provide(folders, objects, train(mode="FastFile"), read_only_mounts=False) == {"algo-1": ()}
    copy = folders.channel("algo-1", "train") / "a.csv"
    copy.write_text("changed by a script")
    assert objects.read("data", "train/a.csv") == b"a"


@pytest.mark.parametrize("mode", ["FastFile", "File"])
@pytest.mark.parametrize("key", ["train//a.csv", "train/a.csv/b"])
def test_two_objects_for_one_place(folders: JobPaths, objects: FakeObjects, mode: str, key: str) -> None:
    """Named, with what to do, and neither is written over the other's bytes."""
    objects.put_text("data", key, "other")
    says = (
        r"train/a\.csv.* could not be written to .*: (File exists|Not a directory)\. .* Rename one of them\.$"
    )
    with pytest.raises(InputError, match=says):
        provide(folders, objects, train(mode=mode))
    assert objects.read("data", "train/a.csv") == b"a"
    assert objects.read("data", key) == b"other"


class Vanishing(FakeObjects):
    """Objects that are replaced, or deleted, between being looked up and being read."""

    def __init__(self, root: Path, *buckets: str) -> None:
        super().__init__(root, *buckets)
        self.replaced = False

    def path(self, bucket: str, key: str) -> Path:
        found = super().path(bucket, key)
        if key == "train/a.csv" and not self.replaced:
            self.replaced = True
            return found.with_name("gone")
        if key == "train/b.csv":
            self.delete(bucket, key)
        return found


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_change_at_the_worst_moment(tmp_path: Path, folders: JobPaths, mode: str) -> None:
    """A replaced object is taken as it is then; a deleted one is named."""
    objects = Vanishing(tmp_path / "objects", "data")
    objects.put_text("data", "train/a.csv", "a")
    provide(folders, objects, train(mode=mode))
    assert objects.replaced
    objects.put_text("data", "train/b.csv", "b")
    with pytest.raises(InputError, match=r"s3://data/train/b\.csv was removed while"):
        provide(folders, objects, train(mode=mode))
