"""boto3's S3 client, unmodified, against the object store over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.contract.conftest import Backend
from windtunnel_local import connections
from windtunnel_local.api.dispatch import STREAMS

MIB = 1 << 20


@pytest.fixture
def backend(cleared_backend: Backend) -> Backend:
    """One server will do."""
    return cleared_backend


def read(answer: Any) -> bytes:
    with answer["Body"] as body:
        data: bytes = body.read()
    return data


def code_of(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(**arguments)
    return str(error.value.response["Error"]["Code"])


def test_buckets(s3: Any) -> None:
    """Made, found, listed, made again without harm; a missing one is a 404."""
    s3.create_bucket(Bucket="bucket")
    s3.head_bucket(Bucket="bucket", ExpectedBucketOwner="000000000000")
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert names == ["bucket", "windtunnel-us-east-1-000000000000"]  # the default one is there from the start
    assert s3.get_bucket_location(Bucket="bucket")["LocationConstraint"] is None
    assert code_of(s3.head_bucket, Bucket="nope") == "404"
    assert code_of(s3.head_bucket, Bucket="bucket", ExpectedBucketOwner="111111111111") == "403"
    assert code_of(s3.put_object, Bucket="nope", Key="k", Body=b"x") == "NoSuchBucket"
    assert code_of(s3.create_bucket, Bucket="under_score") == "InvalidBucketName"


def test_a_refused_upload_does_not_spoil_its_connection(s3: Any) -> None:
    """A client that was told not to send its body goes on with its next request."""
    for _ in range(3):
        assert code_of(s3.put_object, Bucket="nope", Key="k", Body=b"x" * 100) == "NoSuchBucket"
        s3.put_object(Bucket="bucket", Key="k", Body=b"x")


def test_an_object_comes_back_as_it_was_sent(s3: Any) -> None:
    """Bytes, metadata, type, encryption as the v2 SDK sends it, ETag, checksum."""
    put = s3.put_object(
        Bucket="bucket",
        Key="k",
        Body=b"hello",
        Metadata={"a": "b"},
        ContentType="text/plain",
        ServerSideEncryption="aws:kms",
    )
    etag = f'"{hashlib.md5(b"hello", usedforsecurity=False).hexdigest()}"'
    assert (put["ETag"], put["ServerSideEncryption"]) == (etag, "aws:kms")
    got = s3.get_object(Bucket="bucket", Key="k")
    assert read(got) == b"hello"
    head = s3.head_object(Bucket="bucket", Key="k")
    for answer in (got, head):
        assert (answer["ETag"], answer["ContentLength"], answer["ContentType"]) == (etag, 5, "text/plain")
        assert answer["Metadata"] == {"a": "b"}
    assert got["ChecksumCRC32"] == "NhCmhg=="


def test_ranges_and_conditions(s3: Any) -> None:
    """Parts of an object, and only if it is the one that is meant."""
    etag = s3.put_object(Bucket="bucket", Key="k", Body=b"0123456789")["ETag"]
    for wanted, expected in (
        ("bytes=2-4", b"234"),
        ("bytes=7-", b"789"),
        ("bytes=-3", b"789"),
        ("bytes=8-99", b"89"),
    ):
        answer = s3.get_object(Bucket="bucket", Key="k", Range=wanted)
        assert read(answer) == expected
        assert answer["ContentRange"].endswith("/10")
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert code_of(s3.get_object, Bucket="bucket", Key="k", Range="bytes=10-") == "InvalidRange"
    assert read(s3.get_object(Bucket="bucket", Key="k", IfMatch=etag)) == b"0123456789"
    assert code_of(s3.get_object, Bucket="bucket", Key="k", IfMatch='"x"') == "PreconditionFailed"
    assert code_of(s3.get_object, Bucket="bucket", Key="k", IfNoneMatch=etag) == "304"
    assert code_of(s3.put_object, Bucket="bucket", Key="k", Body=b"", IfNoneMatch="*") == "PreconditionFailed"
    s3.put_object(Bucket="bucket", Key="new", Body=b"", IfNoneMatch="*")


def test_what_is_missing_or_not_served_is_said(s3: Any) -> None:
    """With S3's codes; what is not simulated is never dropped in silence."""
    assert code_of(s3.get_object, Bucket="bucket", Key="nope") == "NoSuchKey"
    assert code_of(s3.head_object, Bucket="bucket", Key="nope") == "404"
    assert (
        code_of(s3.put_bucket_cors, Bucket="bucket", CORSConfiguration={"CORSRules": []}) == "NotImplemented"
    )
    assert code_of(s3.put_object, Bucket="bucket", Key="k", ObjectLockMode="GOVERNANCE") == "NotImplemented"
    assert code_of(s3.get_object, Bucket="bucket", Key="k", VersionId="1") == "NotImplemented"
    assert code_of(s3.put_object, Bucket="bucket", Key="x" * 1025, Body=b"") == "KeyTooLongError"
    s3.delete_object(Bucket="bucket", Key="nope")


