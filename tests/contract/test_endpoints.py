"""Models, endpoint configurations and endpoints over the wire, and the requests to them."""

from __future__ import annotations

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError, EventStreamError

from tests.contract.conftest import LOCAL_IMAGE, Backend, serving, wait_for
from tests.fakes.archive import archive
from tests.fakes.model_server import serve
from windtunnel_local.api import invocations
from windtunnel_local.service.ground.hosting import LIMIT_TAG, Kind
from windtunnel_local.service.hosting import instance_run

BUCKET = "models"
ROLE = "arn:aws:iam::000000000000:role/r"
VPC = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
"""As companies name one; it is kept, and changes nothing."""
KEY = "model.tar.gz"


class Deployed:
    """A backend with a model in S3, and short words for what tests do."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.sagemaker = backend.client("sagemaker")
        self.runtime = backend.client("sagemaker-runtime")
        self.s3 = backend.client("s3")
        self.s3.create_bucket(Bucket=BUCKET)
        self.put(("weights.txt", b"1 2 3"), ("code/inference.py", b"x = 1"))

    def put(self, *files: tuple[str, bytes], links: tuple[tuple[str, str], ...] = ()) -> None:
        """Store a model.tar.gz."""
        self.s3.put_object(Bucket=BUCKET, Key=KEY, Body=archive(*files, links=links))

    def model(self, name: str, **environment: str) -> None:
        """CreateModel."""
        container = {"Image": LOCAL_IMAGE, "ModelDataUrl": f"s3://{BUCKET}/{KEY}", "Environment": environment}
        given = {"PrimaryContainer": container, "ExecutionRoleArn": ROLE, "VpcConfig": VPC}
        self.sagemaker.create_model(ModelName=name, **given)

    def config(self, name: str, *variants: tuple[str, str, float], count: int = 1, **more: Any) -> None:
        """CreateEndpointConfig of variants: name, model, weight."""
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[
                {
                    "VariantName": variant,
                    "ModelName": model,
                    "InitialInstanceCount": count,
                    "InstanceType": "ml.c5.xlarge",
                    "InitialVariantWeight": weight,
                    **more,
                }
                for variant, model, weight in variants
            ],
        )

    def endpoint(self, name: str = "e", status: str = "InService", **environment: str) -> dict[str, Any]:
        """An endpoint with a model and a configuration of its name, once it has the status."""
        self.model(name, **environment)
        self.config(name, ("AllTraffic", name, 1))
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        return self.reaches(name, status)

    def reaches(self, name: str, status: str) -> dict[str, Any]:
        """Wait for a status."""

        def look() -> dict[str, Any] | None:
            described: dict[str, Any] = self.sagemaker.describe_endpoint(EndpointName=name)
            return described if described["EndpointStatus"] == status else None

        found: dict[str, Any] = wait_for(look)
        return found

    def ask(self, body: str | bytes = "hello", name: str = "e", **arguments: Any) -> bytes:
        """InvokeEndpoint's answer."""
        answer = self.runtime.invoke_endpoint(EndpointName=name, Body=body, **arguments)
        data: bytes = answer["Body"].read()
        return data


@pytest.fixture
def deployed(backend: Backend) -> Deployed:
    """For one test."""
    return Deployed(backend)


@pytest.fixture(scope="module")
def standing(shared_backend: Backend) -> Deployed:
    """With the endpoint `e` in service, for those tests that leave it as it is."""
    made = Deployed(shared_backend)
    made.endpoint()
    return made


