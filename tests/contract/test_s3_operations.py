"""What S3's clients ask beyond put and get: attributes, tags, uploads under way, conditions, other checksums."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend
from tests.contract.test_s3_client import code_of, fetch, read
from windtunnel_local.api.body import CHECKSUMS

MIB = 1 << 20
FULL = b"a" * 5 * MIB
NONE: Mapping[str, str] = {}


@pytest.fixture
def backend(cleared_backend: Backend) -> Backend:
    """One server will do."""
    return cleared_backend


def checksum(algorithm: str, data: bytes) -> str:
    digest = CHECKSUMS[algorithm.lower()]()
    digest.update(data)
    return base64.b64encode(digest.digest()).decode()


def test_a_bucket_is_deleted_when_it_is_empty(s3: Any) -> None:
    """And not before; afterwards its name is free, and an upload under way is gone."""
    s3.put_object(Bucket="bucket", Key="a/b", Body=b"x")
    assert code_of(s3.delete_bucket, Bucket="bucket") == "BucketNotEmpty"
    s3.delete_object(Bucket="bucket", Key="a/b")
    upload = s3.create_multipart_upload(Bucket="bucket", Key="k")["UploadId"]
    s3.delete_bucket(Bucket="bucket")
    assert code_of(s3.delete_bucket, Bucket="bucket") == "NoSuchBucket"
    s3.create_bucket(Bucket="bucket")
    assert s3.list_objects_v2(Bucket="bucket")["KeyCount"] == 0
    assert code_of(s3.list_parts, Bucket="bucket", Key="k", UploadId=upload) == "NoSuchUpload"


def test_what_a_bucket_does_not_have_is_said_as_aws_says_it(s3: Any) -> None:
    """By AWS's code, or an empty answer where AWS gives one; never an invented setting."""
    for operation, code in (
        ("get_bucket_policy", "NoSuchBucketPolicy"),
        ("get_bucket_policy_status", "NoSuchBucketPolicy"),
        ("get_bucket_tagging", "NoSuchTagSet"),
        ("get_bucket_cors", "NoSuchCORSConfiguration"),
        ("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration"),
        ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ):
        assert code_of(getattr(s3, operation), Bucket="bucket") == code
        assert code_of(getattr(s3, operation), Bucket="nope") == "NoSuchBucket"
    assert "Status" not in s3.get_bucket_versioning(Bucket="bucket")
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket="bucket")
    told = s3.get_bucket_notification_configuration(Bucket="bucket")
    assert not told.keys() - {"ResponseMetadata"}
    assert s3.get_bucket_request_payment(Bucket="bucket")["Payer"] == "BucketOwner"
    (rule,) = s3.get_bucket_ownership_controls(Bucket="bucket")["OwnershipControls"]["Rules"]
    assert rule == {"ObjectOwnership": "BucketOwnerEnforced"}
    (rule,) = s3.get_bucket_encryption(Bucket="bucket")["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    public = s3.get_public_access_block(Bucket="bucket")["PublicAccessBlockConfiguration"]
    assert list(public.values()) == [True] * 4
    s3.put_object(Bucket="bucket", Key="k", Body=b"")
    for acl in (s3.get_bucket_acl(Bucket="bucket"), s3.get_object_acl(Bucket="bucket", Key="k")):
        (grant,) = acl["Grants"]
        assert (grant["Permission"], grant["Grantee"]["ID"]) == ("FULL_CONTROL", acl["Owner"]["ID"])


def test_a_bucket_is_told_what_it_is_already(s3: Any) -> None:
    """As scripts do behind create_bucket; another answer is refused, and ACLs by S3's own code."""
    access = dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )
    s3.put_public_access_block(Bucket="bucket", PublicAccessBlockConfiguration=access)
    open_ = {"Bucket": "bucket", "PublicAccessBlockConfiguration": {"BlockPublicAcls": True}}
    assert code_of(s3.put_public_access_block, **open_) == "NotImplemented"
    for algorithm, code in (("AES256", None), ("aws:kms", "NotImplemented")):
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}
        said = {"Bucket": "bucket", "ServerSideEncryptionConfiguration": {"Rules": [rule]}}
        if code is None:
            s3.put_bucket_encryption(**said)
        else:
            assert code_of(s3.put_bucket_encryption, **said) == code
    owned = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    s3.put_bucket_ownership_controls(Bucket="bucket", OwnershipControls=owned)
    s3.put_object(Bucket="bucket", Key="k", Body=b"")
    assert code_of(s3.put_bucket_acl, Bucket="bucket", ACL="private") == "AccessControlListNotSupported"
    put = s3.put_object_acl
    assert code_of(put, Bucket="bucket", Key="k", ACL="private") == "AccessControlListNotSupported"
    assert code_of(s3.put_public_access_block, **{**open_, "Bucket": "nope"}) == "NoSuchBucket"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (
            {"CreateBucketConfiguration": {"Tags": [{"Key": "a", "Value": "b"}]}},
            "CreateBucketConfiguration.Tags",
        ),
        (
            {"CreateBucketConfiguration": {"Bucket": {"Type": "Directory"}}},
            "CreateBucketConfiguration.Bucket",
        ),
        ({"ObjectOwnership": "ObjectWriter"}, "ObjectOwnership='ObjectWriter'"),
        ({"BucketNamespace": "account-regional"}, "BucketNamespace='account-regional'"),
    ],
)
def test_what_a_new_bucket_cannot_be_is_refused_by_name(s3: Any, said: dict[str, Any], named: str) -> None:
    """It was dropped; what each bucket is anyway is taken."""
    with pytest.raises(ClientError, match=named) as error:
        s3.create_bucket(Bucket="other", **said)
    assert error.value.response["Error"]["Code"] == "NotImplemented"
    assert code_of(s3.head_bucket, Bucket="other") == "404"
    s3.create_bucket(Bucket="other", ObjectOwnership="BucketOwnerEnforced", BucketNamespace="global")