# What file systems, URLs and XML trip over, alone and as parts of longer keys.
TRICKY = st.one_of(
    st.sampled_from(["/", "//", "..", ".", "../", "%2e%2e", "+", "?", "#", "&", "<", ";", "\\", "~", " "]),
    st.sampled_from(["\x00", "\n", "\r", "\x7f", "\ufffe", "\u202e", "\U0001f600", "é", "e\u0301"]),
    st.sampled_from(["con", "keys", "upload.json", "x" * 64, "a", "b"]),
)
KEYS = st.one_of(
    st.lists(TRICKY, min_size=1, max_size=6).map("".join), st.text(min_size=1, max_size=12), TRICKY
).filter(lambda key: len(key.encode()) <= 1024)


# The longest, and those that were met.
@example({"../x", "a//b", "a/", "a", "/", "x" * 1024, "é" * 512, "a b+c&d=e?f#g%20", "..", "."}, "/")
@given(st.sets(KEYS, min_size=1, max_size=5), st.sampled_from(["/", ".", "a/"]))
@settings(max_examples=25)
def test_any_key_goes_round(backend: Backend, s3: Any, keys: set[str], delimiter: str) -> None:
    """Written, listed, rolled up, read and deleted under the same name, whatever it holds; none leads outside."""
    home = backend.application.objects.folder("bucket").parents[1]
    outside = {path.name for folder in (home, home.parent) for path in folder.iterdir()}
    for key in keys:
        s3.put_object(Bucket="bucket", Key=key, Body=key.encode())
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", PaginationConfig={"PageSize": 2})
    assert [e["Key"] for page in pages for e in page["Contents"]] == sorted(keys, key=str.encode)
    rolled = s3.list_objects_v2(Bucket="bucket", Delimiter=delimiter)
    heads = {key.partition(delimiter)[0] + delimiter for key in keys if delimiter in key}
    assert [e["Prefix"] for e in rolled.get("CommonPrefixes", [])] == sorted(heads, key=str.encode)
    assert {e["Key"] for e in rolled.get("Contents", [])} == {key for key in keys if delimiter not in key}
    assert {path.name for folder in (home, home.parent) for path in folder.iterdir()} == outside
    for key in keys:
        assert read(s3.get_object(Bucket="bucket", Key=key)) == key.encode()
        s3.copy_object(Bucket="bucket", Key="copy of it", CopySource={"Bucket": "bucket", "Key": key})
        assert read(s3.get_object(Bucket="bucket", Key="copy of it")) == key.encode()
        s3.delete_object(Bucket="bucket", Key=key)
    s3.delete_object(Bucket="bucket", Key="copy of it")
    assert s3.list_objects_v2(Bucket="bucket")["KeyCount"] == 0


def test_listings_are_paged_and_rolled_up(s3: Any) -> None:
    """By both generations of the operation."""
    keys = [f"{folder}/{number}" for folder in "abc" for number in range(4)] + ["top"]
    for key in keys:
        s3.put_object(Bucket="bucket", Key=key, Body=b"")
    for operation in ("list_objects_v2", "list_objects"):
        pages = s3.get_paginator(operation).paginate(Bucket="bucket", PaginationConfig={"PageSize": 3})
        assert [entry["Key"] for page in pages for entry in page["Contents"]] == keys
        pages = s3.get_paginator(operation).paginate(
            Bucket="bucket", Delimiter="/", PaginationConfig={"PageSize": 2}
        )
        rolled = list(pages)
        assert [p["Prefix"] for page in rolled for p in page.get("CommonPrefixes", [])] == ["a/", "b/", "c/"]
        assert [e["Key"] for page in rolled for e in page.get("Contents", [])] == ["top"]
    assert code_of(s3.list_objects_v2, Bucket="bucket", ContinuationToken="?") == "InvalidArgument"