def test_from_model_to_answer_and_back(deployed: Deployed) -> None:
    """The life of an endpoint, by the calls that SDK v2 makes."""
    described = deployed.endpoint(TAG="a:")
    (variant,) = described["ProductionVariants"]
    assert (variant["VariantName"], variant["CurrentInstanceCount"], variant["CurrentWeight"]) == (
        "AllTraffic",
        1,
        1.0,
    )
    answer = deployed.runtime.invoke_endpoint(
        EndpointName="e",
        Body=b"hello",
        ContentType="text/csv",
        Accept="application/json",
        CustomAttributes="c=1",
    )
    assert answer["Body"].read() == b"a:hello"
    assert answer["ContentType"] == "application/json"
    assert answer["InvokedProductionVariant"] == "AllTraffic"
    assert answer["CustomAttributes"] == "c=1"

    (slot,) = deployed.backend.runner.jobs()
    container = deployed.backend.runner.container(slot)
    assert container.path("/opt/ml/model/weights.txt").read_text() == "1 2 3"
    assert container.path("/opt/ml/model/code/inference.py").is_file()
    folder = container.path("/opt/ml/model")

    deployed.sagemaker.delete_endpoint_config(EndpointConfigName="e")
    deployed.sagemaker.delete_model(ModelName="e")
    assert deployed.ask() == b"a:hello", "an endpoint outlives what it was made of"
    deployed.sagemaker.delete_endpoint(EndpointName="e")
    with pytest.raises(
        ClientError, match=r'Could not find endpoint "arn:aws:sagemaker:us-east-1:.*:endpoint/e"'
    ):
        wait_for(lambda: deployed.sagemaker.describe_endpoint(EndpointName="e") and None)
    assert deployed.backend.runner.jobs() == set()
    assert not folder.exists()
    with pytest.raises(ClientError, match=r"Endpoint e of account \d+ not found"):
        deployed.ask()


def test_what_a_request_left_out_is_described_as_it_was_taken(deployed: Deployed) -> None:
    """A model with a network, a variant of weight 1."""
    deployed.model("m")
    model = deployed.sagemaker.describe_model(ModelName="m")
    assert (model["EnableNetworkIsolation"], model["VpcConfig"]) == (False, VPC)
    variant = {
        "VariantName": "v",
        "ModelName": "m",
        "InstanceType": "ml.c5.xlarge",
        "InitialInstanceCount": 1,
    }
    deployed.sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    found = deployed.sagemaker.describe_endpoint_config(EndpointConfigName="c")
    assert found["ProductionVariants"] == [{**variant, "InitialVariantWeight": 1.0}]


def test_words_that_clients_match(standing: Deployed) -> None:
    """SDKs look for these of AWS's."""
    with pytest.raises(ClientError, match="Cannot create already existing model"):
        standing.model("e")
    with pytest.raises(ClientError, match="Cannot create already existing endpoint configuration"):
        standing.config("e", ("a", "e", 1))
    with pytest.raises(ClientError, match="Cannot create already existing endpoint"):
        standing.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="e")
    for call in (
        lambda: standing.sagemaker.describe_model(ModelName="x"),
        lambda: standing.sagemaker.delete_model(ModelName="x"),
        lambda: standing.config("x", ("a", "x", 1)),
        lambda: standing.sagemaker.describe_endpoint_config(EndpointConfigName="x"),
        lambda: standing.sagemaker.create_endpoint(EndpointName="y", EndpointConfigName="x"),
        lambda: standing.sagemaker.delete_endpoint(EndpointName="x"),
        lambda: standing.sagemaker.update_endpoint(EndpointName="x", EndpointConfigName="e"),
    ):
        with pytest.raises(ClientError, match=r"\(ValidationException\).*Could not find"):
            call()


def test_refused_models(deployed: Deployed) -> None:
    """With what would be right."""
    for change, words in (
        ({"Mode": "MultiModel"}, "several models"),
        ({"ModelDataUrl": f"s3://{BUCKET}/other"}, "Could not find model data"),
        ({"ModelDataUrl": "s3://no-such-bucket/x"}, "Could not find model data"),
    ):
        container = {"Image": LOCAL_IMAGE, "ModelDataUrl": f"s3://{BUCKET}/{KEY}", **change}
        with pytest.raises(ClientError, match=words):
            deployed.sagemaker.create_model(ModelName="m", PrimaryContainer=container, ExecutionRoleArn=ROLE)


