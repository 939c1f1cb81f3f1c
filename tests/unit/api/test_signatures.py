"""Promises of the signature check, against botocore's own signers."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from botocore.auth import HmacV1QueryAuth, S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.api import sigv2
from windtunnel_local.api.errors import AuthFailure
from windtunnel_local.api.sigv4 import UNSIGNED, Claim, Signable, Verifier, parse

KEY, SECRET = "AKIAEXAMPLE", "secret/example+key"
ENDPOINT = "http://127.0.0.1:8000"


def now() -> datetime:
    return datetime.now(timezone.utc)


def signable(request: AWSRequest) -> Signable:
    """What the request looks like on the server."""
    prepared = request.prepare()
    parts = urlsplit(prepared.url)
    headers = [
        (k.lower().encode(), v if isinstance(v, bytes) else str(v).encode())
        for k, v in prepared.headers.items()
    ]
    if not any(k == b"host" for k, _ in headers):
        headers.append((b"host", parts.netloc.encode()))
    return Signable(prepared.method, parts.path.encode(), parts.query.encode(), headers)


def verify(request: Signable, payload: str, *, at: datetime | None = None) -> Claim:
    verifier = Verifier(KEY, SECRET, lambda: at or now())
    claim = parse(request)
    verifier.admit(claim)
    verifier.check(claim, request, payload)
    return claim


def signed(target: str | None = None) -> AWSRequest:
    headers = {"X-Amz-Target": target} if target else {}
    request = AWSRequest("POST", ENDPOINT + "/", headers=headers, data=b"{}")
    SigV4Auth(Credentials(KEY, SECRET), "sagemaker", "us-east-1").add_auth(request)
    return request


def reason(error: pytest.ExceptionInfo[AuthFailure]) -> str:
    return error.value.reason


@given(
    st.text("ab /%+~é*'()", max_size=10),
    st.dictionaries(st.text("a é+&=~", min_size=1, max_size=4), st.text("b /+&=", max_size=4), max_size=3),
)
def test_botocores_s3_signature_is_accepted(key: str, query: dict[str, str]) -> None:
    """Any key, any query: the canonical request is the one that botocore signs."""
    encoded = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in query.items())
    url = f"{ENDPOINT}/bucket/{quote(key, safe='/-_.~')}" + (f"?{encoded}" if encoded else "")
    request = AWSRequest("PUT", url, data=b"data", headers={"x-amz-meta-a": "two  spaces "})
    S3SigV4Auth(Credentials(KEY, SECRET), "s3", "eu-west-1").add_auth(request)
    claim = verify(signable(request), hashlib.sha256(b"data").hexdigest())
    assert (claim.service, claim.region) == ("s3", "eu-west-1")


def test_botocores_json_signature_is_accepted() -> None:
    """The header form of all services but S3."""
    assert verify(signable(signed(target="SageMaker.X")), hashlib.sha256(b"{}").hexdigest())


def test_botocores_presigned_forms_are_accepted_until_they_expire() -> None:
    """The query form lives as long as it says, not a second more."""
    request = AWSRequest("GET", ENDPOINT + "/bucket/a%20b?versions=")
    S3SigV4QueryAuth(Credentials(KEY, SECRET), "s3", "us-east-1", expires=60).add_auth(request)
    assert verify(signable(request), UNSIGNED).presigned
    verify(signable(request), UNSIGNED, at=now() + timedelta(seconds=55))
    with pytest.raises(AuthFailure) as error:
        verify(signable(request), UNSIGNED, at=now() + timedelta(seconds=62))
    assert reason(error) == "expired"
    sts = AWSRequest("GET", ENDPOINT + "/?Action=GetCallerIdentity")
    SigV4QueryAuth(Credentials(KEY, SECRET), "sts", "us-east-1", expires=60).add_auth(sts)
    verify(signable(sts), hashlib.sha256().hexdigest())


@given(st.text("ab /%+~é*'()", max_size=10), st.sampled_from(["", "?versionId=a%2Fb&tagging", "?uploads"]))
def test_botocores_urls_of_version_2_are_accepted(key: str, query: str) -> None:
    """Any key, a session's too: what is signed is what botocore signs."""
    path = f"/bucket/{quote(key, safe='/-_.~')}"
    request = AWSRequest("PUT", ENDPOINT + path + query, headers={"x-amz-meta-a": "b c"}, auth_path=path)
    HmacV1QueryAuth(Credentials(KEY, SECRET, "a/token"), expires=60).add_auth(request)
    at_server = Signable(
        "PUT", path.encode(), urlsplit(request.url).query.encode(), [(b"host", b"localhost")]
    )
    claim = sigv2.parse(at_server)
    plain = sigv2.checked(at_server, claim, SECRET)
    assert (claim.token, plain.header("x-amz-meta-a"), plain.query) == ("a/token", "b c", query[1:].encode())
    sigv2.checked(
        replace(
            at_server, path=path.removeprefix("/bucket").encode(), headers=[(b"host", b"bucket.localhost:1")]
        ),
        claim,
        SECRET,
    )
    with pytest.raises(AuthFailure):
        sigv2.checked(replace(at_server, method="GET"), claim, SECRET)