def test_copies_and_deletions_in_bulk(s3: Any) -> None:
    """CopyObject keeps or replaces metadata; DeleteObjects names what it removed."""
    s3.put_object(Bucket="bucket", Key="a b", Body=b"data", Metadata={"k": "v"})
    s3.copy_object(Bucket="bucket", Key="c", CopySource={"Bucket": "bucket", "Key": "a b"})
    assert s3.head_object(Bucket="bucket", Key="c")["Metadata"] == {"k": "v"}
    s3.copy_object(
        Bucket="bucket", Key="c", CopySource="bucket/c", Metadata={"n": "w"}, MetadataDirective="REPLACE"
    )
    assert s3.head_object(Bucket="bucket", Key="c")["Metadata"] == {"n": "w"}
    assert code_of(s3.copy_object, Bucket="bucket", Key="c", CopySource="bucket/c") == "InvalidRequest"
    deletion = {"Objects": [{"Key": "a b"}, {"Key": "nope"}]}
    deleted = s3.delete_objects(Bucket="bucket", Delete=deletion)["Deleted"]
    assert [entry["Key"] for entry in deleted] == ["a b", "nope"]
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["c"]


def test_large_files_go_in_parts(s3: Any, tmp_path: Path) -> None:
    """upload_file, download_file and copy, 8 MiB at a time and four at once."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(21 * MIB + 7))
    s3.upload_file(str(source), "bucket", "big", ExtraArgs={"Metadata": {"a": "b"}})
    head = s3.head_object(Bucket="bucket", Key="big")
    assert head["ETag"].endswith('-3"')
    assert head["Metadata"] == {"a": "b"}
    s3.copy({"Bucket": "bucket", "Key": "big"}, "bucket", "copied")
    for key in ("big", "copied"):
        s3.download_file("bucket", key, str(target))
        assert target.read_bytes() == source.read_bytes()


def test_multipart_by_hand(s3: Any) -> None:
    """Aborted ones are gone; a completion must name parts that are there."""
    upload = s3.create_multipart_upload(Bucket="bucket", Key="k")["UploadId"]
    named = {"Bucket": "bucket", "Key": "k", "UploadId": upload}
    part = {"PartNumber": 1, "ETag": s3.upload_part(**named, PartNumber=1, Body=b"x")["ETag"]}
    wrong = {"Parts": [{**part, "ETag": '"0"'}]}
    assert code_of(s3.complete_multipart_upload, **named, MultipartUpload=wrong) == "InvalidPart"
    assert s3.complete_multipart_upload(**named, MultipartUpload={"Parts": [part]})["ETag"].endswith('-1"')
    upload = s3.create_multipart_upload(Bucket="bucket", Key="k")["UploadId"]
    s3.abort_multipart_upload(Bucket="bucket", Key="k", UploadId=upload)
    gone = {"Bucket": "bucket", "Key": "k", "UploadId": upload, "PartNumber": 1, "Body": b""}
    assert code_of(s3.upload_part, **gone) == "NoSuchUpload"


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])  # what botocore computes without its CRT
def test_checksums_are_verified(s3: Any, algorithm: str) -> None:
    """Whichever of these botocore computes; a wrong one stores nothing."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data", ChecksumAlgorithm=algorithm)
    assert f"Checksum{algorithm}" in s3.head_object(Bucket="bucket", Key="k", ChecksumMode="ENABLED")
    wrong = {f"Checksum{algorithm}": "AAAAAA=="}
    assert code_of(s3.put_object, Bucket="bucket", Key="other", Body=b"data", **wrong) == "BadDigest"
    assert code_of(s3.head_object, Bucket="bucket", Key="other") == "404"


def test_a_checksum_that_cannot_be_verified_is_refused(s3: Any) -> None:
    """The answer names those that can."""
    with pytest.raises(ClientError, match=r"XXHASH64.*CRC32, CRC32C, CRC64NVME") as error:
        s3.put_object(Bucket="bucket", Key="k", Body=b"data", ChecksumXXHASH64="AAAAAAAAAAA=")
    assert error.value.response["Error"]["Code"] == "InvalidRequest"


def test_presigned_urls_work_without_a_key(backend: Backend, s3: Any) -> None:
    """For whoever has the URL, as long as it says, and for that object only."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"hello")
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    url = signer.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "k"}, ExpiresIn=60)
    assert fetch("GET", url) == (200, b"hello")
    for bad in (url.replace("/k?", "/other?"), url.replace("Expires=60", "Expires=600")):
        assert fetch("GET", bad)[0] == 403
    put = signer.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "up"}, ExpiresIn=60)
    assert fetch("PUT", put, b"by url")[0] == 200
    assert read(s3.get_object(Bucket="bucket", Key="up")) == b"by url"


@pytest.mark.parametrize(
    ("expires", "status", "code", "says"),
    [
        (604_801, 400, "AuthorizationQueryParametersError", "must be less than a week (in seconds)"),
        (-1, 400, "AuthorizationQueryParametersError", "must be non-negative"),
        ("x", 400, "AuthorizationQueryParametersError", "should be a number"),
        (0, 403, "AccessDenied", "Request has expired"),
    ],
)
def test_how_long_a_presigned_url_may_hold(
    backend: Backend, s3: Any, expires: int | str, status: int, code: str, says: str
) -> None:
    """A week at most, in S3's own words."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"hello")
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    url = signer.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "k"}, ExpiresIn=expires)
    answered, body = fetch("GET", url)
    assert (answered, f"<Code>{code}</Code>" in body.decode(), says in body.decode()) == (status, True, True)
    longest = signer.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "k"}, ExpiresIn=604_800)
    assert fetch("GET", longest) == (200, b"hello")