def test_a_bucket_outside_of_us_east_1_names_its_region(backend: Backend, s3: Any) -> None:
    """To the endpoint of another region; there who has it already is told so, as on AWS."""
    other, named = backend.client("s3", region_name="eu-west-1"), {"Bucket": "another"}
    place = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    wrong = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-2"}}
    assert code_of(other.create_bucket, **named) == "IllegalLocationConstraintException"
    assert code_of(other.create_bucket, **named, **wrong) == "IllegalLocationConstraintException"
    other.create_bucket(**named, **place)
    assert code_of(other.create_bucket, **named, **place) == "BucketAlreadyOwnedByYou"
    s3.create_bucket(**named)
    s3.create_bucket(Bucket="third", **wrong)
    s3.create_bucket(Bucket="old", CreateBucketConfiguration={"LocationConstraint": "EU"})
    places = {"another": "eu-west-1", "third": "eu-west-2", "old": "EU", "bucket": None}
    for name, constraint in places.items():
        region = {None: "us-east-1", "EU": "eu-west-1"}.get(constraint, constraint)
        assert s3.get_bucket_location(Bucket=name)["LocationConstraint"] == constraint
        assert other.head_bucket(Bucket=name)["BucketRegion"] == region
        (listed,) = s3.list_buckets(Prefix=name, BucketRegion=region)["Buckets"]
        assert (listed["Name"], listed["BucketRegion"]) == (name, region)
    assert s3.list_buckets(Prefix="third", BucketRegion="us-east-1")["Buckets"] == []


