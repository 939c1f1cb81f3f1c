"""Who has no key gets nothing: no operation, no method, no trick; and nothing changes."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
from botocore.auth import HmacV1Auth, HmacV1QueryAuth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.fakes.wire import create_request
from tests.fuzz import tampering
from tests.fuzz.calls import SERVICES, Caller, Keys, addressed
from tests.fuzz.campaign import Target
from tests.fuzz.wire import Answer, Connection, Message

BODY = b'{"MaxResults": 5}'
ARN = "arn:aws:sagemaker:us-east-1:000000000000:training-job/replayed"
LIST = Message(
    "POST",
    "/",
    [("X-Amz-Target", "SageMaker.ListTrainingJobs"), ("Content-Type", "application/x-amz-json-1.1")],
    BODY,
)
PUT = Message("PUT", "/fuzz-bucket", [])


@pytest.fixture
def ask(server: Target) -> Callable[[Message], Answer]:
    """Sends a message on a connection of its own."""

    def send(message: Message) -> Answer:
        with Connection(server.port) as connection:
            return connection.exchange(message)

    return send


def kept(home: Path) -> dict[str, Any]:
    """All that a request could change: files, but for the log, and every row of the database."""
    state: dict[str, Any] = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.name.startswith(("state.sqlite", "backend.log")):
            state[str(path.relative_to(home))] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.is_dir():
            state[str(path.relative_to(home))] = "folder"
    with sqlite3.connect(f"file:{home / 'state.sqlite'}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            state[f"table {table}"] = sorted(map(str, database.execute(f"SELECT * FROM {table}")))  # noqa: S608
    database.close()
    return state


def refused(answer: Answer) -> bool:
    """403 for all that is HTTP, 400 for what is not, or no answer at all."""
    return answer.status in (0, 400, 403) and b"x-amzn" not in answer.body


def is_health(message: Message, answer: Answer) -> bool:
    """What is open to all, and tells nothing but that the server runs."""
    # HEAD has no body.
    return message.target == "/health?x" and json.loads(answer.body or "{}").keys() <= {"version", "pid"}


def test_no_operation_is_open(server: Target) -> None:
    """Every operation of every model, with valid and broken inputs; and every method on odd paths."""
    random = Random(7)  # noqa: S311  a seeded test
    caller = Caller(random, server.note["served"])
    before = kept(server.home)
    stranger = Keys(server.note["access_key_id"], "not the secret", server.port)
    with Connection(server.port) as connection:
        for number, (service, operation) in enumerate(caller.all_operations()):
            call = caller.of(service, operation, valid=number % 3 != 0)
            message = addressed(call.message, server.port)
            if number % 4 == 1:
                message = stranger.signed(call.message, SERVICES[service][0])
            answer = connection.exchange(message)
            assert answer.status == 403, (operation.name, answer)
        for method in tampering.METHODS:
            for path in tampering.PATHS:
                headers = [("Host", f"127.0.0.1:{server.port}"), ("Content-Length", "0")]
                answer = connection.exchange(Message(method, path, headers))
                wanted = 200 if path == "/health?x" and method in ("GET", "HEAD") else 403
                wanted = wanted if method.isupper() else 400
                assert answer.status == wanted, (method, path, answer)
                assert not any(name.startswith("access-control") for name in answer.headers)
    assert kept(server.home) == before


def test_no_trick_of_http_opens_it(server: Target) -> None:
    """Tampered bodies, headers, lengths and chunks, unsigned."""
    random = Random(8)  # noqa: S311  a seeded test
    caller = Caller(random, server.note["served"])
    before = kept(server.home)
    with Connection(server.port) as connection:
        for change in [*tampering.BEFORE, *tampering.AFTER] * 8:
            message = caller.unsigned(valid=True).message
            if change in tampering.BEFORE:
                message = addressed(change(message, random), server.port)
            else:
                message = change(addressed(message, server.port), random)
            answer = connection.exchange(message)
            assert refused(answer) or is_health(message, answer), (change.__name__, answer)
    assert kept(server.home) == before


def with_header(message: Message, name: str, value: str) -> Message:
    return replace(message, headers=[*message.headers, (name, value)])


def changed(message: Message, name: str, old: str, new: str) -> Message:
    headers = [(n, re.sub(old, new, v) if n.lower() == name else v) for n, v in message.headers]
    assert headers != list(message.headers)
    return replace(message, headers=headers)


TODAY = f"{datetime.now(timezone.utc):%Y%m%d}"
REPLAYS: dict[str, Callable[[Message], Message]] = {
    "another service": lambda m: changed(m, "authorization", "/sagemaker/", "/logs/"),
    "another region": lambda m: changed(m, "authorization", "/us-east-1/", "/eu-west-1/"),
    "another date in the scope": lambda m: changed(m, "authorization", r"/\d{8}/", "/20200101/"),
    "another method": lambda m: replace(m, method="PUT"),
    "another path": lambda m: replace(m, target="/x"),
    "a doubled slash": lambda m: replace(m, target="//"),
    "a query": lambda m: replace(m, target="/?a=b"),
    "another body": lambda m: replace(m, body=BODY.replace(b"5", b"6")),
    "another target": lambda m: changed(m, "x-amz-target", "List", "Delete"),
    "another content type": lambda m: changed(m, "content-type", "1.1", "1.0"),
    "another date": lambda m: m.with_headers(x_amz_date=f"{TODAY}T000001Z"),
    "no x-amz-date": lambda m: m.with_headers(x_amz_date=None, date="Mon, 01 Jan 2024 00:00:00 GMT"),
    "a second x-amz-date": lambda m: with_header(m, "X-Amz-Date", f"{TODAY}T000000Z"),
    "an unsigned x-amz header": lambda m: with_header(m, "X-Amz-Acl", "public-read"),
    "an unsigned session token": lambda m: with_header(m, "X-Amz-Security-Token", "x"),
    "fewer signed headers": lambda m: changed(m, "authorization", "x-amz-date;", ""),
    "an upper-case signature": lambda m: changed(m, "authorization", "Signature=", "Signature=A"),
    "an empty signature": lambda m: m.with_headers(
        authorization=dict(m.headers)["Authorization"].partition("Signature=")[0] + "Signature="
    ),
    "only the scheme": lambda m: m.with_headers(authorization="AWS4-HMAC-SHA256"),
    "another algorithm": lambda m: changed(m, "authorization", "HMAC-SHA256", "ECDSA-P256-SHA256"),
    "a second Authorization": lambda m: replace(m, headers=[("Authorization", "x"), *m.headers]),
    "a second target": lambda m: with_header(m, "X-Amz-Target", "SageMaker.DeleteTrainingJob"),
    "a second host": lambda m: with_header(m, "Host", "evil.example"),
    "no host": lambda m: m.with_headers(host=None),
    "no port": lambda m: m.with_headers(host="127.0.0.1"),
    "a foreign host": lambda m: m.with_headers(host="evil.example"),
    "a foreign host with our port": lambda m: m.with_headers(
        host=f"evil.example:{dict(m.headers)['Host'].rpartition(':')[2]}"
    ),
    "a host with a path": lambda m: m.with_headers(host=dict(m.headers)["Host"] + "/x"),
    "a host with a user": lambda m: m.with_headers(host="x@" + dict(m.headers)["Host"]),
    "a host with a dot": lambda m: m.with_headers(host=dict(m.headers)["Host"].replace(":", ".:")),
    "a padded port": lambda m: m.with_headers(host=dict(m.headers)["Host"].replace(":", ":0")),
}


@pytest.mark.parametrize("how", REPLAYS)
def test_a_signed_request_cannot_be_changed(
    server: Target, ask: Callable[[Message], Answer], how: str
) -> None:
    """What a stranger could catch on the wire is good for itself alone."""
    message = server.keys.signed(LIST, "sagemaker")
    assert ask(message).status == 200
    answer = ask(REPLAYS[how](message))
    assert refused(answer), answer


def test_a_replayed_request_does_nothing_twice(server: Target, ask: Callable[[Message], Answer]) -> None:
    """AWS's signatures live for 15 minutes; a job has its name once, and what else changes ends where it was."""
    job = create_request("replayed", OutputDataConfig={"S3OutputPath": "s3://fuzz-bucket/out"})
    bodies = {
        "CreateTrainingJob": job,
        "AddTags": {"ResourceArn": ARN, "Tags": [{"Key": "a", "Value": "b"}]},
        "StopTrainingJob": {"TrainingJobName": "replayed"},
    }
    answers = {}
    for name, document in bodies.items():
        headers = [("X-Amz-Target", f"SageMaker.{name}"), ("Content-Type", "application/x-amz-json-1.1")]
        message = server.keys.signed(
            Message("POST", "/", headers, json.dumps(document).encode()), "sagemaker"
        )
        answers[name] = (ask(message), ask(message))
    first, second = answers["CreateTrainingJob"]
    assert first.status == 200
    assert b"ResourceInUse" in second.body
    first, second = answers["AddTags"]
    assert first.body == second.body
    assert first.status == 200