def test_a_url_of_version_2_is_of_one_object_alone() -> None:
    """What is signed has a line for each part of a request: none may hold a line's end, by which it is two."""
    headers = {"x-amz-meta-name": "a\n/bucket/other?response-expires="}
    request = AWSRequest("PUT", f"{ENDPOINT}/bucket/key", headers=headers, auth_path="/bucket/key")
    HmacV1QueryAuth(Credentials(KEY, SECRET), expires=60).add_auth(request)
    given = dict(parse_qsl(urlsplit(request.url).query))
    forged = urlencode({**given, "x-amz-meta-name": "a", "response-expires": "\n/bucket/key"}).encode()
    other = Signable("PUT", b"/bucket/other", forged, [(b"host", b"localhost")])
    with pytest.raises(AuthFailure):
        sigv2.checked(other, sigv2.parse(other), SECRET)


@pytest.mark.parametrize(
    "query",
    [
        "AWSAccessKeyId=a",
        "AWSAccessKeyId=a&Signature=b&Expires=soon",
        f"AWSAccessKeyId=a&Signature=b&Expires=9{'9' * 40}",
    ],
)
def test_a_url_of_version_2_that_lacks_something_is_refused(query: str) -> None:
    """With AWS's words."""
    with pytest.raises(AuthFailure, match=r"Query-string authentication requires|Invalid date"):
        sigv2.parse(Signable("GET", b"/b/k", query.encode(), []))


@pytest.mark.parametrize(("minutes", "allowed"), [(14, True), (-14, True), (16, False), (-16, False)])
def test_the_clock_may_be_15_minutes_off(minutes: int, allowed: bool) -> None:
    """More is refused, both ways."""
    request, payload = signable(signed()), hashlib.sha256(b"{}").hexdigest()
    at = now() + timedelta(minutes=minutes)
    if allowed:
        verify(request, payload, at=at)
        return
    with pytest.raises(AuthFailure) as error:
        verify(request, payload, at=at)
    assert reason(error) == "skew"


def test_an_unsigned_amz_header_is_refused() -> None:
    """What steers the request must be signed."""
    request = signable(signed())
    smuggled = Signable(
        request.method, request.path, request.query, [*request.headers, (b"x-amz-target", b"X.Y")]
    )
    with pytest.raises(AuthFailure, match="x-amz-target"):
        verify(smuggled, hashlib.sha256(b"{}").hexdigest())


def authorization(scope: str, signed_headers: str = "host") -> str:
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={signed_headers}, Signature={'0' * 64}"


SCOPE = f"{KEY}/20260101/r/s/aws4_request"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Basic eDp5"},
        {"authorization": "AWS4-HMAC-SHA256 nonsense"},
        {"authorization": authorization("a/b")},
        {"authorization": authorization(SCOPE)},
        {"authorization": authorization(SCOPE, "x"), "x-amz-date": "20260101T000000Z"},
        {"authorization": authorization(SCOPE), "x-amz-date": "yesterday"},
    ],
)
def test_what_cannot_be_read_is_refused(headers: dict[str, str]) -> None:
    """Never an exception of another kind."""
    request = Signable("GET", b"/", b"", [(k.encode(), v.encode()) for k, v in headers.items()])
    with pytest.raises(AuthFailure) as error:
        verify(request, UNSIGNED)
    assert reason(error) in ("missing", "incomplete")