def test_each_object_says_how_it_is_encrypted(s3: Any) -> None:
    """AES256 where nothing was asked for, as S3 since 2023; in the answers to all that writes or reads one."""
    named = {"Bucket": "bucket", "Key": "k"}
    created = s3.create_multipart_upload(**named)
    upload = {**named, "UploadId": created["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=b"data")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    answers = [
        created,
        part,
        s3.complete_multipart_upload(**upload, MultipartUpload=parts),
        s3.copy_object(Bucket="bucket", Key="copy", CopySource=named),
        s3.head_object(Bucket="bucket", Key="copy"),
        s3.put_object(**named, Body=b"data"),
        s3.get_object(**named),
    ]
    assert [answer["ServerSideEncryption"] for answer in answers] == ["AES256"] * len(answers)


def test_an_object_has_one_time(s3: Any) -> None:
    """In a list as in its head: to the second, as S3 tells it."""
    copied = []
    for number in range(3):
        s3.put_object(Bucket="bucket", Key=f"{number}", Body=b"")
        source = {"CopySource": f"bucket/{number}", "Bucket": "bucket", "Key": f"{number}"}
        copied.append(
            s3.copy_object(**source, MetadataDirective="REPLACE")["CopyObjectResult"]["LastModified"]
        )
    listed = [found["LastModified"] for found in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    heads = [s3.head_object(Bucket="bucket", Key=f"{number}")["LastModified"] for number in range(3)]
    assert listed == heads == copied


def test_names_and_digests_that_s3_does_not_take(s3: Any) -> None:
    """A bucket named like an IP address; a Content-MD5 that is no MD5."""
    assert code_of(s3.create_bucket, Bucket="192.168.5.123") == "InvalidBucketName"
    for md5 in ("", "YWJyYWNhZGFicmE="):
        assert code_of(s3.put_object, Bucket="bucket", Key="k", Body=b"", ContentMD5=md5) == "InvalidDigest"
    assert (
        code_of(s3.put_object, Bucket="bucket", Key="k", Body=b"", ContentMD5="A" * 22 + "==") == "BadDigest"
    )


def test_tags(s3: Any) -> None:
    """Set with the object or later, counted, copied or replaced, removed; the object itself stays as it is."""
    etag = s3.put_object(Bucket="bucket", Key="k", Body=b"data", Tagging="a=1&b=x%20y")["ETag"]
    assert s3.get_object_tagging(Bucket="bucket", Key="k")["TagSet"] == [
        {"Key": "a", "Value": "1"},
        {"Key": "b", "Value": "x y"},
    ]
    assert (
        s3.head_object(Bucket="bucket", Key="k")["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"]
        == "2"
    )
    s3.copy_object(Bucket="bucket", Key="same", CopySource="bucket/k")
    s3.copy_object(
        Bucket="bucket", Key="new", CopySource="bucket/k", TaggingDirective="REPLACE", Tagging="c=2"
    )
    assert len(s3.get_object_tagging(Bucket="bucket", Key="same")["TagSet"]) == 2
    assert s3.get_object_tagging(Bucket="bucket", Key="new")["TagSet"] == [{"Key": "c", "Value": "2"}]
    s3.put_object_tagging(Bucket="bucket", Key="k", Tagging={"TagSet": [{"Key": "n", "Value": ""}]})
    assert s3.get_object_tagging(Bucket="bucket", Key="k")["TagSet"] == [{"Key": "n", "Value": ""}]
    s3.delete_object_tagging(Bucket="bucket", Key="k")
    assert s3.get_object_tagging(Bucket="bucket", Key="k")["TagSet"] == []
    got = s3.get_object(Bucket="bucket", Key="k")
    assert (got["ETag"], read(got)) == (etag, b"data")
    assert code_of(s3.get_object_tagging, Bucket="bucket", Key="nope") == "NoSuchKey"


def test_an_upload_is_found_again_and_goes_on(s3: Any) -> None:
    """ListMultipartUploads and ListParts say what a client needs to continue after it was interrupted."""
    uploads = {
        key: s3.create_multipart_upload(Bucket="bucket", Key=key, Tagging="t=1")["UploadId"]
        for key in ("a/1", "a/2", "b", "k")
    }
    listed = s3.list_multipart_uploads(Bucket="bucket")["Uploads"]
    assert {entry["Key"]: entry["UploadId"] for entry in listed} == uploads
    pages = s3.get_paginator("list_multipart_uploads").paginate(
        Bucket="bucket", PaginationConfig={"PageSize": 1}
    )
    assert [entry["Key"] for page in pages for entry in page.get("Uploads", [])] == list(uploads)
    rolled = s3.list_multipart_uploads(Bucket="bucket", Delimiter="/")
    assert [entry["Prefix"] for entry in rolled["CommonPrefixes"]] == ["a/"]
    assert [entry["Key"] for entry in rolled["Uploads"]] == ["b", "k"]
    named = {"Bucket": "bucket", "Key": "k", "UploadId": uploads["k"]}
    for number, data in ((1, FULL), (2, FULL), (3, b"end")):
        s3.upload_part(**named, PartNumber=number, Body=data)
    pages = s3.get_paginator("list_parts").paginate(**named, PaginationConfig={"PageSize": 2})
    parts = [part for page in pages for part in page["Parts"]]
    assert [(part["PartNumber"], part["Size"]) for part in parts] == [(1, len(FULL)), (2, len(FULL)), (3, 3)]
    chosen = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts]
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": chosen})
    assert read(s3.get_object(Bucket="bucket", Key="k")) == FULL + FULL + b"end"
    assert s3.get_object_tagging(Bucket="bucket", Key="k")["TagSet"] == [{"Key": "t", "Value": "1"}]
    assert len(s3.list_multipart_uploads(Bucket="bucket")["Uploads"]) == 3


def test_a_completed_upload_tells_its_objects_url(backend: Backend, s3: Any) -> None:
    """Whole, as S3 does: SDKs hand it on to whoever has uploaded."""
    named = {"Bucket": "bucket", "Key": "a/b c"}
    upload = s3.create_multipart_upload(**named)["UploadId"]
    part = s3.upload_part(**named, UploadId=upload, PartNumber=1, Body=b"x")
    chosen = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    done = s3.complete_multipart_upload(**named, UploadId=upload, MultipartUpload=chosen)
    assert done["Location"] == f"{backend.endpoint}/bucket/a/b%20c"


def test_uploads_that_are_aborted_page_by_page_all_end(s3: Any) -> None:
    """Also those of one key: a page begins behind a marker that is no upload any more."""
    for _ in range(5):
        s3.create_multipart_upload(Bucket="bucket", Key="k")
    pages = s3.get_paginator("list_multipart_uploads").paginate(
        Bucket="bucket", PaginationConfig={"PageSize": 2}
    )
    for page in pages:
        for upload in page["Uploads"]:
            s3.abort_multipart_upload(Bucket="bucket", Key="k", UploadId=upload["UploadId"])
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bucket")


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("CRC32", "COMPOSITE"),
        ("CRC32", "FULL_OBJECT"),
        ("CRC32C", "COMPOSITE"),
        ("CRC64NVME", "FULL_OBJECT"),
        ("SHA256", "COMPOSITE"),
    ],
)
def test_checksums_of_multipart_uploads(s3: Any, algorithm: str, kind: str) -> None:
    """Checked part by part, then of the object; read back whole, by part, and by attribute."""
    member = f"Checksum{algorithm}"
    named = {"Bucket": "bucket", "Key": "k"}
    created = s3.create_multipart_upload(**named, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    named["UploadId"] = created["UploadId"]
    pieces = [FULL, b"tail"]
    parts = []
    for number, data in enumerate(pieces, 1):
        value = checksum(algorithm, data)
        answer = s3.upload_part(**named, PartNumber=number, Body=data, **{member: value})
        assert answer[member] == value
        parts.append({"PartNumber": number, "ETag": answer["ETag"], member: value})
    other = "ChecksumSHA1" if algorithm != "SHA1" else "ChecksumSHA256"
    assert code_of(s3.upload_part, **named, PartNumber=3, Body=b"", **{other: "x"}) == "InvalidRequest"
    if kind == "COMPOSITE":
        digests = b"".join(base64.b64decode(checksum(algorithm, data)) for data in pieces)
        expected = f"{checksum(algorithm, digests)}-2"
    else:
        expected = checksum(algorithm, b"".join(pieces))
    complete = {**named, "MultipartUpload": {"Parts": parts}, "ChecksumType": kind}
    if kind == "COMPOSITE":
        bare = {"Parts": [parts[0], {"PartNumber": 2, "ETag": parts[1]["ETag"]}]}
        with pytest.raises(ClientError, match=f"using a {algorithm.lower()} checksum.*missing for part 2 in"):
            s3.complete_multipart_upload(**{**complete, "MultipartUpload": bare})
    if kind == "FULL_OBJECT":
        wrong = checksum(algorithm, b"other")
        assert code_of(s3.complete_multipart_upload, **complete, **{member: wrong}) == "BadDigest"
        complete[member] = expected
    assert code_of(s3.complete_multipart_upload, **complete, MpuObjectSize=1) == "InvalidRequest"
    done = s3.complete_multipart_upload(**complete, MpuObjectSize=len(FULL) + 4)
    assert (done[member], done["ChecksumType"]) == (expected, kind)
    head = s3.head_object(Bucket="bucket", Key="k", ChecksumMode="ENABLED")
    assert (head[member], head["ChecksumType"]) == (expected, kind)
    part = s3.get_object(Bucket="bucket", Key="k", PartNumber=2, ChecksumMode="ENABLED")
    assert (part["PartsCount"], part[member], read(part)) == (2, checksum(algorithm, b"tail"), b"tail")
    wanted = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    attributes = s3.get_object_attributes(Bucket="bucket", Key="k", ObjectAttributes=wanted)
    # S3's own way here: no number of parts behind a composite checksum, no list of parts without one.
    assert attributes["Checksum"] == {member: expected.removesuffix("-2"), "ChecksumType": kind}
    listed = [
        {"PartNumber": 1, "Size": len(FULL), member: checksum(algorithm, FULL)},
        {"PartNumber": 2, "Size": 4, member: checksum(algorithm, b"tail")},
    ]
    assert attributes["ObjectParts"].get("Parts", []) == (listed if kind == "COMPOSITE" else [])
    assert attributes["ObjectParts"]["TotalPartsCount"] == 2
    assert (attributes["ObjectSize"], attributes["StorageClass"]) == (len(FULL) + 4, "STANDARD")


@pytest.mark.parametrize("algorithm", ["CRC32C", "CRC64NVME", "SHA256"])
def test_checksums_of_whole_objects(s3: Any, algorithm: str) -> None:
    """Given by the client, verified, returned on request, and those of a copy on request too."""
    member = f"Checksum{algorithm}"
    value = checksum(algorithm, b"data")
    put = s3.put_object(Bucket="bucket", Key="k", Body=b"data", **{member: value})
    assert (put[member], put["ChecksumType"]) == (value, "FULL_OBJECT")
    wrong = {member: checksum(algorithm, b"other")}
    assert code_of(s3.put_object, Bucket="bucket", Key="other", Body=b"data", **wrong) == "BadDigest"
    assert code_of(s3.head_object, Bucket="bucket", Key="other") == "404"
    head = s3.head_object(Bucket="bucket", Key="k", ChecksumMode="ENABLED")
    assert (head[member], head["ChecksumType"]) == (value, "FULL_OBJECT")
    assert member not in s3.head_object(Bucket="bucket", Key="k")
    s3.put_object(Bucket="bucket", Key="plain", Body=b"data")
    copied = s3.copy_object(
        Bucket="bucket", Key="copy", CopySource="bucket/plain", ChecksumAlgorithm=algorithm
    )
    assert copied["CopyObjectResult"][member] == value
    entry = s3.list_objects_v2(Bucket="bucket", Prefix="copy")["Contents"][0]
    assert entry["ChecksumAlgorithm"] == [algorithm]


def test_writes_on_condition(s3: Any) -> None:
    """If-None-Match and If-Match for put, completion, copy and deletion: nobody overwrites what they did not see."""
    etag = s3.put_object(Bucket="bucket", Key="k", Body=b"1", IfNoneMatch="*")["ETag"]
    named = {"Bucket": "bucket", "Key": "k"}
    assert code_of(s3.put_object, **named, Body=b"2", IfMatch='"x"') == "PreconditionFailed"
    second = s3.put_object(**named, Body=b"2", IfMatch=etag)["ETag"]
    assert code_of(s3.put_object, Bucket="bucket", Key="new", Body=b"2", IfMatch=etag) == "NoSuchKey"
    upload = {**named, "UploadId": s3.create_multipart_upload(**named)["UploadId"]}
    part = {"PartNumber": 1, "ETag": s3.upload_part(**upload, PartNumber=1, Body=b"3")["ETag"]}
    complete = {**upload, "MultipartUpload": {"Parts": [part]}}
    assert code_of(s3.complete_multipart_upload, **complete, IfNoneMatch="*") == "PreconditionFailed"
    assert code_of(s3.complete_multipart_upload, **complete, IfMatch=etag) == "PreconditionFailed"
    third = s3.complete_multipart_upload(**complete, IfMatch=second)["ETag"]
    assert (
        code_of(s3.copy_object, **named, CopySource="bucket/k", CopySourceIfMatch=etag)
        == "PreconditionFailed"
    )
    assert code_of(s3.delete_object, **named, IfMatch=etag) == "PreconditionFailed"
    errors = s3.delete_objects(Bucket="bucket", Delete={"Objects": [{"Key": "k", "ETag": etag}]})["Errors"]
    assert [(error["Key"], error["Code"]) for error in errors] == [("k", "PreconditionFailed")]
    s3.delete_object(**named, IfMatch=third)
    assert code_of(s3.head_object, **named) == "404"


def test_parts_of_an_object_that_came_in_one_piece(s3: Any) -> None:
    """Number 1 is all of it; there is no other."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data")
    answer = s3.get_object(Bucket="bucket", Key="k", PartNumber=1)
    assert (read(answer), answer["ContentRange"]) == (b"data", "bytes 0-3/4")
    assert code_of(s3.get_object, Bucket="bucket", Key="k", PartNumber=2) == "InvalidPartNumber"
    assert (
        code_of(s3.get_object, Bucket="bucket", Key="k", PartNumber=1, Range="bytes=0-0") == "InvalidRequest"
    )


def test_parts_are_copied(s3: Any) -> None:
    """By UploadPartCopy, of which copies over 5 GB are made: ranges of another object, with their checksums."""
    data = os.urandom(6 * MIB)
    s3.put_object(Bucket="bucket", Key="source", Body=data)
    named = {"Bucket": "bucket", "Key": "k"}
    named["UploadId"] = s3.create_multipart_upload(**named, ChecksumAlgorithm="SHA256")["UploadId"]
    parts = []
    for number, span in ((1, f"bytes=0-{5 * MIB - 1}"), (2, f"bytes={5 * MIB}-{6 * MIB - 1}")):
        result = s3.upload_part_copy(
            **named, PartNumber=number, CopySource="bucket/source", CopySourceRange=span
        )["CopyPartResult"]
        parts.append(
            {"PartNumber": number, "ETag": result["ETag"], "ChecksumSHA256": result["ChecksumSHA256"]}
        )
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    assert read(s3.get_object(Bucket="bucket", Key="k")) == data
    wrong = {"PartNumber": 1, "CopySource": "bucket/source", "CopySourceRange": f"bytes=0-{6 * MIB}"}
    assert code_of(s3.upload_part_copy, **named, **wrong) == "NoSuchUpload"
    named["UploadId"] = s3.create_multipart_upload(Bucket="bucket", Key="k")["UploadId"]
    assert code_of(s3.upload_part_copy, **named, **wrong) == "InvalidArgument"


def test_a_copy_of_an_object_in_parts_is_in_one(s3: Any) -> None:
    """Its ETag is an MD5, its checksum that of the whole; and both go on living when the other is gone."""
    named = {"Bucket": "bucket", "Key": "k"}
    named["UploadId"] = s3.create_multipart_upload(**named, ChecksumAlgorithm="SHA256")["UploadId"]
    parts = []
    for number, data in ((1, FULL), (2, b"tail")):
        part = s3.upload_part(**named, PartNumber=number, Body=data, ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]})
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    result = s3.copy_object(Bucket="bucket", Key="copy", CopySource="bucket/k")["CopyObjectResult"]
    whole = FULL + b"tail"
    etag = hashlib.md5(whole, usedforsecurity=False).hexdigest()
    sha256 = base64.b64encode(hashlib.sha256(whole).digest()).decode()
    assert (result["ETag"], result["ChecksumSHA256"]) == (f'"{etag}"', sha256)
    wanted = ["ETag", "Checksum", "ObjectParts"]
    told = s3.get_object_attributes(Bucket="bucket", Key="copy", ObjectAttributes=wanted)
    assert (told["ETag"], told["Checksum"]["ChecksumType"], "ObjectParts" in told) == (
        etag,
        "FULL_OBJECT",
        False,
    )
    reading = s3.get_object(Bucket="bucket", Key="k")
    s3.delete_object(Bucket="bucket", Key="k")
    assert read(reading) == FULL + b"tail", "who reads goes on reading"
    assert read(s3.get_object(Bucket="bucket", Key="copy", PartNumber=1)) == whole
    assert code_of(s3.get_object, Bucket="bucket", Key="copy", PartNumber=2) == "InvalidPartNumber"
    span = f"bytes={5 * MIB - 2}-{5 * MIB + 1}"
    assert read(s3.get_object(Bucket="bucket", Key="copy", Range=span)) == b"aata"


def test_bytes_that_are_gone_are_an_answer(s3: Any, backend: Backend) -> None:
    """An object whose file somebody removed from the home: an error at once, not a request without end."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data")
    backend.application.objects.path("bucket", "k").unlink()
    assert code_of(s3.get_object, Bucket="bucket", Key="k") == "InternalError"
    assert code_of(s3.copy_object, Bucket="bucket", Key="x", CopySource="bucket/k") == "InternalError"
    s3.put_object(Bucket="bucket", Key="k", Body=b"again")
    assert read(s3.get_object(Bucket="bucket", Key="k")) == b"again"


