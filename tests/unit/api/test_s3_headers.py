"""Promises about S3's headers and paths."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from windtunnel_local.api import codec, xmlcodec
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_conditions import check_conditions, guard
from windtunnel_local.api.s3_headers import described, kept, refuse_unserved
from windtunnel_local.api.s3_ranges import byte_range
from windtunnel_local.api.s3_routes import understood, virtual_bucket
from windtunnel_local.api.s3_tags import from_header
from windtunnel_local.api.sigv4 import Signable
from windtunnel_local.objects.records import Guard
from windtunnel_local.service.ground.ports import ObjectInfo

INFO = ObjectInfo("k", 10, "abc", datetime(2026, 1, 2, 3, 4, 5, 999, timezone.utc))
SAME, EARLIER = "Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:04:04 GMT"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", (0, 1)),
        ("bytes=5-", (5, 5)),
        ("bytes=-20", (0, 10)),
        ("bytes=2-99", (2, 8)),
        ("bytes=4-2", None),
        ("bytes=0-1,3-4", None),
        ("lines=1-2", None),
        ("bytes=-", None),
        ("bytes=" + "9" * 30 + "-", None),
    ],
)
def test_ranges_are_read_as_s3_reads_them(header: str | None, expected: tuple[int, int] | None) -> None:
    """What is no range means the whole object."""
    assert byte_range(header, 10) == expected


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)])
def test_a_range_outside_is_refused(header: str, size: int) -> None:
    """With 416."""
    with pytest.raises(ApiError) as error:
        byte_range(header, size)
    assert error.value.status == 416


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, True),
        ({"if-match": '"abc"'}, True),
        ({"if-match": '"x", "abc"'}, True),
        ({"if-match": "*"}, True),
        ({"if-match": '"x"'}, None),
        ({"if-none-match": '"abc"'}, False),
        ({"if-none-match": '"x"'}, True),
        ({"if-modified-since": SAME}, False),
        ({"if-modified-since": EARLIER}, True),
        ({"if-unmodified-since": EARLIER}, None),
        ({"if-unmodified-since": SAME}, True),
        ({"if-match": '"abc"', "if-unmodified-since": EARLIER}, True),
        ({"if-none-match": '"x"', "if-modified-since": SAME}, True),
        ({"if-modified-since": "nonsense"}, True),
        ({"if-modified-since": SAME.removesuffix(" GMT")}, False),
        ({"if-modified-since": EARLIER.replace("GMT", "-0000")}, True),
        ({"if-modified-since": EARLIER.replace("2026", "99999999999")}, True),
    ],
)
def test_conditions_have_the_order_of_the_rfc(headers: dict[str, str], expected: bool | None) -> None:
    """ETags before dates; None: 412."""
    if expected is None:
        with pytest.raises(ApiError) as error:
            check_conditions(INFO, headers)
        assert error.value.status == 412
    else:
        assert check_conditions(INFO, headers) is expected


def test_what_is_kept_is_what_the_client_sent_for_the_object() -> None:
    """Not its signature, not the framing of its body."""
    headers = {
        "authorization": "x",
        "content-encoding": "gzip, aws-chunked",
        "x-amz-meta-a": "b",
        "host": "h",
    }
    assert kept(headers) == {
        "content-encoding": "gzip",
        "x-amz-meta-a": "b",
        "content-type": "binary/octet-stream",
    }
    assert "content-encoding" not in kept({"content-encoding": "aws-chunked"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-server-side-encryption-customer-key", "x"),
        ("x-amz-bucket-object-lock-enabled", "true"),
        ("x-amz-acl", "public-read"),
        ("x-amz-grant-read", 'id="1"'),
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-server-side-encryption", "rot13"),
    ],
)
def test_what_would_be_a_lie_is_refused(name: str, value: str) -> None:
    """By its name, or with what is valid."""
    with pytest.raises(ApiError, match=f"{name}|read at once|Valid: AES256"):
        refuse_unserved({name: value})


def test_what_asks_for_no_more_than_there_is_is_taken() -> None:
    """Encryption as SDKs send it, the owner's own access, storage that is read at once."""
    refuse_unserved(
        {
            "x-amz-server-side-encryption": "aws:kms",
            "x-amz-acl": "bucket-owner-full-control",
            "x-amz-storage-class": "STANDARD_IA",
        }
    )
    assert kept({"x-amz-storage-class": "STANDARD_IA"})["x-amz-storage-class"] == "STANDARD_IA"
    assert "x-amz-storage-class" not in kept({"x-amz-storage-class": "STANDARD"})


def test_metadata_has_s3s_limit() -> None:
    """2 KiB of the user's own, by S3's name of the error."""
    assert kept({"x-amz-meta-a": "x" * 2047})
    with pytest.raises(ApiError) as error:
        kept({"x-amz-meta-a": "x" * 2048})
    assert error.value.code == "MetadataTooLarge"


def test_an_override_that_no_header_can_carry_is_refused() -> None:
    """Instead of breaking the answer."""
    assert described(INFO, {"ResponseContentType": "a/b"}, whole=True)["content-type"] == "a/b"
    for value in ("a\r\nx: y", "\u20ac"):
        with pytest.raises(ApiError):
            described(INFO, {"ResponseContentType": value}, whole=True)


