"""What a script may leave where it can write, to make the server read, fill or wait for something else."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.objects import FakeObjects
from tests.unit.service.samples import config, job, request
from windtunnel_local.service.data import outputs
from windtunnel_local.service.data.checkpoints import Checkpoints, store_checkpoints
from windtunnel_local.service.data.outputs import store_artifacts
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.observed.live_usage import LiveUsage
from windtunnel_local.service.observed.metering import read_counters
from windtunnel_local.service.running.failure_reason import failure_reason, settled

HOST = "algo-1"
SECRET = "the server's database"
KINDS = ("files", "archive")


@pytest.fixture
def folders(tmp_path: Path) -> JobPaths:
    """Of one job; beside it another job's folder, and a file of the server's."""
    made = config(tmp_path).paths("job")
    for folder in made.folders(HOST):
        folder.mkdir(parents=True)
    made.tensorboard(HOST).mkdir()
    (tmp_path / "state.sqlite").write_text(SECRET)
    (tmp_path / "jobs" / "other").mkdir()
    (tmp_path / "jobs" / "other" / "data").write_text(SECRET)
    return made


def larger_than(folder: Path) -> int:
    """A size that no file on this disk can have, unless it is not written yet."""
    return min(2 * shutil.disk_usage(folder).total, 15 << 40)  # a file of ext4 has at most 16 TiB


def in_time(call: Callable[[], Any]) -> Any:
    """What the call returns or raises; fails when it hangs."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append((call(), None))
        except Exception as error:  # noqa: BLE001 - raised again below
            answers.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert answers, "it hangs"
    value, error = answers[0]
    if error is not None:
        raise error
    return value


def places(folders: JobPaths) -> list[Path]:
    """What a script can write to and the server stores."""
    return [
        folders.model(HOST),
        folders.output_data(HOST),
        folders.checkpoints(HOST),
        folders.tensorboard(HOST),
    ]


def a_job(home: Path, kind: str) -> Any:
    """With checkpoints, and its output as one archive or file by file."""
    output = {"S3OutputPath": "s3://out/models", "CompressionType": "NONE" if kind == "files" else "GZIP"}
    checkpoints = {"S3Uri": "s3://out/checkpoints"}
    return job(home, request(OutputDataConfig=output, CheckpointConfig=checkpoints))


def store_all(home: Path, folders: JobPaths, objects: FakeObjects, kind: str) -> None:
    """As at the end of a job, and as while it runs."""
    folders.checkpoint_manifest.write_text("{}")
    accepted = a_job(home, kind)

    def work() -> None:
        store_artifacts(accepted, folders, objects)
        running = Checkpoints(accepted, folders, objects)
        for _ in range(2):
            running.store_settled(lambda: False)
        store_checkpoints(accepted, folders, objects)

    in_time(work)


def stored(objects: FakeObjects) -> dict[str, bytes]:
    """All that came into the bucket, archives unpacked."""
    found: dict[str, bytes] = {}
    for info in objects.list("out", ""):
        path = objects.path("out", info.key)
        if info.key.endswith(".tar.gz"):
            with tarfile.open(path) as tar:
                for member in tar:
                    data = tar.extractfile(member) if member.isreg() else None
                    found[f"{info.key}/{member.name}"] = data.read() if data else b""
        else:
            found[info.key] = path.read_bytes()
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "target", ["state.sqlite", "jobs/other", "jobs/other/data", "/etc/shadow", "/dev/zero"]
)
def test_no_link_leads_out(
    tmp_path: Path, folders: JobPaths, objects: FakeObjects, target: str, kind: str
) -> None:
    """Neither a link in a folder nor one in the folder's place, absolute or not, to a file, folder or device."""
    for place in places(folders):
        absolute = target if target.startswith("/") else str(tmp_path / target)
        (place / "absolute").symlink_to(absolute)
        (place / "relative").symlink_to(os.path.relpath(absolute, place))
        (place / "good").write_text("mine")
    store_all(tmp_path, folders, objects, kind)
    found = stored(objects)
    assert {Path(name).name for name in found} == {"good"}
    assert set(found.values()) == {b"mine"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_is_replaced_by_a_link(
    tmp_path: Path, folders: JobPaths, objects: FakeObjects, kind: str
) -> None:
    """To another job's folder, or into the server's home; nor a folder above it."""
    for place in places(folders):
        place.rmdir()
        place.symlink_to(os.path.relpath(tmp_path / "jobs" / "other", place.parent))
    store_all(tmp_path, folders, objects, kind)
    assert stored(objects) == {}
    (tmp_path / "elsewhere" / "data").mkdir(parents=True)
    (tmp_path / "elsewhere" / "data" / "secret").write_text(SECRET)
    output = folders.output_data(HOST).parent
    output.rename(tmp_path / "moved")
    output.symlink_to(tmp_path / "elsewhere")
    store_all(tmp_path, folders, objects, kind)
    assert stored(objects) == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [JobPaths.model, JobPaths.output_data, JobPaths.tensorboard])