def test_answers_as_the_reader_wants_them(s3: Any, backend: Backend) -> None:
    """response-* overrides, in a presigned URL too; presigned HEAD and DELETE."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data", CacheControl="no-cache")
    answer = s3.get_object(Bucket="bucket", Key="k", ResponseContentType="text/x", ResponseCacheControl="a")
    assert (read(answer), answer["ContentType"], answer["CacheControl"]) == (b"data", "text/x", "a")
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    named = {"Bucket": "bucket", "Key": "k"}
    head = signer.generate_presigned_url("head_object", named, ExpiresIn=60)
    assert fetch("HEAD", head) == (200, b"")
    assert fetch("GET", head)[0] == 403
    assert fetch("DELETE", signer.generate_presigned_url("delete_object", named, ExpiresIn=60))[0] == 204
    assert code_of(s3.head_object, **named) == "404"


def test_sse_headers_are_repeated(s3: Any) -> None:
    """As SDKs send them: the key left open, or named; bucket keys; of multipart uploads too."""
    answer = s3.put_object(
        Bucket="bucket",
        Key="k",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId="alias/mine",
        BucketKeyEnabled=True,
    )
    assert (answer["SSEKMSKeyId"], answer["BucketKeyEnabled"]) == ("alias/mine", True)
    head = s3.head_object(Bucket="bucket", Key="k")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "alias/mine")
    created = s3.create_multipart_upload(Bucket="bucket", Key="m", ServerSideEncryption="AES256")
    assert created["ServerSideEncryption"] == "AES256"
    assert code_of(s3.put_object, Bucket="bucket", Key="k", ServerSideEncryption="rot13") == "InvalidArgument"


def test_each_object_has_one_version(s3: Any) -> None:
    """Called null, as in a bucket that never had versions: what empties buckets by version works."""
    for key in ("a", "b"):
        s3.put_object(Bucket="bucket", Key=key, Body=b"x")
    versions = s3.list_object_versions(Bucket="bucket")["Versions"]
    assert [(v["Key"], v["VersionId"], v["IsLatest"]) for v in versions] == [
        ("a", "null", True),
        ("b", "null", True),
    ]
    named = [{"Key": v["Key"], "VersionId": v["VersionId"]} for v in versions]
    s3.delete_objects(Bucket="bucket", Delete={"Objects": named})
    s3.delete_bucket(Bucket="bucket")


@pytest.mark.parametrize("host", ["bucket.localhost", "my.bucket.localhost"])
def test_a_bucket_may_stand_in_the_host(backend: Backend, s3: Any, host: str) -> None:
    """S3's virtual-host style, as clients use it when the endpoint is called localhost."""
    bucket = host.removesuffix(".localhost")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="a b", Body=b"data")
    port = urlsplit(backend.endpoint).port
    assert signed(backend, f"http://{host}:{port}/a%20b") == (200, b"data")
    status, body = signed(backend, f"http://{host}:{port}/?list-type=2")
    assert (status, b"<Key>a b</Key>" in body) == (200, True)
    assert signed(backend, f"http://{bucket}.example.org:{port}/a%20b")[0] == 403