def test_conditions_of_writes() -> None:
    """Absence, or one ETag; anything else is refused rather than dropped."""
    assert guard({}) == Guard()
    assert guard({"if-none-match": "*"}) == Guard(absent=True)
    assert guard({"if-match": '"abc"'}) == Guard(etag="abc")
    for headers in (
        {"if-none-match": '"abc"'},
        {"if-none-match": "*", "if-match": "x"},
        {"x-amz-if-match-size": "1"},
    ):
        with pytest.raises(ApiError):
            guard(headers)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a", "InvalidArgument"),
        ("a=1&a=2", "InvalidTag"),
        ("=1", "InvalidTag"),
        (f"{'k' * 129}=1", "InvalidTag"),
        (f"k={'v' * 257}", "InvalidTag"),
        ("&".join(f"k{number}=v" for number in range(11)), "BadRequest"),
    ],
)
def test_tags_have_s3s_rules(text: str, code: str) -> None:
    """Ten at most, each key once, neither too long."""
    assert from_header({"x-amz-tagging": "a=1&b=%20"}) == {"a": "1", "b": " "}
    with pytest.raises(ApiError) as error:
        from_header({"x-amz-tagging": text})
    assert error.value.code == code


@pytest.mark.parametrize(
    ("host", "bucket"),
    [
        ("bucket.localhost:1234", "bucket"),
        ("a.b.c.localhost:1", "a.b.c"),
        ("localhost:1234", ""),
        ("bucket.localhost", ""),
        ("bucket.127.0.0.1:1234", ""),
        ("bucket.localhost.example.org:80", ""),
        ("bucket.localhost:1.example.org", "bucket"),  # not ours: the Host allow-list sees to it
    ],
)
def test_a_host_may_name_a_bucket(host: str, bucket: str) -> None:
    """Below localhost only, for which no name server outside answers."""
    assert virtual_bucket(host) == bucket
    if bucket == "bucket":
        request = Signable("GET", b"/k", b"", [(b"host", host.encode())])
        assert understood(request).params == {"Bucket": "bucket", "Key": "k"}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "operation"),
    [
        ("GET", "/", "", [], "ListBuckets"),
        ("GET", "/b", "", [], "ListObjects"),
        ("GET", "/b/", "list-type=2&prefix=x", [], "ListObjectsV2"),
        ("GET", "/b", "location", [], "GetBucketLocation"),
        ("GET", "/b", "acl", [], "GetBucketAcl"),
        ("PUT", "/b", "", [], "CreateBucket"),
        ("DELETE", "/b", "", [], "DeleteBucket"),
        ("PUT", "/b/k", "", [], "PutObject"),
        ("PUT", "/b/k", "", [(b"x-amz-copy-source", b"b/c")], "CopyObject"),
        ("PUT", "/b/k", "partNumber=1&uploadId=u", [], "UploadPart"),
        ("PUT", "/b/k", "partNumber=1&uploadId=u", [(b"x-amz-copy-source", b"b/c")], "UploadPartCopy"),
        ("PUT", "/b/k", "tagging", [], "PutObjectTagging"),
        ("POST", "/b/k", "uploads", [], "CreateMultipartUpload"),
        ("POST", "/b/k", "uploadId=u", [], "CompleteMultipartUpload"),
        ("DELETE", "/b/k", "uploadId=u", [], "AbortMultipartUpload"),
        ("DELETE", "/b/k", "", [], "DeleteObject"),
        ("POST", "/b", "delete", [], "DeleteObjects"),
        ("HEAD", "/b", "", [], "HeadBucket"),
        ("HEAD", "/b/a/b", "", [], "HeadObject"),
        ("GET", "/b/k", "x-id=GetObject", [], "GetObject"),
        ("GET", "/b/k", "uploadId=u", [], "ListParts"),
        ("GET", "/b", "uploads", [], "ListMultipartUploads"),
        ("GET", "/b", "versions", [], "ListObjectVersions"),
        ("GET", "/b/k", "attributes", [(b"x-amz-object-attributes", b"ETag")], "GetObjectAttributes"),
        ("DELETE", "/b/k", "tagging", [], "DeleteObjectTagging"),
        ("GET", "/b", "policyStatus", [], "GetBucketPolicyStatus"),
    ],
)
def test_the_model_says_which_operation_it_is(
    method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], operation: str
) -> None:
    """By method, path, query and required headers."""
    assert understood(Signable(method, path.encode(), query.encode(), headers)).operation == operation


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/b"), ("POST", "/b/k"), ("GET", "/b/%ff")])
def test_a_request_that_is_none_is_refused(method: str, path: str) -> None:
    """Never an exception of another kind."""
    with pytest.raises(ApiError):
        understood(Signable(method, path.encode(), b"", []))


@pytest.mark.parametrize(
    "body", [b"", b"<", b"<a>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"\xff", b"<a>&x;</a>"]
)
def test_broken_xml_is_malformed_xml(body: bytes) -> None:
    """And a document type is never looked at."""
    model = codec.operation("s3", "DeleteObjects")
    assert model is not None
    with pytest.raises(ApiError) as error:
        xmlcodec.parsed(model.input_shape.members["Delete"], body)
    assert error.value.code == "MalformedXML"
