"""Rounds of the fault test of endpoints: `tests/benchmarks/endpoint_faults.py` plays 50 of them, this a few."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.faults.endpoint_rounds import EndpointStage
from tests.faults.engine import can_run
from tests.faults.serving import BUCKET, MODEL
from tests.faults.stage import KINDS
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not can_run(), reason="a second Docker engine needs root, dockerd and unshare"),
]
SEED = 7


@pytest.fixture(scope="module")
def stage() -> Iterator[EndpointStage]:
    """An endpoint on a server and an engine that may be killed."""
    with EndpointStage(random.Random(SEED)) as stage:  # noqa: S311 - reproducible, not secret
        yield stage


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_by_itself(stage: EndpointStage, kind: str) -> None:
    """No request hangs or gets another's answer, and each that fails says so as AWS does."""
    played = stage.play(kind)
    assert played.faults == [], stage.backend.output()[-4000:]
    assert played.answered > 0


def test_accepted_questions_are_answered_once(stage: EndpointStage) -> None:
    """All of them, though container and server get SIGKILL while some wait and some are asked; none fails."""
    call, count = stage.backend.call, 60
    variant = {
        "VariantName": "a",
        "ModelName": MODEL,
        "InstanceType": "ml.c5.large",
        "InitialInstanceCount": 1,
    }
    where = {"S3OutputPath": f"s3://{BUCKET}/out", "S3FailurePath": f"s3://{BUCKET}/failed"}
    asynchronous = {"OutputConfig": where, "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 1}}
    call(
        "sagemaker",
        "create_endpoint_config",
        EndpointConfigName="later",
        ProductionVariants=[variant],
        AsyncInferenceConfig=asynchronous,
    )
    call("sagemaker", "create_endpoint", EndpointName="later", EndpointConfigName="later")
    wait_for(
        lambda: call("sagemaker", "describe_endpoint", EndpointName="later")["EndpointStatus"] == "InService",
        patience_s=300,
        pause_s=0.2,
    )
    places = []
    for number in range(count):
        call("s3", "put_object", Bucket=BUCKET, Key=f"in/{number}", Body=str(number).encode())
        question = {"EndpointName": "later", "InputLocation": f"s3://{BUCKET}/in/{number}"}
        places.append(call("sagemaker-runtime", "invoke_endpoint_async", **question)["OutputLocation"])
        if number == count // 2:
            label = {"label": "windtunnel.endpoint=later"}
            for container in stage.engine.client().api.containers(filters=label):
                stage.engine.client().api.kill(container["Id"], "SIGKILL")
    stage.backend.kill()
    stage.backend.start()

    def stored(prefix: str) -> list[str]:
        found = call("s3", "list_objects_v2", Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return [f"s3://{BUCKET}/{one['Key']}" for one in found]

    wait_for(lambda: len(stored("out/")) >= count, patience_s=300, pause_s=0.2)
    assert sorted(stored("out/")) == sorted(places)
    assert stored("failed/") == []
    for number, place in enumerate(places):
        key = place.removeprefix(f"s3://{BUCKET}/")
        assert call("s3", "get_object", Bucket=BUCKET, Key=key)["Body"].read() == str(number).encode()
    call("sagemaker", "delete_endpoint", EndpointName="later")


def test_deleting_leaves_nothing(stage: EndpointStage) -> None:
    """No container and no folder of all that there were."""
    assert stage.left() == []