def test_what_is_called_health_is_no_word_on_the_server(backend: Backend, s3: Any) -> None:
    """/health tells how the server is, to who asks without a signature and for no bucket's object."""
    s3.create_bucket(Bucket="health")
    s3.put_object(Bucket="health", Key="health", Body=b"fine")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="health")["Contents"]] == ["health"]
    assert s3.head_bucket(Bucket="health")["BucketRegion"] == "us-east-1"
    port = urlsplit(backend.endpoint).port
    assert signed(backend, f"http://health.localhost:{port}/health") == (200, b"fine")
    signer = backend.client("s3", config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))
    presigned = signer.generate_presigned_url("list_objects_v2", {"Bucket": "health"})
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", presigned[presigned.index("/health") :])
        assert b"<Key>health</Key>" in connection.getresponse().read()


def test_s3_control_is_refused_by_name(backend: Backend) -> None:
    """Not taken for a bucket that is called as the account."""
    port = urlsplit(backend.endpoint).port
    for host in ("000000000000.localhost", "127.0.0.1"):
        url = f"http://{host}:{port}/v20180820/configuration/publicAccessBlock"
        status, body = signed(backend, url, {"x-amz-account-id": "000000000000"})
        assert (status, b"Windtunnel does not serve s3control" in body) == (501, True)