def test_an_absolute_target_is_refused(server: Target, ask: Callable[[Message], Answer]) -> None:
    """It names a second host, and which one counts is not agreed upon."""
    for target in (f"http://127.0.0.1:{server.port}/health", "http://evil.example/health", "*", "x"):
        headers = [("Host", f"127.0.0.1:{server.port}")]
        assert ask(Message("GET", target, headers)).status == 400


def presigned(server: Target, secret: str | None = None, expires: int = 60, version: int = 4) -> str:
    """The path and query of a GET presigned by a version of AWS's signatures."""
    request = AWSRequest("GET", f"http://127.0.0.1:{server.port}/fuzz.absent/key", headers={})
    credentials = Credentials(server.note["access_key_id"], secret or server.note["secret_access_key"])
    if version == 4:
        S3SigV4QueryAuth(credentials, "s3", "us-east-1", expires=expires).add_auth(request)
    else:
        HmacV1QueryAuth(credentials, expires=expires).add_auth(request)
    return str(request.url).partition(f":{server.port}")[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/key?", "/key2?"),
        ("/key?", "/key?response-content-type=text%2Fhtml&"),
        ("Expires=60", "Expires=600"),
        ("Expires=60", "Expires=60&X-Amz-Expires=600"),
        ("Expires=60", "Expires=0"),
        ("Expires=60", "Expires=604801"),
        ("Expires=60", "Expires=-1"),
        ("us-east-1", "us-east-2"),
        ("%2Fs3%2F", "%2Fsagemaker%2F"),
        ("SignedHeaders=host", "SignedHeaders="),
        ("SignedHeaders=host", "SignedHeaders=date"),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"),
        ("X-Amz-Signature", "X-Amz-Signatur"),
        ("X-Amz-Date=2", "X-Amz-Date=1"),
        ("&X-Amz-Expires", "&X-Amz-Security-Token=x&X-Amz-Expires"),
        ("&X-Amz-Expires", "&versionId=1&X-Amz-Expires"),
    ],
)
def test_a_presigned_url_cannot_be_changed(
    server: Target, ask: Callable[[Message], Answer], old: str, new: str
) -> None:
    """Nothing in it, nothing added, no longer life, no other method, no steering header."""
    url = presigned(server)
    assert old in url
    passes_as_signed_alone(server, ask, url, url.replace(old, new, 1), presigned(server, secret="another"))


