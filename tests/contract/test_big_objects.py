"""Large objects against a server process of its own: flat memory, and whole or absent after kill -9.

tests/benchmarks/objects.py does the same with 2 GiB.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.contract.conftest import wait_for
from tests.contract.test_server_process import Process

MIB = 1 << 20
SIZE_MIB = 96


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def servers(home: Path) -> Iterator[list[Process]]:
    """The processes of a test, the last one serving."""
    processes = [Process(home)]
    yield processes
    for process in processes:
        process.kill()


def restarted(servers: list[Process], home: Path) -> Any:
    """A client of a new server, after SIGKILL of the old one, once it has removed what the kill left."""
    servers[-1].kill()
    servers.append(Process(home))
    s3 = servers[-1].client("s3")
    wait_for(lambda: not list((home / "objects" / "bucket" / "tmp").iterdir()))
    return s3


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(MIB):
            digest.update(chunk)
        return digest.hexdigest()


def test_a_large_file_is_there_after_a_kill(servers: list[Process], home: Path, tmp_path: Path) -> None:
    """Up by boto3's threads, killed right after the answer; down by threads, by ranges, and copied."""
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for _ in range(SIZE_MIB // 8):
            file.write(os.urandom(8 * MIB))
    s3 = servers[-1].client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="warm", Body=b"x" * MIB)
    s3.download_file("bucket", "warm", str(target))
    before = servers[-1].peak_rss_mib()
    s3.upload_file(str(source), "bucket", "big")
    s3.download_file("bucket", "big", str(target))
    s3.copy({"Bucket": "bucket", "Key": "big"}, "bucket", "copied")
    grown = servers[-1].peak_rss_mib() - before
    s3.close()
    s3 = restarted(servers, home)
    print(f"the server grew by {grown:.0f} MiB")
    assert grown < 64
    for key in ("big", "copied"):
        s3.download_file("bucket", key, str(target))
        assert sha256(target) == sha256(source)
    first = 8 * MIB - 3
    answer = s3.get_object(Bucket="bucket", Key="big", Range=f"bytes={first}-{first + 9}")
    with source.open("rb") as file, answer["Body"] as body:
        file.seek(first)
        assert body.read() == file.read(10)
    s3.close()


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


def test_a_kill_in_the_middle_leaves_no_half(servers: list[Process], home: Path) -> None:
    """No object and no temporary file of what was being sent; the parts that were answered are there to go on."""
    s3 = servers[-1].client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="old", Body=b"old")
    named = {"Bucket": "bucket", "Key": "parts"}
    named["UploadId"] = s3.create_multipart_upload(**named)["UploadId"]
    s3.upload_part(**named, PartNumber=1, Body=b"1" * 5 * MIB)
    request = AWSRequest("PUT", f"{servers[-1].note()['endpoint']}/bucket/old")
    keys = json.loads((home / "credentials.json").read_text())
    signer = Credentials(keys["access_key_id"], keys["secret_access_key"])
    S3SigV4QueryAuth(signer, "s3", keys["region"], expires=60).add_auth(request)
    body = Stalling(16 * MIB)
    sending = threading.Thread(target=send, args=(str(request.url), body))
    sending.start()
    assert body.half.wait(60)
    wait_for(lambda: list((home / "objects" / "bucket" / "tmp").iterdir()))
    s3.close()
    s3 = restarted(servers, home)
    body.go_on.set()
    sending.join(60)
    assert s3.head_object(Bucket="bucket", Key="old")["ContentLength"] == 3
    (upload,) = s3.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert upload["UploadId"] == named["UploadId"]
    (part,) = s3.list_parts(**named)["Parts"]
    last = s3.upload_part(**named, PartNumber=2, Body=b"2")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}, {"PartNumber": 2, "ETag": last["ETag"]}]
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    with s3.get_object(Bucket="bucket", Key="parts")["Body"] as answer:
        assert answer.read() == b"1" * 5 * MIB + b"2"
    s3.close()


def send(url: str, body: Stalling) -> None:
    """A PUT that nobody will answer."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection, suppress(OSError):
        headers = {"Content-Length": str(len(body))}
        connection.request("PUT", f"{parts.path}?{parts.query}", body, headers)