def signed(backend: Backend, url: str, more: Mapping[str, str] = NONE, apart: str = "") -> tuple[int, bytes]:
    """A GET with a header signature for a host that need not resolve. ``apart``: a header with a line a value."""
    keys = Credentials(backend.credentials.access_key_id, backend.credentials.secret_access_key)
    request = AWSRequest("GET", url, headers={"x-amz-content-sha256": hashlib.sha256().hexdigest(), **more})
    S3SigV4Auth(keys, "s3", "us-east-1").add_auth(request)
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)) as connection:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.putrequest("GET", target, skip_host=True)
        for name, value in {"Host": parts.netloc, **request.headers}.items():
            for line in value.split(",") if name == apart else [value]:
                connection.putheader(name, line)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_header_may_come_a_line_a_value(backend: Backend, s3: Any) -> None:
    """As HTTP has it, and as some SDKs write a list (Go's)."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data")
    name, url = "x-amz-object-attributes", f"{backend.endpoint}/bucket/k?attributes"
    status, body = signed(backend, url, {name: "ETag,ObjectSize"}, apart=name)
    assert (status, b"<ETag>" in body, b"<ObjectSize>4<" in body) == (200, True, True)


def test_a_body_in_one_piece_has_s3s_limit(backend: Backend, s3: Any) -> None:
    """5 GiB, refused before a byte of it is read; what to do instead is said."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"")
    port = urlsplit(backend.endpoint).port
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    url = signer.generate_presigned_url("put_object", {"Bucket": "bucket", "Key": "k"}, ExpiresIn=60)
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.putrequest("PUT", f"{parts.path}?{parts.query}")
        connection.putheader("Content-Length", str((5 << 30) + 1))
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, b"<Code>EntityTooLarge</Code>" in answer.read()) == (400, True)
    with pytest.raises(ClientError, match="ETag goes in If-Match"):
        s3.put_object(Bucket="bucket", Key="k", Body=b"", IfNoneMatch='"x"')