def test_no_folder_is_swapped_for_a_link(
    tmp_path: Path,
    folders: JobPaths,
    objects: FakeObjects,
    monkeypatch: pytest.MonkeyPatch,
    place: Callable[[JobPaths, str], Path],
    kind: str,
) -> None:
    """Between a look and the opening: in a kept container something of the job might still run."""
    folder = place(folders, HOST) / "folder"
    folder.mkdir()
    (folder / "state.sqlite").write_text("mine")

    def swap(paths: Iterable[Path], *_: object, **__: object) -> None:  # comes after the look
        if any(folder in path.parents for path in paths):
            folder.rename(tmp_path / "moved")
            folder.symlink_to(tmp_path)

    monkeypatch.setattr(outputs, "require_room", swap)
    with pytest.raises(FileNotFoundError, match="leads out"):
        store_all(tmp_path, folders, objects, kind)
    assert SECRET.encode() not in stored(objects).values()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_waits_for_a_pipe(tmp_path: Path, folders: JobPaths, objects: FakeObjects, kind: str) -> None:
    """A FIFO has no writer any more: whoever opens it waits for ever. Sockets are no files either."""
    for place in places(folders):
        os.mkfifo(place / "pipe")
        (place / "link").symlink_to("pipe")
        (place / "good").write_text("mine")
    store_all(tmp_path, folders, objects, kind)
    assert {Path(name).name for name in stored(objects)} <= {"good", "link"}
    assert set(stored(objects).values()) <= {b"mine", b""}


@pytest.mark.parametrize("kind", KINDS)
def test_links_in_a_circle_are_left_out(
    tmp_path: Path, folders: JobPaths, objects: FakeObjects, kind: str
) -> None:
    """They lead nowhere, and are no reason to fail."""
    for place in places(folders):
        (place / "one").symlink_to("two")
        (place / "two").symlink_to("one")
        (place / "good").write_text("mine")
    store_all(tmp_path, folders, objects, kind)
    assert {Path(name).name for name in stored(objects)} == {"good"}


@pytest.mark.parametrize(
    ("place", "kind"),
    [(0, "files"), (1, "files"), (2, "files"), (3, "files"), (2, "archive"), (3, "archive")],
)
def test_a_file_larger_than_the_disk_is_refused(
    tmp_path: Path, folders: JobPaths, objects: FakeObjects, place: int, kind: str
) -> None:
    """A sparse one costs a script nothing. As an object, it would take the server the whole disk, or an hour."""
    folder = places(folders)[place]
    with (folder / "huge").open("wb") as file:
        file.truncate(larger_than(tmp_path))
    with pytest.raises(ObjectError, match=r"^huge says that it has [\d,]+ GiB, but only [\d,]+ GiB are free"):
        store_all(tmp_path, folders, objects, kind)
    assert stored(objects) == {}
    assert not list(folders.scratch.glob("*"))


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_are_no_text(tmp_path: Path, folders: JobPaths, objects: FakeObjects, kind: str) -> None:
    """S3 has no key for them; the rest is stored."""
    for place in places(folders):
        Path(os.fsdecode(os.fsencode(place) + b"/\xff\xfe")).write_text("odd")
        (place / "good").write_text("mine")
    store_all(tmp_path, folders, objects, kind)
    assert {Path(name).name for name in stored(objects)} == {"good"}