def test_presigned_urls_of_boto3s_default_form_work(backend: Backend, s3: Any) -> None:
    """Signature Version 2, as boto3 makes it unasked in us-east-1: read, asked, written with what was signed."""
    named = {"Bucket": "bucket", "Key": "a folder/k+é"}
    s3.put_object(**named, Body=b"hello")
    url = s3.generate_presigned_url("get_object", named, ExpiresIn=60)
    assert "AWSAccessKeyId=" in url
    assert fetch("GET", url) == (200, b"hello")
    assert fetch("HEAD", s3.generate_presigned_url("head_object", named)) == (200, b"")
    assert fetch("GET", s3.generate_presigned_url("list_objects_v2", {"Bucket": "bucket"}))[0] == 200
    put = s3.generate_presigned_url("put_object", {**named, "Key": "up", "Metadata": {"a": "b c"}})
    assert fetch("PUT", put, b"by url")[0] == 200
    found = s3.get_object(Bucket="bucket", Key="up")
    assert (read(found), found["Metadata"]) == (b"by url", {"a": "b c"})
    typed = {**named, "ResponseContentType": "text/x; a=b", "ResponseContentDisposition": "attachment"}
    with urllib.request.urlopen(s3.generate_presigned_url("get_object", typed)) as answer:  # noqa: S310
        assert (answer.headers["Content-Type"], answer.read()) == ("text/x; a=b", b"hello")
    for bad in (
        url.replace("/k", "/other"),
        url.replace("Expires=", "Expires=1"),
        f"{url}&response-expires=1",
    ):
        assert fetch("GET", bad)[0] == 403
    assert b"SignatureDoesNotMatch" in fetch("GET", f"{url}&tagging")[1]
    assert fetch("PUT", url, b"x")[0] == 403
    backend.clock.offset = timedelta(seconds=62)
    status, said = fetch("GET", url)
    assert status == 403 and b"<Code>AccessDenied</Code>" in said and b"Request has expired" in said


def test_uploads_that_stall_make_room_for_one_that_waits(
    backend: Backend, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as may be under way: what has no body is answered meanwhile, and the next upload soon."""
    monkeypatch.setattr(connections, "CROWDED_S", 0.5)
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    url = urlsplit(signer.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "stalls"}))
    head = f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 1000000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(STREAMS):
            client = stack.enter_context(socket.create_connection((url.hostname, url.port or 0)))
            client.sendall(head.encode() + b"the first bytes")
        time.sleep(0.5)  # all are under way
        began = time.monotonic()
        s3.put_object(Bucket="bucket", Key="waits", Body=b"abc")
        assert time.monotonic() - began < connections.STALL_S / 2
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    assert "waits" in keys and "stalls" not in keys


def fetch(method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request(method, f"{parts.path}?{parts.query}", body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_an_upload_that_breaks_off_stores_nothing(s3: Any, backend: Backend) -> None:
    """And the server goes on."""

    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > MIB:
                raise ConnectionError("the client gives up")
            return super().read(min(size or MIB, MIB) if size and size > 0 else MIB)

    with pytest.raises(Exception):  # noqa: B017, PT011  which one is urllib3's affair
        s3.put_object(Bucket="bucket", Key="k", Body=Breaking(b"x" * 4 * MIB), ContentLength=4 * MIB)
    assert code_of(backend.client("s3").head_object, Bucket="bucket", Key="k") == "404"


def test_many_clients_at_once(backend: Backend, s3: Any) -> None:
    """Parallel writers of one key leave one whole object."""
    bodies = [bytes([number]) * MIB for number in range(8)]

    def write(data: bytes) -> None:
        backend.client("s3").put_object(Bucket="bucket", Key="k", Body=data)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, bodies))
    assert read(s3.get_object(Bucket="bucket", Key="k")) in bodies