def test_an_answer_instead_of_continue_ends_the_connection(backend: Backend) -> None:
    """boto3 asks so with each file. Up to botocore 1.43 it takes such an answer for that of its next request, too."""
    signer = backend.client("s3", config=Config(signature_version="s3v4"))
    url = signer.generate_presigned_url("put_object", {"Bucket": "nowhere", "Key": "k"}, ExpiresIn=60)
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)) as connection:
        connection.putrequest("PUT", f"{parts.path}?{parts.query}")
        connection.putheader("Content-Length", "0")
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("connection")) == (404, "close")


def test_a_bucket_is_made_in_a_region_that_there_is(s3: Any) -> None:
    """us-east-1 has no name there, as on AWS."""

    def make(region: str) -> str:
        place = {"LocationConstraint": region}
        return code_of(s3.create_bucket, Bucket=f"in-{region}", CreateBucketConfiguration=place)

    assert make("mars-1") == make("us-east-1") == "InvalidLocationConstraint"
    s3.create_bucket(Bucket="in-ireland", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})


def test_buckets_are_listed_by_the_page_and_by_region(s3: Any) -> None:
    """Each once, in the order of their names."""
    for number in range(5):
        s3.create_bucket(Bucket=f"page-{number}")
    pages = list(s3.get_paginator("list_buckets").paginate(Prefix="page-", MaxBuckets=2))
    assert [[bucket["Name"] for bucket in page["Buckets"]] for page in pages] == [
        ["page-0", "page-1"],
        ["page-2", "page-3"],
        ["page-4"],
    ]
    assert pages[0]["Buckets"][0]["BucketRegion"] == "us-east-1"
    assert s3.list_buckets(BucketRegion="eu-west-1")["Buckets"] == []
    assert code_of(s3.list_buckets, MaxBuckets=10_001) == "InvalidArgument"