def test_a_model_that_does_not_come_up(deployed: Deployed) -> None:
    """The last lines of its log are the reason; nothing of it is left, and it can only be deleted."""
    reason = deployed.endpoint(status="Failed", FAIL="3")["FailureReason"]
    assert "exit code 3" in reason
    assert "model_fn: no such file" in reason
    wait_for(lambda: not deployed.backend.runner.jobs())
    with pytest.raises(ClientError, match="is Failed"):
        deployed.ask()
    with pytest.raises(ClientError, match=r"ValidationException.*in status Failed: it can only be deleted"):
        deployed.sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="e")
    deployed.sagemaker.delete_endpoint(EndpointName="e")
    wait_for(lambda: not deployed.sagemaker.list_endpoints()["Endpoints"])


def test_a_model_that_never_answers_a_ping(deployed: Deployed) -> None:
    """It has the time that its variant gives it, and as on AWS cannot be deleted so long; but its limit ends it."""
    deployed.model("m", SLOW="1")
    deployed.config("c", ("a", "m", 1), ContainerStartupHealthCheckTimeoutInSeconds=60)
    limit = {"Key": LIMIT_TAG, "Value": "600"}
    deployed.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="c", Tags=[limit])
    wait_for(lambda: deployed.backend.runner.jobs())
    with pytest.raises(ClientError, match="is Creating"):
        deployed.ask()
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        deployed.sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="c")
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        deployed.sagemaker.delete_endpoint(EndpointName="e")
    deployed.backend.clock.offset = timedelta(seconds=601)
    wait_for(lambda: not deployed.backend.runner.jobs())


def test_an_archive_that_leads_out(deployed: Deployed) -> None:
    """It is refused, by name."""
    deployed.put(links=(("link", "../../../etc/passwd"),))
    reason = deployed.endpoint(status="Failed")["FailureReason"]
    assert f"s3://{BUCKET}/{KEY} is refused" in reason


def test_an_answer_that_is_none(standing: Deployed) -> None:
    """A container's own status and words come back in AWS's shape; then it goes on."""
    for status in (400, 500):
        with pytest.raises(ClientError) as caught:
            standing.ask(f"status {status}")
        answer = caught.value.response
        assert answer["Error"]["Code"] == "ModelError"
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 424
        assert answer["OriginalStatusCode"] == status
        assert answer["OriginalMessage"] == "it went wrong"
        assert answer["LogStreamArn"].endswith("/aws/sagemaker/Endpoints/e")
    with pytest.raises(ClientError, match="larger than 6291456 bytes"):
        standing.ask(f"large {7 << 20}")
    with pytest.raises(ClientError, match="6291456 at most"):
        standing.ask(b"x" * (6 << 20 | 1))
    assert len(standing.ask(b"x" * (6 << 20))) == 6 << 20


def test_what_would_be_without_effect_is_refused(standing: Deployed) -> None:
    """By its name. A header of the answer that is none is the model's doing, and said so."""
    for member, value in (
        ("TargetModel", "m"),
        ("SessionId", "NEW_SESSION"),
        ("CustomAttributes", "x" * 1025),
    ):
        with pytest.raises(ClientError, match=rf"ValidationError.*{member}"):
            standing.ask(**{member: value})
    with pytest.raises(ClientError, match=r"ModelError.*content-type"):
        standing.ask("kind \u00e4")


def test_limits_of_a_fleet_and_of_tags(standing: Deployed) -> None:
    """No endpoint without traffic, none with more containers than a machine runs; AWS's number of tags."""
    arn = standing.reaches("e", "InService")["EndpointArn"]
    for change in ({"DesiredWeight": 0}, {"DesiredInstanceCount": 0}, {"DesiredInstanceCount": 200}):
        with pytest.raises(ClientError, match=r"One variant at least|200 instances"):
            standing.sagemaker.update_endpoint_weights_and_capacities(
                EndpointName="e", DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", **change}]
            )
    tags = [{"Key": f"k{number}", "Value": "v"} for number in range(26)]
    standing.sagemaker.add_tags(ResourceArn=arn, Tags=tags)
    with pytest.raises(ClientError, match="at most 50"):
        standing.sagemaker.add_tags(ResourceArn=arn, Tags=[{**tag, "Key": f"m{tag['Key']}"} for tag in tags])


