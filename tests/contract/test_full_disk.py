"""A home on a disk that is full, and then is not: a small file system of its own, which only root can mount."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend, serving, wait_for
from tests.contract.test_s3_client import read
from tests.fakes.runner import FakeContainer
from tests.fakes.wire import create_request

MIB = 1 << 20
SIZE_MIB = 24


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The mounted file system."""
    size_mib = getattr(request, "param", SIZE_MIB)
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"only root may mount a small file system here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def backend(disk: Path) -> Iterator[Backend]:
    """A server whose home is all that is on the disk, but for what a test puts there."""
    with serving(disk / "home") as running:
        yield running


def fill(disk: Path) -> Path:
    """Take all the space that is left, to the last byte."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def temporary_files(backend: Backend) -> list[Path]:
    root = Path(backend.application.objects.folder("bucket"))
    return list((root / "tmp").iterdir())


def refused(call: Any, **arguments: Any) -> str:
    """The refusal's text; its code must be S3's for "try again later"."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    answer = error.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (
        "ServiceUnavailable",
        503,
    )
    return str(answer["Error"]["Message"])


def test_uploads_are_refused_whole_and_work_again(backend: Backend, disk: Path) -> None:
    """With the reason, nothing half stored, what was there intact; deleting needs no space."""
    s3 = backend.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="kept", Body=b"kept")
    upload = {"Bucket": "bucket", "Key": "parts"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    first = s3.upload_part(**upload, PartNumber=1, Body=b"1" * 5 * MIB)["ETag"]
    second = s3.upload_part(**upload, PartNumber=2, Body=b"2")["ETag"]
    assert "No space is left" in refused(
        s3.put_object, Bucket="bucket", Key="big", Body=b"x" * SIZE_MIB * MIB
    )
    assert not temporary_files(backend)
    filler = fill(disk)
    for call, arguments in (
        (s3.put_object, {"Bucket": "bucket", "Key": "kept", "Body": b"other"}),
        (s3.put_object, {"Bucket": "bucket", "Key": "new", "Body": b"x" * MIB}),
        (s3.put_object_tagging, {"Bucket": "bucket", "Key": "kept", "Tagging": {"TagSet": []}}),
        (s3.copy_object, {"Bucket": "bucket", "Key": "copy", "CopySource": "bucket/kept"}),
        (s3.create_multipart_upload, {"Bucket": "bucket", "Key": "another"}),
        (s3.upload_part, {**upload, "PartNumber": 2, "Body": b"x" * MIB}),
        (s3.complete_multipart_upload, {**upload, **completion(first, second)}),
    ):
        assert "No space is left" in refused(call, **arguments)
    assert not temporary_files(backend)
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["kept"]
    assert len(s3.list_multipart_uploads(Bucket="bucket")["Uploads"]) == 1
    assert read(s3.get_object(Bucket="bucket", Key="kept")) == b"kept"
    s3.delete_object(Bucket="bucket", Key="kept")
    filler.unlink()
    s3.put_object(Bucket="bucket", Key="kept", Body=b"again")
    s3.complete_multipart_upload(**upload, **completion(first, second))
    assert read(s3.get_object(Bucket="bucket", Key="parts")) == b"1" * 5 * MIB + b"2"
    assert read(s3.get_object(Bucket="bucket", Key="kept")) == b"again"


def completion(*etags: str) -> dict[str, Any]:
    parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
    return {"MultipartUpload": {"Parts": parts}}


@pytest.mark.parametrize("disk", [36], indirect=True)
def test_jobs_are_refused_or_failed_with_the_reason_and_run_again(backend: Backend, disk: Path) -> None:
    """A job that cannot be recorded is refused; one that cannot get its data, which came in one piece or in parts,
    fails; the next one completes.
    """
    sagemaker, s3 = backend.client("sagemaker"), backend.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.create_bucket(Bucket="out")
    channels = {}
    for name, parts_of in (("whole", 10 * MIB), ("parts", 5 * MIB)):
        transfer = TransferConfig(multipart_threshold=parts_of, multipart_chunksize=5 * MIB)
        s3.upload_fileobj(io.BytesIO(b"x" * 6 * MIB), "bucket", f"{name}/x", Config=transfer)
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://bucket/{name}"}}
        channels[name] = {"ChannelName": name, "DataSource": source}
    filler = fill(disk)
    with pytest.raises(ClientError) as error:
        create_many(sagemaker)
    assert error.value.response["Error"]["Code"] == "ServiceUnavailable"
    assert "disk" in error.value.response["Error"]["Message"]
    taken = [job["TrainingJobName"] for job in sagemaker.list_training_jobs()["TrainingJobSummaries"]]
    filler.unlink()
    for name in taken:
        assert backend.ended(name)["TrainingJobStatus"] in ("Completed", "Failed")
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b"\0" * (free - 4 * MIB))  # enough for the record, not for the channel
    for name, channel in channels.items():
        answer = backend.run(name, InputDataConfig=[channel])
        assert answer["TrainingJobStatus"] == "Failed"
        assert re.search(r"No space (is )?left", answer["FailureReason"])
        assert "None" not in answer["FailureReason"]
    ballast.unlink()
    answer = backend.run("again", InputDataConfig=[channels["whole"]])
    assert answer["TrainingJobStatus"] == "Completed", answer.get("FailureReason")
    bucket, _, key = answer["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    with tarfile.open(fileobj=io.BytesIO(read(s3.get_object(Bucket=bucket, Key=key)))) as archive:
        assert archive.getnames()[-1] == "model.txt"


@pytest.mark.parametrize("disk", [12, 100], indirect=True)
@pytest.mark.parametrize("attempts", [1, 30], ids=["gives up", "tries again and again"])
def test_a_script_that_fills_the_disk(backend: Backend, attempts: int) -> None:
    """Its job ends, and what it wrote is removed: nobody has to look for it in the home."""

    def script(container: FakeContainer) -> int:
        container.write("/opt/ml/model/model.txt", "weights")
        for _ in range(attempts):  # each takes what has been freed meanwhile, also for the record
            fill(container.path("/opt/ml/model"))
            container.print("No space left on device")
            time.sleep(0.02)
        return 1

    usual = backend.runner.script
    backend.runner.script = script
    backend.client("s3").create_bucket(Bucket="out")
    answer = backend.run("greedy")
    assert answer["TrainingJobStatus"] == "Failed"
    assert "Exit Code: 1" in answer["FailureReason"]
    backend.runner.script = usual
    wait_for(lambda: not backend.application.jobs.busy())
    assert backend.run("again")["TrainingJobStatus"] == "Completed"


def create_many(sagemaker: Any) -> None:
    """More jobs than the database has pages in hand for."""
    for number in range(200):
        sagemaker.create_training_job(**create_request(f"refused-{number}"))