def test_an_error_names_the_condition_that_did_not_hold(s3: Any) -> None:
    """Of a write, a read and a copy."""
    source = {"Bucket": "bucket", "Key": "k"}
    etag = s3.put_object(**source, Body=b"x")["ETag"]
    broken: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: s3.put_object(**source, Body=b"y", IfNoneMatch="*"), "If-None-Match"),
        (lambda: s3.put_object(**source, Body=b"y", IfMatch='"other"'), "If-Match"),
        (lambda: s3.get_object(**source, IfMatch='"other"'), "If-Match"),
        (
            lambda: s3.copy_object(Bucket="bucket", Key="c", CopySource=source, CopySourceIfNoneMatch=etag),
            "If-None-Match",
        ),
    )
    for call, named in broken:
        with pytest.raises(ClientError) as error:
            call()
        assert error.value.response["Error"]["Code"] == "PreconditionFailed"
        assert error.value.response["Error"]["Condition"] == named


def test_small_rules_of_s3(s3: Any) -> None:
    """System tags are AWS's; parts have numbers from 1 to 10,000; a storage class or an encryption is a change."""
    named = {"Bucket": "bucket", "Key": "k"}
    tags = {"TagSet": [{"Key": "aws:mine", "Value": "v"}]}
    s3.put_object(**named, Body=b"x")
    assert code_of(s3.put_object_tagging, **named, Tagging=tags) == "InvalidTag"
    upload = s3.create_multipart_upload(**named)["UploadId"]
    for number in (0, 10_001):
        code = code_of(s3.upload_part, **named, UploadId=upload, PartNumber=number, Body=b"x")
        assert code == "InvalidArgument"
    assert code_of(s3.copy_object, **named, CopySource=named) == "InvalidRequest"
    s3.copy_object(**named, CopySource=named, StorageClass="STANDARD_IA")
    copied = s3.copy_object(**named, CopySource=named, ServerSideEncryption="aws:kms")
    assert copied["ServerSideEncryption"] == "aws:kms"
    assert s3.head_object(**named)["ServerSideEncryption"] == "aws:kms"
    form = s3.generate_presigned_post("bucket", "posted")
    answer = fetch("POST", form["url"], b"")
    assert (answer[0], b"POST forms of S3" in answer[1]) == (403, True)