def passes_as_signed_alone(
    server: Target,
    ask: Callable[[Message], Answer],
    url: str,
    *others: str,
    steering: Sequence[tuple[str, str]] = (),
) -> None:
    """Not by another method, with a header of ``steering`` or a copy's source, nor any of the ``others``."""
    headers = [("Host", f"127.0.0.1:{server.port}"), ("Content-Length", "0")]
    assert ask(Message("GET", url, headers)).status == 404, "as signed, it passes: the bucket is not there"
    assert ask(Message("PUT", url, headers)).status == 403
    for name, value in (("x-amz-copy-source", "a/b"), *steering):
        assert ask(Message("GET", url, [*headers, (name, value)])).status == 403
    for other in others:  # 400: what S3 says of an impossible expiry
        assert ask(Message("GET", other, headers)).status in (400, 403)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/key?", "/key2?"),
        ("/key?", "/?"),
        ("/key?", "/key?response-content-type=text%2Fhtml&"),
        ("/key?", "/key?tagging&"),
        ("/key?", "/key?acl&"),
        ("/key?", "/key?attributes&"),
        ("/key?", "/key?uploadId=1&"),
        ("/key?", "/key?x-amz-copy-source=a%2Fb&"),
        ("/key?", "/key?x%2Damz-security-token=x&"),
        ("/key?", "/key?content-type=a&"),
        ("Expires=", "Expires=1"),
        ("Expires=", "Expires=&E="),
        ("Signature=", "Signature=A"),
        ("AWSAccessKeyId=", "AWSAccessKeyId=A"),
    ],
)
def test_a_url_of_version_2_cannot_be_changed(
    server: Target, ask: Callable[[Message], Answer], old: str, new: str
) -> None:
    """Nothing in it, nothing added that names another thing, no longer life, no other method, no steering header."""
    url = presigned(server, version=2)
    assert old in url
    others = (
        url.replace(old, new, 1),
        f"{url}&Expires=9999999999",
        presigned(server, secret="another", version=2),
        presigned(server, expires=-1, version=2),
    )
    passes_as_signed_alone(server, ask, url, *others, steering=[("x-amz-target", "SageMaker.ListModels")])


