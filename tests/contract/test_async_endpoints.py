"""Endpoints that are asked through S3: InvokeEndpointAsync, and what becomes of each question."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend, serving, wait_for
from tests.contract.test_endpoints import BUCKET, Deployed
from windtunnel_local.service.ground.hosting import Invocation


class Asked(Deployed):
    """A backend with asynchronous endpoints."""

    def asynchronous(
        self, name: str = "e", at_once: int = 4, failure: bool = True, **environment: str
    ) -> None:
        """One in service."""
        self.model(name, **environment)
        where = {"S3OutputPath": f"s3://{BUCKET}/out/"}
        where |= {"S3FailurePath": f"s3://{BUCKET}/failed"} if failure else {}
        variant = {"VariantName": "a", "ModelName": name, "InstanceType": "ml.c5.xlarge"}
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[{**variant, "InitialInstanceCount": 1}],
            AsyncInferenceConfig={
                "OutputConfig": where,
                "ClientConfig": {"MaxConcurrentInvocationsPerInstance": at_once},
            },
        )
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self.reaches(name, "InService")

    def question(self, body: str | bytes, key: str = "in", **members: Any) -> dict[str, Any]:
        """InvokeEndpointAsync's answer."""
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body, ContentType="text/csv")
        answer: dict[str, Any] = self.runtime.invoke_endpoint_async(
            EndpointName="e", InputLocation=f"s3://{BUCKET}/{key}", **members
        )
        return answer

    def stored(self, location: str) -> bytes | None:
        """What is at a location now."""
        place = urlsplit(location)
        try:
            found = self.s3.get_object(Bucket=place.netloc, Key=place.path[1:])
        except ClientError:
            return None
        data: bytes = found["Body"].read()
        return data

    def waiting(self) -> int:
        """Questions that are not struck off."""
        return len(self.backend.application.store.invocations("e", 0, 1000))


@pytest.fixture
def asked(backend: Backend) -> Asked:
    """For one test."""
    return Asked(backend)


def test_an_answer_comes_later(asked: Asked) -> None:
    """Below S3OutputPath, as the container gave it; then the question is struck off."""
    asked.asynchronous(TAG="a:")
    described = asked.sagemaker.describe_endpoint(EndpointName="e")["AsyncInferenceConfig"]
    assert described["OutputConfig"]["S3OutputPath"] == f"s3://{BUCKET}/out/"
    accepted = asked.question(b"hello", "wörter/1", Accept="application/json", InferenceId="mine")
    assert accepted["InferenceId"] == "mine"
    assert accepted["ResponseMetadata"]["HTTPStatusCode"] == 202
    assert accepted["OutputLocation"].startswith(f"s3://{BUCKET}/out/")
    assert accepted["OutputLocation"].endswith(".out")
    assert wait_for(lambda: asked.stored(accepted["OutputLocation"])) == b"a:hello"
    place = urlsplit(accepted["OutputLocation"])
    head = asked.s3.head_object(Bucket=place.netloc, Key=place.path[1:])
    assert head["ContentType"] == "application/json"
    assert asked.stored(accepted["FailureLocation"]) is None
    wait_for(lambda: asked.waiting() == 0)


@pytest.mark.parametrize(
    ("body", "key", "words"),
    [
        ("status 500", "in", rb"server error \(500\) from a.*it went wrong"),
        (None, "none", rb"Could not find"),
        (None, "ü" * 600, rb"Could not find"),
    ],
    ids=["an error", "no such object", "longer than a key can be"],
)
def test_what_fails_says_why(asked: Asked, body: str | None, key: str, words: bytes) -> None:
    """In an object below S3FailurePath; the endpoint goes on."""
    asked.asynchronous()
    accepted = (
        asked.question(body)
        if body
        else asked.runtime.invoke_endpoint_async(EndpointName="e", InputLocation=f"s3://{BUCKET}/{key}")
    )
    assert re.search(words, wait_for(lambda: asked.stored(accepted["FailureLocation"])))
    assert asked.stored(accepted["OutputLocation"]) is None
    after = asked.question("hello")
    assert wait_for(lambda: asked.stored(after["OutputLocation"])) == b"hello"
    wait_for(lambda: asked.waiting() == 0)