def test_a_name_can_be_taken_at_once(deployed: Deployed) -> None:
    """As soon as the endpoint of that name is gone."""
    deployed.endpoint()
    for _ in range(5):
        deployed.sagemaker.delete_endpoint(EndpointName="e")

        def taken() -> bool:
            try:
                deployed.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="e")
            except ClientError:
                return False
            return True

        wait_for(taken)
        deployed.reaches("e", "InService")


def test_a_name_that_is_deleted_twice_is_free(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes it keeps it, also where the second call came as the first one's work ended."""
    deployed.endpoint()
    application = deployed.backend.application
    again, taken = threading.Event(), threading.Event()
    calls: list[str] = []
    delete = application.store.delete_resource

    def deleted_twice(kind: Kind, name: str) -> bool:
        calls.append(name)
        if len(calls) == 1:
            application.endpoints.delete_endpoint(name)
            again.wait(1)
        else:
            again.set()
            taken.wait(20)
        return delete(kind, name)

    monkeypatch.setattr(application.store, "delete_resource", deleted_twice)
    deployed.sagemaker.delete_endpoint(EndpointName="e")
    wait_for(lambda: not deployed.sagemaker.list_endpoints()["Endpoints"])
    deployed.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="e")
    taken.set()
    deployed.reaches("e", "InService")
    assert deployed.ask() == b"hello"


def test_an_answer_in_parts(standing: Deployed) -> None:
    """They come as events, as the container sends them."""
    answer = standing.runtime.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"parts 5")
    parts = [event["PayloadPart"]["Bytes"] for event in answer["Body"]]
    assert b"".join(parts) == b"0,1,2,3,4,"
    assert len(parts) > 1
    assert answer["InvokedProductionVariant"] == "AllTraffic"


def test_an_answer_in_parts_that_takes_too_long(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is told in words, and by AWS's code for it, which boto3 does not pass on."""
    monkeypatch.setattr(invocations, "_STREAM_S", 1.0)
    deployed.endpoint()
    answer = deployed.runtime.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"parts 400")
    with pytest.raises(EventStreamError, match=r"ModelStreamError.*within 1 s"):
        list(answer["Body"])
    answer["Body"].close()

    backend = deployed.backend
    url = f"{backend.endpoint}/endpoints/e/invocations-response-stream"
    request = AWSRequest("POST", url, data=b"parts 400")
    key = Credentials(backend.credentials.access_key_id, backend.credentials.secret_access_key)
    SigV4Auth(key, "sagemaker", "us-east-1").add_auth(request)
    events = EventStreamBuffer()
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request("POST", urlsplit(url).path, request.body, dict(request.headers))
        events.add_data(connection.getresponse().read())
    *parts, last = events
    assert b"".join(part.payload for part in parts).startswith(b"0,1,2,")
    assert last.headers[":exception-type"] == "ModelStreamError"
    assert json.loads(last.payload)["ErrorCode"] == "ModelInvocationTimeExceeded"


def test_a_container_that_ends_is_replaced(deployed: Deployed) -> None:
    """By itself; requests meanwhile wait for the next one, and none hangs."""
    deployed.endpoint()
    (slot,) = deployed.backend.runner.jobs()
    deployed.backend.runner.container(slot).finish(137)
    deployed.backend.runner.container(slot).killed.set()
    wait_for(lambda: deployed.backend.runner.jobs() - {slot})
    assert deployed.ask() == b"hello"
    assert deployed.reaches("e", "InService")["ProductionVariants"][0]["DesiredInstanceCount"] == 1