def test_signature_version_2_is_refused_as_a_header(server: Target, ask: Callable[[Message], Answer]) -> None:
    """It is of URLs alone."""
    request = AWSRequest("GET", f"http://127.0.0.1:{server.port}/fuzz.absent/key", headers={})
    request.auth_path = "/fuzz.absent/key"
    HmacV1Auth(Credentials(server.note["access_key_id"], server.note["secret_access_key"])).add_auth(request)
    headers = [(str(n), str(v)) for n, v in request.headers.items()]
    answer = ask(Message("GET", "/fuzz.absent/key", [*headers, ("Host", f"127.0.0.1:{server.port}")]))
    assert answer.status == 403


def test_a_web_page_gets_nothing(server: Target, ask: Callable[[Message], Answer]) -> None:
    """No preflight is answered with consent, and a form that needs none is refused: it has no signature."""
    host = ("Host", f"127.0.0.1:{server.port}")
    origin = [host, ("Origin", "https://evil.example"), ("Cookie", "a=b"), ("Sec-Fetch-Site", "cross-site")]
    preflight = [
        *origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,x-amz-target"),
        ("Access-Control-Request-Private-Network", "true"),
    ]
    for message in (
        Message("OPTIONS", "/", preflight),
        Message("GET", "/", origin),
        *(
            Message("POST", "/", [*origin, ("Content-Type", kind), ("Content-Length", str(len(body)))], body)
            for kind, body in (
                ("application/x-www-form-urlencoded", b"Action=GetCallerIdentity"),
                ("text/plain", b'{"TrainingJobName": "x"}'),
                (
                    "multipart/form-data; boundary=b",
                    b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nx\r\n--b--',
                ),
            )
        ),
    ):
        answer = ask(message)
        assert answer.status == 403
        assert not any(name.startswith("access-control") for name in answer.headers)
    answer = ask(Message("GET", "/health", origin))
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("token", ["x", "AAAA", "e30=", "\u00e9" * 10, "a.b", "x" * 5000, ""])
def test_an_invalid_session_token_is_refused(
    server: Target, ask: Callable[[Message], Answer], token: str
) -> None:
    """Also one that is signed: a stranger's token does not become ours by the owner's key."""
    token = token.encode().decode("latin-1")
    message = server.keys.signed(with_header(LIST, "X-Amz-Security-Token", token), "sagemaker")
    assert ask(message).status == 403


def test_chunk_signatures_are_checked(server: Target, ask: Callable[[Message], Answer]) -> None:
    """A signed upload in signed chunks is no licence for other bytes, nor for other trailers."""
    assert ask(server.keys.signed(PUT, "s3")).status in (200, 409)
    for chunk, trailer, wanted in (
        (b"hello", b"", 200),
        (b"hellO", b"", 403),
        (b"hello", b"x-amz-meta-a:b\r\n", 403),
    ):
        message = Message(
            "PUT",
            "/fuzz-bucket/chunked",
            [
                ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
                ("x-amz-decoded-content-length", "5"),
            ],
        )
        request = AWSRequest(
            "PUT", f"http://127.0.0.1:{server.port}{message.target}", headers=dict(message.headers)
        )
        signer = SigV4Auth(
            Credentials(server.note["access_key_id"], server.note["secret_access_key"]), "s3", "us-east-1"
        )
        request.context["timestamp"] = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
        request.headers["X-Amz-Date"] = request.context["timestamp"]
        text = signer.string_to_sign(request, signer.canonical_request(request))
        previous = signer.signature(text, request)
        signer._inject_signature_to_request(request, previous)
        scope, empty = text.split("\n")[2], hashlib.sha256().hexdigest()
        body = b""
        for data in (b"hello", b""):
            to_sign = "\n".join(
                (
                    "AWS4-HMAC-SHA256-PAYLOAD",
                    request.context["timestamp"],
                    scope,
                    previous,
                    empty,
                    hashlib.sha256(data).hexdigest(),
                )
            )
            key = b"AWS4" + server.note["secret_access_key"].encode()
            for part in scope.split("/"):
                key = hmac.new(key, part.encode(), hashlib.sha256).digest()
            previous = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
            sent = chunk if data else b""
            end = b"\r\n" if data else trailer + b"\r\n"
            body += b"%x;chunk-signature=%s\r\n%s" % (len(sent), previous.encode(), sent) + end
        headers = [(str(n), str(v)) for n, v in request.headers.items()]
        host = [("Host", f"127.0.0.1:{server.port}"), ("Content-Length", str(len(body)))]
        answer = ask(Message("PUT", message.target, [*headers, *host], body))
        assert answer.status == wanted, (chunk, trailer, answer)
