"""Whoever has no key gets nothing, and whatever is sent gets an answer in AWS's shape."""

from __future__ import annotations

import http.client
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend


@pytest.fixture
def backend(shared_backend: Backend) -> Backend:
    """These only ask: one server will do."""
    shared_backend.clock.offset = timedelta(0)
    return shared_backend


def send(
    backend: Backend, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    address = urlsplit(backend.endpoint)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def signed(backend: Backend, body: bytes, target: str, service: str = "sagemaker") -> dict[str, str]:
    request = AWSRequest(
        "POST",
        f"{backend.endpoint}/",
        headers={"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"},
        data=body,
    )
    keys = backend.credentials
    SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), service, "us-east-1").add_auth(request)
    return dict(request.headers)


def post(
    backend: Backend, body: bytes, target: str, service: str = "sagemaker"
) -> tuple[int, Any, dict[str, str]]:
    status, headers, answer = send(backend, "POST", "/", signed(backend, body, target, service), body)
    return status, json.loads(answer), headers


_WRONG = {"aws_secret_access_key": "wrong"}
_UNKNOWN = {"aws_access_key_id": "AKIAOTHER"}
_CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "sagemaker": ("list_training_jobs", {}),
    "logs": ("describe_log_streams", {"logGroupName": "g"}),
    "sts": ("get_caller_identity", {}),
    "s3": ("list_buckets", {}),
}


@pytest.mark.parametrize(
    ("keys", "minutes", "service", "code"),
    [
        (_WRONG, 0, "sagemaker", "InvalidSignatureException"),
        (_WRONG, 0, "logs", "InvalidSignatureException"),
        (_WRONG, 0, "sts", "SignatureDoesNotMatch"),
        (_WRONG, 0, "s3", "SignatureDoesNotMatch"),
        (_UNKNOWN, 0, "sagemaker", "UnrecognizedClientException"),
        (_UNKNOWN, 0, "sts", "InvalidClientTokenId"),
        (_UNKNOWN, 0, "s3", "InvalidAccessKeyId"),
        ({}, 16, "sagemaker", "InvalidSignatureException"),
        ({}, 16, "s3", "RequestTimeTooSkewed"),
    ],
)
def test_a_wrong_secret_key_or_clock_is_refused(
    backend: Backend, keys: dict[str, str], minutes: int, service: str, code: str
) -> None:
    """Told apart, with the code of each protocol, and 403."""
    backend.clock.offset = timedelta(minutes=minutes)
    call, arguments = _CALLS[service]
    with pytest.raises(ClientError) as error:
        getattr(backend.client(service, **keys), call)(**arguments)
    assert error.value.response["Error"]["Code"] == code
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:80", ""]
)
def test_a_foreign_host_is_refused(backend: Backend, host: str) -> None:
    """A name that was bound to loopback by a stranger's DNS gets nothing, not even health."""
    for path in ("/", "/health", "/bucket/key"):
        status, headers, _ = send(backend, "GET", path, {"Host": host})
        assert status == 403
        assert not any(name.startswith("access-control") for name in headers)


def test_health_needs_no_signature(backend: Backend) -> None:
    """It says version and pid, under every name of loopback."""
    port = urlsplit(backend.endpoint).port
    for host in ("127.0.0.1", "localhost", "[::1]"):
        status, _, body = send(backend, "GET", "/health", {"Host": f"{host}:{port}"})
        assert status == 200
        assert json.loads(body).keys() == {"version", "pid"}


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_without_a_signature_there_is_only_403(backend: Backend, method: str) -> None:
    """Whatever the method and path."""
    for path in ("/", "/bucket", "/bucket/key", "/health/x", "//", "/%00", "/?X-Amz-Signature=x"):
        status, _, body = send(backend, method, path, {}, b"x" if method in ("PUT", "POST") else b"")
        assert status == 403, path
        assert (b"<Code>" in body) == (method != "HEAD"), path