def test_a_container_that_answers_no_pings_is_replaced(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it runs; one bad answer or two are none of its end."""
    monkeypatch.setattr(instance_run, "_HEALTH_EVERY_S", 0.05)
    deployed.endpoint(TAG="a:")
    (slot,) = deployed.backend.runner.jobs()
    assert deployed.ask("sick") == b"a:sick"
    wait_for(lambda: deployed.backend.runner.jobs() - {slot})
    wait_for(lambda: slot not in deployed.backend.runner.jobs())
    assert deployed.ask() == b"a:hello"
    assert deployed.reaches("e", "InService")["ProductionVariants"][0]["DesiredInstanceCount"] == 1


def test_an_update_under_load_loses_nothing(deployed: Deployed) -> None:
    """The old one answers until the new one is ready, and what it was asked to the end."""
    deployed.endpoint(TAG="old:")
    deployed.model("new", TAG="new:")
    deployed.config("new", ("AllTraffic", "new", 1))
    over = threading.Event()

    def ask() -> list[bytes]:
        answers = []
        while not over.is_set():
            answers.append(deployed.ask("sleep 0.02"))
        return answers

    with ThreadPoolExecutor() as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        deployed.sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="new")
        before = deployed.sagemaker.describe_endpoint(EndpointName="e")
        assert before["EndpointStatus"] == "Updating"
        described = deployed.reaches("e", "InService")
        wait_for(lambda: len(deployed.backend.runner.jobs()) == 1)
        over.set()
        answers = [answer for future in asking for answer in future.result(30)]
    assert described["EndpointConfigName"] == "new"
    images = [one["ProductionVariants"][0]["DeployedImages"][0] for one in (before, described)]
    assert images[0]["ResolutionTime"] == before["CreationTime"] < images[1]["ResolutionTime"]
    assert {answer.partition(b":")[0] for answer in answers} == {b"old", b"new"}
    assert deployed.ask() == b"new:hello"


def test_an_update_that_fails_changes_nothing(deployed: Deployed) -> None:
    """The old one goes on, and the reason is there."""
    deployed.endpoint(TAG="old:")
    deployed.model("bad", FAIL="1")
    deployed.config("bad", ("AllTraffic", "bad", 1))
    deployed.sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="bad")
    described = deployed.reaches("e", "InService")
    assert described["EndpointConfigName"] == "e"
    assert "exit code 1" in described["FailureReason"]
    assert deployed.ask() == b"old:hello"


def test_an_instance_more_that_fails_takes_nothing_along(deployed: Deployed) -> None:
    """Those there are go on; the reason is there, and another one is tried."""
    deployed.endpoint(TAG="a:")
    (first,) = deployed.backend.runner.jobs()
    deployed.backend.runner.script = lambda _: 7
    more = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 2}]
    deployed.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName="e", DesiredWeightsAndCapacities=more
    )
    described = deployed.reaches("e", "InService")
    assert "exit code 7" in described["FailureReason"]
    assert (first in deployed.backend.runner.jobs(), deployed.ask()) == (True, b"a:hello")
    deployed.backend.runner.script = serve
    wait_for(lambda: deployed.reaches("e", "InService")["ProductionVariants"][0]["CurrentInstanceCount"] == 2)


def test_variants_share_by_weight(deployed: Deployed) -> None:
    """A request may name one; weights and counts can be changed."""
    for name in ("a", "b"):
        deployed.model(name, TAG=f"{name}:")
    deployed.config("c", ("a", "a", 3), ("b", "b", 1))
    deployed.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="c")
    deployed.reaches("e", "InService")
    router, chosen = deployed.backend.application.endpoints.router("e"), []
    for _ in range(200):  # as each request does
        with router.taken() as target:
            chosen.append(target and target.variant)
    assert 20 < chosen.count("b") < 90 and set(chosen) == {"a", "b"}, "3 to 1, within 5 standard deviations"
    assert deployed.ask() in (b"a:hello", b"b:hello")
    assert deployed.ask(TargetVariant="b") == b"b:hello"
    with pytest.raises(ClientError, match="Variant x not found"):
        deployed.ask(TargetVariant="x")
    deployed.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName="e",
        DesiredWeightsAndCapacities=[
            {"VariantName": "a", "DesiredWeight": 0},
            {"VariantName": "b", "DesiredInstanceCount": 2},
        ],
    )
    described = {v["VariantName"]: v for v in deployed.reaches("e", "InService")["ProductionVariants"]}
    assert described["b"]["CurrentInstanceCount"] == 2
    assert {deployed.ask() for _ in range(5)} == {b"b:hello"}


def test_another_server_goes_on(tmp_path: Path) -> None:
    """What was InService is again, though the engine of this test has ended with the first server."""
    with serving(tmp_path / "home") as first:
        deployed = Deployed(first)
        deployed.endpoint(TAG="a:")
        runner = first.runner
        slots = runner.jobs()
        first.application.endpoints.shutdown()
        assert runner.jobs() == slots
    with serving(tmp_path / "home") as second:
        again = Deployed(second)
        again.reaches("e", "InService")
        assert again.ask() == b"a:hello"


def test_one_with_a_limit_is_deleted(deployed: Deployed) -> None:
    """When its time is over, also where nobody asks; its log says why."""
    deployed.model("m")
    deployed.config("e", ("a", "m", 1))
    limit = {"Key": "windtunnel:max-seconds", "Value": "300"}
    with pytest.raises(ClientError, match="must be a number of seconds"):
        deployed.sagemaker.create_endpoint(
            EndpointName="e", EndpointConfigName="e", Tags=[{**limit, "Value": "an hour"}]
        )
    deployed.sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="e", Tags=[limit])
    deployed.reaches("e", "InService")
    deployed.backend.clock.offset = timedelta(seconds=301)
    wait_for(lambda: not deployed.sagemaker.list_endpoints()["Endpoints"])
    assert deployed.backend.runner.jobs() == set()
    logs = deployed.backend.client("logs")
    (event,) = logs.filter_log_events(logGroupName="/aws/sagemaker/Endpoints/e", filterPattern="deleted")[
        "events"
    ]
    assert "300 s ago, its limit" in event["message"]


def test_lists_and_tags(deployed: Deployed) -> None:
    """In pages, filtered, in both orders."""
    for number in range(5):
        deployed.model(f"m-{number}")
    pages = deployed.sagemaker.get_paginator("list_models").paginate(
        SortBy="Name", SortOrder="Ascending", PaginationConfig={"PageSize": 2}
    )
    assert [m["ModelName"] for page in pages for m in page["Models"]] == [f"m-{i}" for i in range(5)]
    (found,) = deployed.sagemaker.list_models(NameContains="3")["Models"]
    newest = deployed.sagemaker.list_models(MaxResults=1)["Models"]
    assert [m["ModelName"] for m in newest] == ["m-4"]
    arn = found["ModelArn"]
    deployed.sagemaker.add_tags(
        ResourceArn=arn, Tags=[{"Key": "k", "Value": "v"}, {"Key": "l", "Value": "w"}]
    )
    deployed.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["l"])
    assert deployed.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "k", "Value": "v"}]


def test_logs_have_a_group_of_their_own(deployed: Deployed) -> None:
    """One an endpoint, one stream an instance; those of training jobs do not show them."""
    deployed.endpoint(TAG="t")
    logs = deployed.backend.client("logs")
    group = "/aws/sagemaker/Endpoints/e"
    (stream,) = wait_for(
        lambda: logs.describe_log_streams(logGroupName=group, orderBy="LastEventTime")["logStreams"]
    )
    assert stream["logStreamName"].startswith("AllTraffic/i-")
    events = logs.get_log_events(
        logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
    )
    assert [event["message"] for event in events["events"]] == ["serving t"]
    (event,) = logs.filter_log_events(logGroupName=group, filterPattern="serving")["events"]
    assert event["logStreamName"] == stream["logStreamName"]
    jobs = "/aws/sagemaker/TrainingJobs"
    assert logs.describe_log_streams(logGroupName=jobs)["logStreams"] == []
    assert logs.describe_log_streams(logGroupName=jobs, orderBy="LastEventTime")["logStreams"] == []
    assert logs.filter_log_events(logGroupName=jobs)["events"] == []
    assert {g["logGroupName"] for g in logs.describe_log_groups()["logGroups"]} == {group, jobs}
