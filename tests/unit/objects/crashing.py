"""Runs each operation of the store again and again, killed at each step that it takes in the file system.

    python crashing.py FOLDER

A child process is killed by SIGKILL right before its n-th change or look at a file; then the parent opens
the store as a new server would, and checks what must hold. Prints how many steps of each operation were tried.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windtunnel_local.objects import FileObjects, MultipartUploads, uploads
from windtunnel_local.objects.errors import NoSuchUpload
from windtunnel_local.objects.uploads import Part

STEPS = frozenset({"open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate"})
OLD, NEW = b"old", b"new bytes"
FULL = b"p" * 5000
BUCKET = "bucket"


class World:
    """A store with one object, and one upload of two parts."""

    def __init__(self, root: Path) -> None:
        self.objects = FileObjects(root)
        self.uploads = MultipartUploads(self.objects)
        self.root = root

    def fill(self) -> None:
        """Before the operation."""
        self.objects.create_bucket(BUCKET)
        self.objects.put(BUCKET, "k", io.BytesIO(OLD), {"a": "b"})
        self.upload = self.uploads.create(BUCKET, "k", {})
        self.parts = [self.part(1, FULL), self.part(2, b"tail")]

    def copied_to(self, root: Path) -> World:
        """One like it in another folder: cheaper than to fill that."""
        shutil.copytree(self.root, root)
        other = World(root)
        other.upload, other.parts = self.upload, list(self.parts)
        return other

    def part(self, number: int, data: bytes) -> Part:
        return Part(number, self.uploads.put_part(BUCKET, "k", self.upload, number, io.BytesIO(data)).etag)

    def read(self, key: str = "k") -> bytes | None:
        """The object as a client gets it: whole, and as long as its record says."""
        if self.objects.head(BUCKET, key) is None:
            return None
        info, file = self.objects.open(BUCKET, key)
        with file:
            data = file.read()
        assert len(data) == info.size
        return data

    def joined(self) -> None:
        self.complete()
        assert self.objects.path(BUCKET, "k").read_bytes() == FULL + b"tail"

    def complete(self) -> None:
        self.uploads.complete(BUCKET, "k", self.upload, self.parts)

    def put(self) -> None:
        self.objects.put(BUCKET, "k", io.BytesIO(NEW))

    def put_new(self) -> None:
        self.objects.put(BUCKET, "deep/er/x", io.BytesIO(NEW))

    def copy(self) -> None:
        self.objects.copy_record((BUCKET, self.objects.existing(BUCKET, "k")), (BUCKET, "x"), {})

    def copy_parts(self) -> None:
        self.complete()
        self.objects.copy_record((BUCKET, self.objects.existing(BUCKET, "k")), (BUCKET, "x"), {})

    def delete(self) -> None:
        self.objects.delete(BUCKET, "k")

    def delete_parts(self) -> None:
        self.complete()
        self.objects.delete(BUCKET, "k")

    def retag(self) -> None:
        self.objects.set_tags(BUCKET, "k", {"t": "1"})

    def abort(self) -> None:
        self.uploads.abort(BUCKET, "k", self.upload)

    def begin(self) -> None:
        self.uploads.create(BUCKET, "other", {"a": "b"})

    def replace_part(self) -> None:
        self.parts[1] = self.part(2, b"other")


WHOLE = FULL + b"tail"
# What a client may find afterwards, at the key and at the second key.
OUTCOMES: dict[str, set[tuple[bytes | None, bytes | None]]] = {
    "put": {(OLD, None), (NEW, None)},
    "put_new": {(OLD, None)},
    "complete": {(OLD, None), (WHOLE, None)},
    "joined": {(OLD, None), (WHOLE, None)},
    "copy": {(OLD, None), (OLD, OLD)},
    "copy_parts": {(OLD, None), (WHOLE, None), (WHOLE, WHOLE)},
    "delete": {(OLD, None), (None, None)},
    "delete_parts": {(OLD, None), (WHOLE, None), (None, None)},
    "retag": {(OLD, None)},
    "abort": {(OLD, None)},
    "begin": {(OLD, None)},
    "replace_part": {(OLD, None)},
}


def main() -> None:
    """Try every step."""
    folder = Path(sys.argv[1])
    uploads.MIN_PART_BYTES = len(FULL)  # a step is the same with less to copy
    filled = World(folder / "filled")
    filled.fill()
    for operation in OUTCOMES:
        step = 0
        done = False
        while not done:
            step += 1
            root = folder / operation / str(step)
            world = filled.copied_to(root)
            done = run(getattr(world, operation), step)
            check(World(root), world, operation, done)
            shutil.rmtree(root)
        print(operation, step, flush=True)


def run(operation: Callable[[], Any], step: int) -> bool:
    """In a child that dies before its step; returns whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, _: Any) -> None:
            nonlocal left
            if event in STEPS:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        operation()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


def check(successor: World, before: World, operation: str, done: bool) -> None:
    """What a new server finds, before and after it has removed the remains."""
    second = "deep/er/x" if operation == "put_new" else "x"
    for recovered in (False, True):
        if recovered:
            successor.objects.recover()
            nothing_but_what_is_used(successor)
        if operation == "put_new":
            assert successor.read() == OLD
            assert successor.read(second) in {None, NEW}
            assert not done or successor.read(second) == NEW
        else:
            assert (successor.read(), successor.read(second)) in OUTCOMES[operation]
    goes_on(successor, before, operation, done)


def goes_on(successor: World, before: World, operation: str, done: bool) -> None:
    """The upload is still there until it was completed or aborted: a client can go on with it."""
    if operation in ("put", "put_new", "copy", "delete", "retag", "begin"):
        successor.uploads.complete(BUCKET, "k", before.upload, before.parts)
        assert successor.read() == WHOLE
    elif operation == "replace_part":
        stored = successor.uploads.parts(BUCKET, "k", before.upload)
        assert [part.size for part, _ in stored] in ([len(FULL), 4], [len(FULL), 5])
        parts = [Part(part.number, part.etag) for part, _ in stored]
        successor.uploads.complete(BUCKET, "k", before.upload, parts)
    elif operation in ("complete", "joined"):
        # Asked again, since the answer did not come: the same object, made now or made before.
        successor.uploads.complete(BUCKET, "k", before.upload, before.parts)
        assert successor.read() == WHOLE
        assert not successor.uploads.under_way(BUCKET)
    elif operation == "abort" and done:
        try:
            successor.uploads.find(BUCKET, "k", before.upload)
        except NoSuchUpload:
            return
        raise AssertionError("the upload is still there")


def nothing_but_what_is_used(world: World) -> None:
    """No temporary file, no blob without a record, no folder without an upload or an object."""
    bucket = world.root / BUCKET
    assert not list((bucket / "tmp").iterdir())
    records = [world.objects.record(BUCKET, info.key) for info in world.objects.list(BUCKET, "")]
    assert {path.name for path in (bucket / "blobs").iterdir()} == {r.blob for r in records if r and r.blob}
    folders = {r.parts for r in records if r and r.parts}
    folders |= {upload.id for upload in world.uploads.under_way(BUCKET)}
    assert {path.name for path in (bucket / "uploads").iterdir()} == folders


if __name__ == "__main__":
    main()