def plant(path: Path, kind: str, secret: Path) -> None:
    """Something else in the place of a small file that the server reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "circle":
        path.symlink_to(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(larger_than(path.parent))
    else:
        path.symlink_to({"secret": secret, "device": Path("/dev/zero")}[kind])


PLANTS = ("pipe", "circle", "folder", "huge", "secret", "device")


@pytest.mark.parametrize("kind", PLANTS)
def test_the_failure_file(tmp_path: Path, folders: JobPaths, kind: str) -> None:
    """The reason is the exit code; neither the server's files nor a waiting thread."""
    plant(folders.failure(HOST), kind, tmp_path / "state.sqlite")
    failed = ContainerState("exited", exit_code=3)
    reason = in_time(lambda: failure_reason(HOST, failed, folders, 1))
    assert reason.strip("\0") in ("AlgorithmError: Exit Code: 3", "AlgorithmError: ")
    assert SECRET not in reason


@pytest.mark.parametrize("kind", PLANTS)
def test_the_success_file(tmp_path: Path, folders: JobPaths, kind: str) -> None:
    """Only a file of the job's own says that a lost container had come to a good end."""
    plant(folders.success(HOST), kind, tmp_path / "state.sqlite")
    lost = ContainerState("exited", exit_code=255, lost=True)
    assert in_time(lambda: settled(HOST, lost, folders)).lost == (kind != "huge")


@pytest.mark.parametrize("kind", PLANTS)
def test_the_counters(tmp_path: Path, folders: JobPaths, kind: str) -> None:
    """Records of a rank that are none hold nothing."""
    plant(folders.counters(HOST) / "rank-0.jsonl", kind, tmp_path / "state.sqlite")
    assert all(not rank.steps for rank in in_time(lambda: read_counters(folders.counters(HOST))))


@pytest.mark.parametrize("kind", PLANTS)
@pytest.mark.parametrize("name", ["cores-1/core-0.json", "cores-1"])
def test_live_usage(tmp_path: Path, folders: JobPaths, objects: FakeObjects, name: str, kind: str) -> None:
    """The thread that watches over the job does not stop at what its script publishes."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "core-0.json").write_text(json.dumps({"schema": "windtunnel.usage/1", "secret": SECRET}))
    secret = elsewhere if name == "cores-1" else elsewhere / "core-0.json"
    plant(folders.counters(HOST) / name, kind, secret)
    in_time(lambda: LiveUsage(objects, FakeClock(), config(tmp_path)).publish(job(tmp_path)))
    assert all(SECRET.encode() not in data for data in stored(objects).values())


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    """A script that changes into each folder that it makes can nest them without end; all of it goes."""
    top = tmp_path / "jobs" / "deep"
    top.mkdir(parents=True)
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(top)
    assert not top.exists()


def test_removing_follows_no_link(tmp_path: Path) -> None:
    """Nor does it change the permissions of what a link leads to."""
    other = tmp_path / "other"
    (other / "sub").mkdir(parents=True)
    (other / "sub" / "file").write_text("x")
    (other / "sub").chmod(0o500)
    top = tmp_path / "top"
    (top / "closed").mkdir(parents=True)
    (top / "closed" / "link").symlink_to(other)
    (top / "closed").chmod(0)
    (top / "link").symlink_to(other / "sub")
    remove_tree(top)
    assert not top.exists()
    assert (other / "sub").stat().st_mode & 0o777 == 0o500
    assert (other / "sub" / "file").exists()
    (other / "sub").chmod(0o700)
