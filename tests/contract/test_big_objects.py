"""Large objects against a server process of its own: flat memory, and whole or absent after kill -9.

tests/benchmarks/objects.py does the same with 2 GiB.
"""

from __future__ import annotations

import filecmp
import http.client
import json
import os
import threading
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.contract.conftest import wait_for
from tests.contract.test_server_process import Process

MIB = 1 << 20
SIZE_MIB = 50


class Stalling:
    """A body that is half sent when the server dies."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.half = threading.Event()
        self.go_on = threading.Event()
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        if self._left <= self._size // 2:
            self.half.set()
            self.go_on.wait(60)
        data = b"x" * min(size if size > 0 else self._left, self._left, MIB)
        self._left -= len(data)
        return data


def test_large_files_pass_in_flat_memory_and_a_kill_leaves_no_half(tmp_path: Path) -> None:
    """Up in one piece and by boto3's threads, down by threads and by ranges, copied: the server grows by a few buffers.

    Killed by SIGKILL, it has all that it answered. Of what was being sent then there is no object and no temporary
    file; the parts that were answered are there to go on.
    """
    home, source, target = tmp_path / "home", tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(MIB) * SIZE_MIB)
    first = Process(home)
    s3 = first.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="old", Body=b"x" * MIB)
    s3.download_file("bucket", "old", str(target))
    before = first.peak_rss_mib()
    with source.open("rb") as file:
        s3.put_object(Bucket="bucket", Key="one", Body=file)
    s3.upload_file(str(source), "bucket", "parts")
    for key in ("one", "parts"):
        s3.download_file("bucket", key, str(target))
        assert filecmp.cmp(target, source, shallow=False)
    s3.copy({"Bucket": "bucket", "Key": "parts"}, "bucket", "copied")
    grown = first.peak_rss_mib() - before
    print(f"the server grew by {grown:.0f} MiB")
    assert grown < 40

    named = {"Bucket": "bucket", "Key": "begun"}
    named["UploadId"] = s3.create_multipart_upload(**named)["UploadId"]
    s3.upload_part(**named, PartNumber=1, Body=b"1" * 5 * MIB)
    request = AWSRequest("PUT", f"{first.note()['endpoint']}/bucket/old")
    keys = json.loads((home / "credentials.json").read_text())
    signer = Credentials(keys["access_key_id"], keys["secret_access_key"])
    S3SigV4QueryAuth(signer, "s3", keys["region"], expires=60).add_auth(request)
    body = Stalling(16 * MIB)
    sending = threading.Thread(target=send, args=(str(request.url), body))
    sending.start()
    assert body.half.wait(60)
    temporary = home / "objects" / "bucket" / "tmp"
    wait_for(lambda: list(temporary.iterdir()))
    s3.close()
    first.kill()
    second = Process(home)
    s3 = second.client("s3")
    wait_for(lambda: not list(temporary.iterdir()))
    body.go_on.set()
    sending.join(60)
    assert s3.head_object(Bucket="bucket", Key="old")["ContentLength"] == MIB
    for key in ("one", "copied"):
        s3.download_file("bucket", key, str(target))
        assert filecmp.cmp(target, source, shallow=False)
    span = 8 * MIB - 3
    answer = s3.get_object(Bucket="bucket", Key="parts", Range=f"bytes={span}-{span + 9}")
    with source.open("rb") as file, answer["Body"] as data:
        file.seek(span)
        assert data.read() == file.read(10)
    (upload,) = s3.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert upload["UploadId"] == named["UploadId"]
    (part,) = s3.list_parts(**named)["Parts"]
    last = s3.upload_part(**named, PartNumber=2, Body=b"2")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}, {"PartNumber": 2, "ETag": last["ETag"]}]
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    with s3.get_object(Bucket="bucket", Key="begun")["Body"] as data:
        assert data.read() == b"1" * 5 * MIB + b"2"
    s3.close()
    second.kill()


def send(url: str, body: Stalling) -> None:
    """A PUT that nobody will answer."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection, suppress(OSError):
        headers = {"Content-Length": str(len(body))}
        connection.request("PUT", f"{parts.path}?{parts.query}", body, headers)
