"""Checkpoints on their way to S3 while a script may be writing them."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.fakes.objects import FakeObjects, ReplacedObjects
from tests.unit.service.samples import job, request
from windtunnel_local.service.data.checkpoints import Checkpoints, fetch_checkpoints, store_checkpoints
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import ObjectInfo

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "data_and_hosts.md"


class Hooked(FakeObjects):
    """An object store in which a test acts in the middle of a `put`."""

    def __init__(self, root: Path, *buckets: str) -> None:
        super().__init__(root, *buckets)
        self.before_read: Any = lambda: None
        self.puts: list[str] = []

    def put(self, bucket: str, key: str, data: BinaryIO, *given: Any, **named: Any) -> ObjectInfo:
        """Read the first block, then let the test act."""
        first = data.read(3)
        self.before_read()
        rest = b"".join(iter(lambda: data.read(1 << 16), b""))
        self.puts.append(key)
        return super().put(bucket, key, BytesIO(first + rest), *given, **named)


@pytest.fixture
def objects(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path / "objects", "out")


@pytest.fixture
def two(tmp_path: Path) -> Job:
    return job(tmp_path, request(hosts=2, CheckpointConfig={"S3Uri": "s3://out/c"}))


@pytest.fixture
def folders(tmp_path: Path, two: Job, objects: Hooked) -> JobPaths:
    folders = JobPaths(tmp_path / "jobs" / "job")
    for host in two.hosts:
        for folder in folders.folders(host):
            folder.mkdir(parents=True)
    objects.put_text("out", "c/first", "before")
    objects.puts.clear()
    fetch_checkpoints(two, folders, objects, lambda: None)
    return folders


def test_a_file_is_stored_once_it_rests(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """Not while it grows, once when it is done, and not again as long as it stays as it is."""
    sync = Checkpoints(two, folders, objects)
    path = folders.checkpoints("algo-1") / "step" / "1.pt"
    path.parent.mkdir()
    for text in ("h", "ha", "half"):
        path.write_text(text)
        sync.store_settled(lambda: False)
    assert objects.puts == []
    for _ in range(3):
        sync.store_settled(lambda: False)
    assert objects.puts == ["c/step/1.pt"]
    assert objects.read("out", "c/step/1.pt") == b"half"
    store_checkpoints(two, folders, objects)
    assert objects.puts == ["c/step/1.pt"], "what is there is not stored again at the end"


def test_a_file_that_is_replaced_all_the_time(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """As careful scripts do it, in one step: what rests is whole, though another one comes before the next look."""
    path = folders.checkpoints("algo-1") / "last.pt"
    path.write_text("0")
    sync = Checkpoints(two, folders, objects)
    sync.store_settled(lambda: False)
    for number in range(1, 4):
        draft = path.with_suffix(".new")
        draft.write_text(str(number))
        resting = path.stat().st_mtime_ns - 10**9
        os.utime(draft, ns=(resting, resting))
        draft.replace(path)
        assert sync.store_settled(lambda: False) == 1
        assert objects.read("out", "c/last.pt") == str(number).encode()
    draft.write_text("is being written")
    later = path.stat().st_mtime_ns + 10**12
    os.utime(draft, ns=(later, later))
    draft.replace(path)
    assert sync.store_settled(lambda: False) == 0


def test_a_file_that_changes_while_it_is_read(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """S3 keeps the whole file that it had."""
    path = folders.checkpoints("algo-2") / "first"
    path.write_text("x" * 5000)
    sync = Checkpoints(two, folders, objects)
    sync.store_settled(lambda: False)
    objects.before_read = lambda: path.write_text("y" * 10)
    sync.store_settled(lambda: False)
    assert objects.read("out", "c/first") == b"before"
    objects.before_read = lambda: None
    for _ in range(2):
        sync.store_settled(lambda: False)
    assert objects.read("out", "c/first") == b"y" * 10


def test_deletions_go_out_once_they_last(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """A file that is replaced by removing it first is not gone; one that all hosts removed is."""
    sync = Checkpoints(two, folders, objects)
    sync.store_settled(lambda: False)
    for host in two.hosts:
        (folders.checkpoints(host) / "first").unlink()
    sync.store_settled(lambda: False)
    assert objects.keys("out") == ["c/first"]
    sync.store_settled(lambda: False)
    assert objects.keys("out") == []
    objects.put_text("out", "c/first", "somebody else's")
    sync.store_settled(lambda: False)
    store_checkpoints(two, folders, objects)
    assert objects.keys("out") == ["c/first"], "only what was fetched or stored by the job is deleted"


def test_a_sync_that_is_called_off(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """Nothing half is stored, and the next one goes on."""
    off = False

    def stop() -> None:
        nonlocal off
        off = True

    (folders.checkpoints("algo-1") / "new").write_text("z" * 5000)
    sync = Checkpoints(two, folders, objects)
    sync.store_settled(lambda: off)
    objects.before_read = stop
    sync.store_settled(lambda: off)
    assert objects.keys("out") == ["c/first"]
    store_checkpoints(two, folders, objects)
    assert objects.keys("out") == ["c/first", "c/new"]


@pytest.mark.parametrize("kind", ["folder", "file", "pipe"])
def test_what_is_swapped_for_a_way_out(
    two: Job, folders: JobPaths, objects: Hooked, tmp_path: Path, kind: str
) -> None:
    """Between the look and the opening a script may put a link or a pipe there: nothing of others gets out."""
    secret = tmp_path / "secrets"
    secret.mkdir()
    (secret / "key").write_text("abc")
    folder = folders.checkpoints("algo-1") / "sub"
    folder.mkdir()
    (folder / "key").write_text("abc")
    stamp = (secret / "key").stat()
    os.utime(folder / "key", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    def swap() -> bool:
        (folder / "key").unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(folder / "key")
        elif kind == "file":
            (folder / "key").symlink_to(secret / "key")
        else:
            folder.rmdir()
            folder.symlink_to(secret)
        return False

    sync = Checkpoints(two, folders, objects)
    sync.store_settled(lambda: False)
    sync.store_settled(swap)
    assert objects.keys("out") == ["c/first"]


def test_what_a_kill_may_have_torn(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """What was written in the last second of a killed host is left out; S3 keeps the older whole one."""
    end = datetime(2026, 1, 2, 3, 0, 0, tzinfo=timezone.utc)
    for name, seconds_before in (("first", 0.2), ("second", 5.0)):
        path = folders.checkpoints("algo-1") / name
        path.write_text("new")
        moment = int((end.timestamp() - seconds_before) * 1e9)
        os.utime(path, ns=(moment, moment))
    store_checkpoints(two, folders, objects, {"algo-1": end})
    assert objects.read("out", "c/first") == b"before"
    assert objects.read("out", "c/second") == b"new"


def test_folders_that_were_not_filled_say_nothing(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """An attempt that ended in the middle of its download deletes and overwrites nothing in S3."""
    folders.checkpoint_manifest.unlink()
    (folders.checkpoints("algo-1") / "first").write_text("bef")
    (folders.checkpoints("algo-2") / "first").unlink()
    sync = Checkpoints(two, folders, objects)
    for _ in range(3):
        sync.store_settled(lambda: False)
    store_checkpoints(two, folders, objects)
    assert objects.read("out", "c/first") == b"before"


def test_a_new_server_goes_on(two: Job, folders: JobPaths, objects: Hooked) -> None:
    """What another server has stored is neither stored again nor forgotten when it is deleted."""
    (folders.checkpoints("algo-1") / "new").write_text("n")
    sync = Checkpoints(two, folders, objects)
    for _ in range(2):
        sync.store_settled(lambda: False)
    assert json.loads(folders.checkpoint_manifest.read_text()).keys() == {"first", "new"}
    heir = Checkpoints(two, folders, objects)
    for _ in range(3):
        heir.store_settled(lambda: False)
    assert objects.puts == ["c/new"]
    (folders.checkpoints("algo-1") / "new").unlink()
    store_checkpoints(two, folders, objects)
    assert objects.keys("out") == ["c/first"]


def test_a_checkpoint_that_another_job_replaces_is_taken(two: Job, tmp_path: Path) -> None:
    """It goes on at the same address, and stores a newer one while this job fetches."""
    objects, folders = ReplacedObjects(tmp_path / "s3", "out"), JobPaths(tmp_path / "jobs" / "other")
    objects.put_text("out", "c/latest", "newer")
    fetch_checkpoints(two, folders, objects, lambda: None)
    assert [(folders.checkpoints(host) / "latest").read_text() for host in two.hosts] == ["newer", "newer"]


class Files:
    """What a script of the page needs of torch and torch_xla: one core, and its state in a file."""

    @staticmethod
    def load(path: Path, **_: str) -> Any:
        return json.loads(path.read_text())

    @staticmethod
    def save(state: Any, path: Path) -> None:
        path.write_text(json.dumps(state))

    @staticmethod
    def is_master_ordinal() -> bool:
        return True


class Part:
    """A model or an optimizer: all that it knows is how many epochs it was trained."""

    def __init__(self) -> None:
        self.trained = 0

    def state_dict(self) -> dict[str, int]:
        return {"trained": self.trained}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.trained = state["trained"]


def test_the_page_on_checkpoints_is_right(two: Job, tmp_path: Path, objects: Hooked) -> None:
    """Its script, run until it fails, goes on in another job with the same prefix."""
    section = PAGE.read_text().partition("## Resume from checkpoints")[2].partition("\n## ")[0]
    script = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)[1]
    trained: list[int] = []

    def run(name: str, fails_in: int) -> Part:
        folders = JobPaths(tmp_path / "jobs" / name)
        for host in two.hosts:
            for folder in folders.folders(host):
                folder.mkdir(parents=True)
        fetch_checkpoints(two, folders, objects, lambda: None)
        model = Part()

        def train(epoch: int) -> None:
            if epoch == fails_in:
                raise KeyboardInterrupt
            trained.append(epoch)
            model.trained += 1

        known = {
            "torch": Files,
            "xm": Files,
            "model": model,
            "optimizer": Part(),
            "epochs": 5,
            "train": train,
        }
        with suppress(KeyboardInterrupt):
            exec(script.replace("/opt/ml/checkpoints", str(folders.checkpoints("algo-1"))), known)  # noqa: S102
        store_checkpoints(two, folders, objects)
        return model

    run("one", fails_in=3)
    assert objects.keys("out") == ["c/last.pt"]
    assert run("other", fails_in=99).trained == 5
    assert trained == [0, 1, 2, 3, 4]
