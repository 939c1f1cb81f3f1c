"""Promises of temporary credentials: derived, not stored; they work until their time, and only as issued."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.api.test_signatures import ENDPOINT, KEY, SECRET, now, signable
from tests.unit.service.samples import job
from windtunnel_local.api.callers import Caller, Grant, SessionTokens
from windtunnel_local.api.errors import AuthFailure
from windtunnel_local.api.sigv4 import UNSIGNED, Verifier, parse
from windtunnel_local.api.sts import keys_of_jobs

CALLER = Caller("Trainer", "me@home")
EMPTY = hashlib.sha256(b"").hexdigest()


def issued(seconds: int = 900, secret: str = SECRET) -> Grant:
    return SessionTokens(secret).issue(CALLER, now() + timedelta(seconds=seconds))


def signed(made: Grant, token: str | None = None, service: str = "sagemaker") -> AWSRequest:
    request = AWSRequest("POST", ENDPOINT + "/")
    credentials = Credentials(made.access_key_id, made.secret_access_key, token or made.session_token)
    (S3SigV4Auth if service == "s3" else SigV4Auth)(credentials, service, "us-east-1").add_auth(request)
    return request


def verify(request: AWSRequest, payload: str = EMPTY, at: datetime | None = None) -> Caller:
    verifier = Verifier(KEY, SECRET, lambda: at or now())
    wire = signable(request)
    claim = parse(wire)
    caller = verifier.admit(claim)
    verifier.check(claim, wire, payload)
    return caller


def refusal(request: AWSRequest, at: datetime | None = None) -> AuthFailure:
    with pytest.raises(AuthFailure) as error:
        verify(request, at=at)
    return error.value


@pytest.mark.parametrize("service", ["sagemaker", "s3"])
def test_what_botocore_signs_with_them_is_accepted(service: str) -> None:
    """By any verifier of the same home, also one made after a restart; and it says who calls."""
    assert verify(signed(issued(), service=service)) == CALLER


def test_they_end_with_their_time() -> None:
    """Not a second later; the codes are AWS's."""
    made = issued(900)
    with pytest.raises(AuthFailure) as error:
        Verifier(KEY, SECRET, lambda: made.expires).admit(parse(signable(signed(made))))
    assert error.value.code_for("json") == "ExpiredTokenException"
    assert error.value.code_for("query") == error.value.code_for("s3") == "ExpiredToken"
    verify(signed(made), at=made.expires - timedelta(seconds=1))


def test_keys_of_a_jobs_code_end_with_the_job() -> None:
    """Whatever their time; to who is not told which jobs go on, none does."""
    caller = Caller("Trainer", "SageMaker", "job/1")
    made = SessionTokens(SECRET).issue(caller, now() + timedelta(seconds=900))
    claim = parse(signable(signed(made)))
    assert Verifier(KEY, SECRET, now, lambda job: job == "job/1").admit(claim) == caller
    for verifier in (Verifier(KEY, SECRET, now, lambda job: job == "job/2"), Verifier(KEY, SECRET, now)):
        with pytest.raises(
            AuthFailure, match="training job job, to whose code it was given, has ended"
        ) as error:
            verifier.admit(claim)
        assert error.value.code_for("s3") == "ExpiredToken"


def test_a_presigned_url_ends_with_the_session() -> None:
    """Although the URL itself would last longer."""
    made = issued(60)
    request = AWSRequest("GET", ENDPOINT + "/bucket/key")
    credentials = Credentials(made.access_key_id, made.secret_access_key, made.session_token)
    S3SigV4QueryAuth(credentials, "s3", "us-east-1", expires=3600).add_auth(request)
    assert verify(request, UNSIGNED) == CALLER
    assert refusal(request, at=now() + timedelta(seconds=61)).reason == "expired token"


def test_key_secret_and_token_belong_together() -> None:
    """Mixed with another session's, or with the home's own pair, they are nothing."""
    one, other = issued(), issued()
    assert refusal(signed(one, other.session_token)).reason == "invalid token"
    mixed = replace(one, secret_access_key=other.secret_access_key)
    assert refusal(signed(mixed)).reason == "mismatch"
    permanent = replace(one, access_key_id=KEY, secret_access_key=SECRET)
    assert refusal(signed(permanent)).reason == "invalid token"
    without = AWSRequest("POST", ENDPOINT + "/")
    SigV4Auth(Credentials(one.access_key_id, one.secret_access_key), "sts", "us-east-1").add_auth(without)
    assert refusal(without).reason == "unknown key"


def test_another_home_does_not_take_them() -> None:
    """Its secret is another."""
    assert refusal(signed(issued(secret="another secret"))).reason == "invalid token"


@given(st.integers(0, 200), st.integers(1, 255))
def test_no_bit_of_a_token_can_be_changed(position: int, change: int) -> None:
    """Neither the time nor the name can be written into one."""
    tokens = SessionTokens(SECRET)
    raw = bytearray(base64.urlsafe_b64decode(issued().session_token))
    raw[position % len(raw)] ^= change
    assert tokens.read(base64.urlsafe_b64encode(bytes(raw)).decode()) is None


@given(st.text(max_size=40) | st.binary(max_size=80).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_anything_else_is_no_token(text: str) -> None:
    """And never an exception."""
    assert SessionTokens(SECRET).read(text) is None


@given(st.text(min_size=1, max_size=64), st.text(min_size=1, max_size=64))
def test_a_token_says_what_was_put_in(role: str, session: str) -> None:
    """Whatever the names are; the key pair has the form of AWS's."""
    expires = datetime(2030, 1, 1, tzinfo=timezone.utc)
    tokens = SessionTokens(SECRET)
    made = tokens.issue(Caller(role, session), expires)
    assert (made.caller, made.expires) == (Caller(role, session), expires)
    assert tokens.read(made.session_token) == made
    assert (made.access_key_id[:4], len(made.access_key_id), len(made.secret_access_key)) == ("ASIA", 20, 40)


def test_secrets_stay_out_of_what_is_printed() -> None:
    """`repr` shows the key id and the time."""
    made = issued()
    shown = f"{made!r} {parse(signable(signed(made)))!r}"
    assert made.access_key_id in shown
    assert made.secret_access_key not in shown
    assert made.session_token not in shown


@pytest.mark.parametrize(
    "arn", ["arn:aws:iam::123456789012:role/x/Trainer", "arn:aws:iam::123456789012:role/Trainer/"]
)
def test_the_code_of_a_job_is_its_role(arn: str, tmp_path: Path) -> None:
    """Also where the ARN ends as only SageMaker takes it: never the home's own user."""
    running = job(tmp_path)
    running = replace(running, request={**running.request, "RoleArn": arn})
    keys = keys_of_jobs(SECRET)(running, now() + timedelta(seconds=900))
    grant = SessionTokens(SECRET).read(keys["AWS_SESSION_TOKEN"])
    assert grant is not None
    assert grant.caller == Caller("Trainer", "SageMaker", running.identity)
