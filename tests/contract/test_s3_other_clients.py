"""What clients other than boto3 send to S3, request by request: JavaScript's and Go's SDKs, and others."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.contract.conftest import Backend
from tests.contract.test_s3_client import code_of, fetch, read


def test_a_copys_source_may_be_encoded_as_a_whole(s3: Any) -> None:
    """As JavaScript's encodeURIComponent does it, its slashes too."""
    s3.put_object(Bucket="bucket", Key="a/b+é", Body=b"data")

    def copied(source: str) -> None:
        def replace(params: Any, **_: Any) -> None:
            params["headers"]["x-amz-copy-source"] = source

        s3.meta.events.register("before-call.s3.CopyObject", replace, unique_id="source")
        try:
            s3.copy_object(Bucket="bucket", Key="copy", CopySource="bucket/replaced")
        finally:
            s3.meta.events.unregister("before-call.s3.CopyObject", unique_id="source")

    for source in (quote("bucket/a/b+é", safe=""), quote("/bucket/a/b+é", safe=""), "bucket/a%2Fb%2b%C3%A9"):
        copied(source)
        assert read(s3.get_object(Bucket="bucket", Key="copy")) == b"data"
        s3.delete_object(Bucket="bucket", Key="copy")
    for wrong in ("bucket", "bucket%2F", "%2F", "bucket%2F%FF"):
        assert code_of(copied, source=wrong) == "InvalidArgument"


def test_a_presigned_url_may_bear_what_else_is_a_header(backend: Backend, s3: Any) -> None:
    """As JavaScript's and Go's SDKs sign it: metadata and ACL count as sent, tags and checksums do not."""

    def signed(query: dict[str, str]) -> str:
        url = f"{backend.endpoint}/bucket/up?{urlencode(query, quote_via=quote)}"
        request = AWSRequest("PUT", url, headers={})
        pair = Credentials(backend.credentials.access_key_id, backend.credentials.secret_access_key)
        S3SigV4QueryAuth(pair, "s3", "us-east-1").add_auth(request)
        return str(request.url)

    heeded = {"x-amz-meta-who": "a b+é", "x-amz-acl": "private"}
    left = {
        "x-amz-tagging": "a=b",
        "x-amz-checksum-crc32": "AAAAAA==",
        "x-amz-sdk-checksum-algorithm": "CRC32",
    }
    url = signed({**heeded, **left, "x-id": "PutObject"})
    assert fetch("PUT", url, b"by url")[0] == 200
    found = s3.get_object(Bucket="bucket", Key="up")
    assert (read(found), found["Metadata"]) == (b"by url", {"who": "a b+é".encode().decode("latin-1")})
    assert s3.get_object_tagging(Bucket="bucket", Key="up")["TagSet"] == []
    assert b"AccessControlListNotSupported" in fetch("PUT", signed({"x-amz-acl": "public-read"}), b"")[1]
    assert b"InvalidArgument" in fetch("PUT", signed({"x-amz-meta-a": "b\nc: d"}), b"")[1]
    assert fetch("PUT", url.replace("x-amz-meta-who=a", "x-amz-meta-who=b"), b"")[0] == 403
    assert fetch("PUT", f"{url}&x-amz-meta-more=c", b"")[0] == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("[::1]", 200), ("127.0.0.2", 403), ("evil.example", 403)],
)
def test_a_host_may_come_without_its_port(backend: Backend, s3: Any, host: str, status: int) -> None:
    """As AWS's CRT sends it when it asks for a copy's source; S3's connector for PyTorch renames by such a copy."""
    s3.put_object(Bucket="bucket", Key="k", Body=b"data")
    request = AWSRequest("HEAD", f"http://{host}/bucket/k", headers={})
    pair = Credentials(backend.credentials.access_key_id, backend.credentials.secret_access_key)
    S3SigV4Auth(pair, "s3", "us-east-1").add_auth(request)
    where = urlsplit(backend.endpoint).netloc
    with closing(http.client.HTTPConnection(where, timeout=60)) as connection:
        connection.request("HEAD", "/bucket/k", headers={**dict(request.headers.items()), "Host": host})
        assert connection.getresponse().status == status
    with closing(http.client.HTTPConnection(where, timeout=60)) as connection:
        connection.request("GET", "/ui", headers={"Host": host})  # a browser names the port
        assert connection.getresponse().status == 403