def test_broken_json_is_said(backend: Backend) -> None:
    """As a SerializationException with a request id."""
    status, answer, headers = post(backend, b"{broken", "SageMaker.ListTrainingJobs")
    assert (status, answer["__type"]) == (400, "SerializationException")
    assert headers["x-amzn-errortype"] == "SerializationException"
    assert headers["x-amzn-requestid"]
    assert headers["content-type"] == "application/x-amz-json-1.1"


def test_unknown_targets_and_services_are_said(backend: Backend) -> None:
    """Each by its name."""
    for target in ("SageMaker.Nonsense", "Other.ListTrainingJobs", "nonsense"):
        status, answer, _ = post(backend, b"{}", target)
        assert (status, answer["__type"]) == (404, "UnknownOperationException")
    status, answer, _ = post(backend, b"{}", "DynamoDB_20120810.ListTables", "dynamodb")
    assert answer["__type"] == "UnknownOperationException"
    assert "dynamodb" in answer["message"]


def test_what_else_is_signed_as_sagemaker_is_said(backend: Backend) -> None:
    """Such a call names no operation in its target: what is served is said, not what the header is."""
    with pytest.raises(ClientError, match=r"not serve what else .* It serves AddTags, CreateEndpoint"):
        backend.client("sagemaker-featurestore-runtime").get_record(
            FeatureGroupName="f", RecordIdentifierValueAsString="1"
        )
    runtime = backend.client("sagemaker-runtime")
    runtime.meta.events.register(
        "before-sign", lambda request, **_: setattr(request, "url", f"{request.url}-of-later")
    )
    with pytest.raises(ClientError, match="It serves InvokeEndpoint"):
        runtime.invoke_endpoint(EndpointName="e", Body=b"")


def test_a_body_over_the_limit_is_refused(backend: Backend) -> None:
    """5 MiB of JSON are no request."""
    status, answer, _ = post(
        backend, b'{"NameContains": "' + b"x" * (5 << 20) + b'"}', "SageMaker.ListTrainingJobs"
    )
    assert (status, answer["__type"]) == (413, "RequestEntityTooLargeException")


def test_a_form_that_is_none_is_refused(backend: Backend) -> None:
    """STS and IAM answer in their XML."""
    body = b"Action=&%zz"
    request = AWSRequest(
        "POST",
        f"{backend.endpoint}/",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        data=body,
    )
    keys = backend.credentials
    SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), "sts", "us-east-1").add_auth(request)
    status, _, answer = send(backend, "POST", "/", dict(request.headers), body)
    assert status in (400, 404)
    assert b"<ErrorResponse" in answer


def test_an_aws_chunked_upload_with_a_trailer_is_decoded(backend: Backend) -> None:
    """What SDKs send over HTTPS; the checksum at its end is verified."""
    backend.client("s3").create_bucket(Bucket="bucket")
    for checksum, wanted in (("NhCmhg==", 200), ("AAAAAA==", 400)):
        headers = {
            "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            "x-amz-decoded-content-length": "5",
            "x-amz-trailer": "x-amz-checksum-crc32",
            "content-encoding": "aws-chunked",
        }
        request = AWSRequest("PUT", f"{backend.endpoint}/bucket/k", headers=headers)
        keys = backend.credentials
        request.context["payload_signing_enabled"] = False
        signer = S3SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), "s3", "us-east-1")
        request.context["client_config"] = None
        request.context["checksum"] = {"request_algorithm": {"in": "trailer", "algorithm": "crc32"}}
        signer.add_auth(request)
        body = f"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
        status, _, answer = send(backend, "PUT", "/bucket/k", dict(request.headers), body)
        assert status == wanted, answer
    stored = backend.client("s3").get_object(Bucket="bucket", Key="k")
    assert "ContentEncoding" not in stored
    assert stored["Body"].read() == b"hello"
    stored["Body"].close()