def test_an_answer_waits_for_room_on_the_disk(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does the word of a failure: no question is forgotten, and no container blamed."""
    objects, full = asked.backend.application.objects, threading.Event()
    put = objects.put

    def put_if_there_is_room(bucket: str, key: str, *more: Any, **named: Any) -> Any:
        if full.is_set() and key.startswith(("out/", "failed/")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return put(bucket, key, *more, **named)

    monkeypatch.setattr(objects, "put", put_if_there_is_room)
    asked.asynchronous()
    full.set()
    answered, failed = asked.question("hello", "1"), asked.question("status 500", "2")
    container = next(iter(asked.backend.runner.containers.values()))
    wait_for(lambda: {b"hello", b"status 500"} <= set(container.asked))
    time.sleep(0.5)
    full.clear()
    assert wait_for(lambda: asked.stored(answered["OutputLocation"])) == b"hello"
    assert b"it went wrong" in wait_for(lambda: asked.stored(failed["FailureLocation"]))
    wait_for(lambda: asked.waiting() == 0)


def test_an_error_that_nobody_foresaw_loses_no_question(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again, by this server too."""
    objects, failed = asked.backend.application.objects, threading.Event()
    path = objects.path

    def fails_once(bucket: str, key: str) -> Path:
        if key == "in" and not failed.is_set():
            failed.set()
            raise RuntimeError("nobody foresaw it")
        return path(bucket, key)

    asked.asynchronous()
    monkeypatch.setattr(objects, "path", fails_once)
    accepted = asked.question("hello")
    assert wait_for(lambda: asked.stored(accepted["OutputLocation"]), patience_s=20) == b"hello"
    assert failed.is_set()


def test_one_that_waits_for_too_long(asked: Asked) -> None:
    """It is not asked any more; one whose model takes too long fails as well."""
    asked.asynchronous(at_once=1)
    slow = asked.question("sleep 60", "slow", InvocationTimeoutSeconds=3)
    late = asked.question("late", "late", RequestTTLSeconds=60)
    asked.backend.clock.offset = timedelta(minutes=5)
    assert b"InvocationTimeoutSeconds are 3" in wait_for(lambda: asked.stored(slow["FailureLocation"]))
    assert b"has expired" in wait_for(lambda: asked.stored(late["FailureLocation"]))
    assert asked.stored(late["OutputLocation"]) is None


def test_an_instance_is_asked_no_more_at_once_than_configured(asked: Asked) -> None:
    """And as much as that, and in the order in which questions came."""
    asked.asynchronous(at_once=2)
    (slot,) = asked.backend.runner.jobs()
    places = [asked.question("sleep 0.5", f"in-{number}")["OutputLocation"] for number in range(6)]
    router = asked.backend.application.endpoints.router("e")
    busiest = 0

    def all_answered() -> bool:
        nonlocal busiest
        busiest = max(busiest, router.busy(slot))
        return asked.waiting() == 0

    wait_for(all_answered)
    assert busiest == 2
    assert all(asked.stored(place) is not None for place in places)


def test_a_container_that_ends_under_a_question(asked: Asked) -> None:
    """Its successor is asked again."""
    asked.asynchronous(TAG="a:")
    (slot,) = asked.backend.runner.jobs()
    accepted = asked.question("sleep 2")
    router = asked.backend.application.endpoints.router("e")
    wait_for(lambda: router.busy(slot) == 1)
    asked.backend.runner.container(slot).finish(137)
    asked.backend.runner.container(slot).killed.set()
    assert wait_for(lambda: asked.stored(accepted["OutputLocation"])) == b"a:sleep 2"
    assert asked.stored(accepted["FailureLocation"]) is None


def test_another_server_answers_what_is_left(tmp_path: Path) -> None:
    """All that was accepted, and nothing twice: an answer that is stored already is not made again."""
    with serving(tmp_path / "home") as first:
        asked = Asked(first)
        asked.asynchronous(at_once=1, TAG="a:")
        places = [
            asked.question(f"sleep 0.{number}", f"in-{number}")["OutputLocation"] for number in range(6)
        ]
        first.application.endpoints.shutdown()
        asked.s3.put_object(Bucket=BUCKET, Key="out/x.out", Body=b"stored")
        uri = f"s3://{BUCKET}/out/x.out"
        stored = Invocation("x", "e", 1 << 60, f"s3://{BUCKET}/in-0", {}, uri, None, 60, 60)
        first.application.store.add_invocation(stored)
        assert asked.waiting() > 1
    with serving(tmp_path / "home") as second:
        again = Asked(second)
        again.reaches("e", "InService")
        wait_for(lambda: again.waiting() == 0)
        assert [again.stored(place) for place in places] == [f"a:sleep 0.{n}".encode() for n in range(6)]
        assert again.stored(uri) == b"stored"
        again.question("sleep 5", "unanswered")
        again.sagemaker.delete_endpoint(EndpointName="e")
        wait_for(lambda: again.waiting() == 0)


def test_what_is_refused(asked: Asked) -> None:
    """By its name, with what to do instead."""
    asked.asynchronous(failure=False)
    assert "FailureLocation" not in asked.question("hello")
    for members in ({"Filename": "mine"}, {"S3OutputPathExtension": "x"}, {"Body": b"hello"}):
        with pytest.raises(ClientError, match=rf"ValidationError.*{next(iter(members))}"):
            asked.question("hello", **members)
    for location in ("s3:///in", f"s3://{BUCKET}", f"s3://{BUCKET}/", "https://models/in"):
        with pytest.raises(ClientError, match=r"ValidationError.*must name an object"):
            asked.runtime.invoke_endpoint_async(EndpointName="e", InputLocation=location)
    with pytest.raises(ClientError, match="is asynchronous: ask it with InvokeEndpointAsync"):
        asked.ask()
    asked.endpoint("plain")
    with pytest.raises(ClientError, match="not asynchronous"):
        asked.runtime.invoke_endpoint_async(EndpointName="plain", InputLocation=f"s3://{BUCKET}/in")
    with pytest.raises(ClientError, match=r"not found|Could not find"):
        asked.runtime.invoke_endpoint_async(EndpointName="none", InputLocation=f"s3://{BUCKET}/in")
    variant = {
        "VariantName": "a",
        "ModelName": "e",
        "InstanceType": "ml.c5.xlarge",
        "InitialInstanceCount": 1,
    }
    for output, words in (
        ({}, "needs an S3OutputPath"),
        ({"S3OutputPath": "s3://no-such-bucket/x"}, "does not exist"),
        (
            {
                "S3OutputPath": f"s3://{BUCKET}/x",
                "NotificationConfig": {"SuccessTopic": "arn:aws:sns:us-east-1:000000000000:t"},
            },
            "no SNS",
        ),
    ):
        with pytest.raises(ClientError, match=words):
            asked.sagemaker.create_endpoint_config(
                EndpointConfigName="c",
                ProductionVariants=[variant],
                AsyncInferenceConfig={"OutputConfig": output},
            )
