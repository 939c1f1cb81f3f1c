"""Transform jobs over the wire, with containers made of threads."""

from __future__ import annotations

import gzip
import json
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Backend, serving, wait_for
from tests.contract.test_endpoints import Deployed
from windtunnel_local.service.ground.hosting import Resource

BUCKET = "data"
GROUP = "/aws/sagemaker/TransformJobs"
ENDED = ("Completed", "Failed", "Stopped")
LINES = {"SplitType": "Line"}
AS_LINES = {"AssembleWith": "Line"}


class Batch:
    """A backend with a model ``m``, and short words for what tests do."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.deployed = Deployed(backend)
        self.sagemaker, self.s3 = self.deployed.sagemaker, self.deployed.s3
        self.s3.create_bucket(Bucket=BUCKET)

    def put(self, **files: str | bytes) -> None:
        """Store input: names below ``in/``, a "_" as "/"."""
        for name, data in files.items():
            self.s3.put_object(Bucket=BUCKET, Key=f"in/{name.replace('_', '/')}", Body=data)

    def create(
        self,
        given: dict[str, Any] | None = None,
        output: dict[str, Any] | None = None,
        *,
        name: str = "j",
        count: int = 1,
        source: tuple[str, str] = ("S3Prefix", f"s3://{BUCKET}/in/"),
        **members: Any,
    ) -> str:
        """CreateTransformJob; returns the ARN."""
        arn: str = self.sagemaker.create_transform_job(
            TransformJobName=name,
            ModelName="m",
            TransformInput={
                "DataSource": {"S3DataSource": dict(zip(("S3DataType", "S3Uri"), source, strict=True))},
                **(given or {}),
            },
            TransformOutput={"S3OutputPath": f"s3://{BUCKET}/out", **(output or {})},
            TransformResources={"InstanceType": "ml.c5.xlarge", "InstanceCount": count},
            **members,
        )["TransformJobArn"]
        return arn

    def end(self, name: str = "j") -> dict[str, Any]:
        """DescribeTransformJob, once it has ended."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.sagemaker.describe_transform_job(TransformJobName=name)
            return found if found["TransformJobStatus"] in ENDED else None

        found: dict[str, Any] = wait_for(look, patience_s=120)
        return found

    def run(self, *args: Any, **members: Any) -> dict[str, bytes]:
        """What a job leaves, by the name below ``out/``; it must complete."""
        self.create(*args, **members)
        found = self.end(members.get("name", "j"))
        assert found["TransformJobStatus"] == "Completed", found
        return self.results()

    def results(self) -> dict[str, bytes]:
        """By the name below ``out/``."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="out/")
        keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return {key[4:]: self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}


@pytest.fixture
def batch(backend: Backend) -> Batch:
    """For one test, with a model that answers with what it is asked."""
    made = Batch(backend)
    made.deployed.model("m")
    return made


@pytest.fixture(scope="module")
def shared_batch(shared_backend: Backend) -> Batch:
    """The same for several tests, each of which gives its job the next name."""
    made = Batch(shared_backend)
    made.deployed.model("m")
    return made


NAMES = (f"j{number}" for number in count())


def test_the_life_of_a_job(batch: Batch) -> None:
    """From the request to an object for each object; then no container is left."""
    batch.put(**{"a.csv": "1,2\n3,4\n", "sub_b.csv": "5,6"})
    arn = batch.create(LINES, AS_LINES, Environment={"MINE": "1"}, Tags=[{"Key": "k", "Value": "v"}])
    assert arn.endswith(":transform-job/j")
    found = batch.end()
    assert found["TransformJobStatus"] == "Completed"
    assert found["CreationTime"] <= found["TransformStartTime"] <= found["TransformEndTime"]
    assert (found["ModelName"], found["Environment"]) == ("m", {"MINE": "1"})
    # As in AWS's developer guide: what the request left out.
    assert found["TransformInput"]["CompressionType"] == "None"
    assert found["TransformOutput"]["KmsKeyId"] == ""
    assert found["DataProcessing"] == {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "None"}
    assert batch.results() == {"a.csv.out": b"1,2\n3,4\n", "sub/b.csv.out": b"5,6\n"}
    wait_for(lambda: not batch.backend.runner.jobs())
    assert batch.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "k", "Value": "v"}]
    (listed,) = batch.sagemaker.list_transform_jobs(StatusEquals="Completed")["TransformJobSummaries"]
    assert (listed["TransformJobName"], listed["TransformEndTime"]) == ("j", found["TransformEndTime"])
    assert batch.sagemaker.list_transform_jobs(NameContains="x")["TransformJobSummaries"] == []
    (plan,) = batch.backend.runner.plans
    told = plan.containers[0].environment
    assert (told["SAGEMAKER_BATCH"], told["MINE"]) == ("true", "1")
    assert not {"SAGEMAKER_MAX_PAYLOAD_IN_MB", "SAGEMAKER_BATCH_STRATEGY"} & told.keys(), (
        "nobody has set them"
    )


def test_what_the_container_is_told_and_asks_for(batch: Batch) -> None:
    """The request's own settings are variables; what it leaves open, /execution-parameters may say."""
    batch.deployed.sagemaker.delete_model(ModelName="m")
    wanted = {"MaxConcurrentTransforms": 3, "BatchStrategy": "SINGLE_RECORD", "MaxPayloadInMB": 50}
    batch.deployed.model("m", PARAMETERS=json.dumps(wanted), TAG=">")
    batch.put(a="1\n2\n")
    assert batch.run(LINES, MaxPayloadInMB=2) == {"a.out": b">1\n>2\n"}
    (plan,) = batch.backend.runner.plans
    assert plan.containers[0].environment["SAGEMAKER_MAX_PAYLOAD_IN_MB"] == "2"
    logs = batch.backend.client("logs")
    streams = [s["logStreamName"] for s in logs.describe_log_streams(logGroupName=GROUP)["logStreams"]]
    (output,) = (s for s in streams if not s.endswith("/data-log"))
    assert output.startswith("j/i-")
    events = logs.get_log_events(logGroupName=GROUP, logStreamName=output, startFromHead=True)["events"]
    assert [event["message"] for event in events] == ["serving >"]
    (line,) = logs.get_log_events(logGroupName=GROUP, logStreamName=f"{output}/data-log")["events"]
    settings = "MaxConcurrentTransforms=3, MaxPayloadInMB=2, BatchStrategy=SINGLE_RECORD"
    assert line["message"].endswith(f"[sagemaker logs]: {settings}")
    assert GROUP in {group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]}


def test_records_of_several_and_of_one(batch: Batch) -> None:
    """MultiRecord fills a payload with whole lines; SingleRecord asks for each; without SplitType a file is one."""
    batch.deployed.sagemaker.delete_model(ModelName="m")
    batch.deployed.model("m", TAG=">")
    line = "x" * ((1 << 20) // 3)
    batch.put(a=f"{line}\n" * 5)
    several = batch.run({**LINES}, AS_LINES, MaxPayloadInMB=1, BatchStrategy="MultiRecord")["a.out"]
    assert [part.count(b"\n") for part in several.split(b">")[1:]] == [2, 2, 1], "3 lines are more than 1 MB"
    batch.put(a="1\n2")
    assert batch.run(LINES, AS_LINES, name="k", BatchStrategy="SingleRecord")["a.out"] == b">1\n>2\n"
    assert batch.run(name="l")["a.out"] == b">1\n2"


def test_streamed_and_compressed(batch: Batch) -> None:
    """MaxPayloadInMB 0 sends a file of any size in chunks; Gzip is unpacked."""
    large = b"0123456789abcdef" * (500_000)
    batch.put(a=gzip.compress(large))
    assert batch.run({"CompressionType": "Gzip"}, MaxPayloadInMB=0) == {"a.out": large}
    batch.create({"CompressionType": "Gzip"}, name="k")
    assert "larger than MaxPayloadInMB, 6 MB" in batch.end("k")["FailureReason"]
    batch.put(a=gzip.compress(large)[:-50])
    for name, most_mb in (("split", 100), ("streamed", 0)):
        batch.create({"CompressionType": "Gzip"}, name=name, MaxPayloadInMB=most_mb)
        reason = batch.end(name)["FailureReason"]
        assert reason.startswith("ClientError: "), reason
        assert "in/a: it cannot be read: Compressed file ended" in reason


def test_a_manifest(batch: Batch) -> None:
    """Its files, under their names in it."""
    batch.put(a="1", b="2", sub_c="3")
    manifest = json.dumps([{"prefix": f"s3://{BUCKET}/in/"}, "b", "sub/c"])
    batch.s3.put_object(Bucket=BUCKET, Key="m.json", Body=manifest)
    source = ("ManifestFile", f"s3://{BUCKET}/m.json")
    assert batch.run(source=source) == {"b.out": b"2", "sub/c.out": b"3"}


@pytest.mark.parametrize(
    ("processing", "record", "result"),
    [
        ({"InputFilter": "$[1:]"}, 'a,"b,c",d', b'"b,c",d'),
        ({"InputFilter": "$[1:]", "JoinSource": "Input"}, "7,1,2", b"7,1,2,1,2"),
        ({"InputFilter": "$[1:]", "JoinSource": "Input", "OutputFilter": "$[0,-1]"}, "7,1,2", b"7,2"),
        ({"OutputFilter": "$[0,2:]"}, "7,1,2,3", b"7,2,3"),
        ({"OutputFilter": "$[1:1]"}, "7,1", b""),
        ({"InputFilter": "$[1]"}, f"{'x' * 200_000},1", b"1"),
    ],
)
def test_joins_of_csv(shared_batch: Batch, processing: dict[str, str], record: str, result: bytes) -> None:
    """Columns have numbers; each line is joined with its own."""
    shared_batch.put(a=f"{record}\n" * 3)
    kinds = ({**LINES, "ContentType": "text/csv"}, {**AS_LINES, "Accept": "text/csv"})
    found = shared_batch.run(*kinds, name=next(NAMES), DataProcessing=processing)
    assert found["a.out"] == (result + b"\n") * 3


@pytest.mark.parametrize(
    ("processing", "result"),
    [
        ({"InputFilter": "$.x"}, b"[1,2]"),
        ({"InputFilter": "$.x", "JoinSource": "Input"}, b'{"id":7,"x":[1,2],"SageMakerOutput":[1,2]}'),
        (
            {"InputFilter": "$.x", "JoinSource": "Input", "OutputFilter": "$['id','SageMakerOutput']"},
            b'{"id":7,"SageMakerOutput":[1,2]}',
        ),
        ({"OutputFilter": "$.x[*]"}, b"[1,2]"),
    ],
)
def test_joins_of_json(shared_batch: Batch, processing: dict[str, str], result: bytes) -> None:
    """An answer stands in SageMakerOutput; a path gives what Java's library gives."""
    shared_batch.put(a='{"id": 7, "x": [1, 2]}\n' * 3)
    kinds = (
        {**LINES, "ContentType": "application/jsonlines"},
        {**AS_LINES, "Accept": "application/jsonlines"},
    )
    found = shared_batch.run(*kinds, name=next(NAMES), DataProcessing=processing)
    assert found["a.out"] == (result + b"\n") * 3


@pytest.mark.parametrize("document", ["[1]", '"\\ud800"'])
def test_a_whole_document_is_joined(shared_batch: Batch, document: str) -> None:
    """One that is no object stands in SageMakerInput. Half of a character stays an escape: UTF-8 cannot hold it."""
    shared_batch.put(a=document)
    kinds = ({"ContentType": "application/json"}, {"Accept": "application/json"})
    found = shared_batch.run(*kinds, name=next(NAMES), DataProcessing={"JoinSource": "Input"})
    assert found["a.out"].decode() == f'{{"SageMakerInput":{document},"SageMakerOutput":{document}}}'


def test_a_file_that_fails_leaves_the_others(batch: Batch) -> None:
    """No partial output of it; the reason names it, and the log has the container's words."""
    batch.put(a="1\n2\n", b="1\nstatus 400\n3\n", c="5\n")
    batch.create(LINES, AS_LINES, BatchStrategy="SingleRecord")
    found = batch.end()
    assert found["TransformJobStatus"] == "Failed"
    assert found["FailureReason"].startswith(
        "ClientError: See job logs for more information. Not transformed: 1 of 3"
    )
    assert "s3://data/in/b: 400 from the container: it went wrong" in found["FailureReason"]
    assert batch.results() == {"a.out": b"1\n2\n", "c.out": b"5\n"}
    logs = batch.backend.client("logs")
    events = logs.filter_log_events(logGroupName=GROUP, logStreamNamePrefix="j/", filterPattern="data")[
        "events"
    ]
    assert any("data/in/b: ClientError: 400" in event["message"] for event in events)


def test_errors_of_the_container_are_asked_again(batch: Batch) -> None:
    """As often as InvocationsMaxRetries says, and a slow answer counts as one."""
    batch.put(a="status 500")
    begun = time.monotonic()
    batch.create(ModelClientConfig={"InvocationsMaxRetries": 2})
    assert batch.end()["FailureReason"].startswith("AlgorithmError: ")
    assert time.monotonic() - begun >= 2 * 0.2, "it was asked three times"
    batch.put(a="sleep 5")
    batch.create(name="k", ModelClientConfig={"InvocationsMaxRetries": 0, "InvocationsTimeoutInSeconds": 1})
    assert "no answer within 1 s" in batch.end("k")["FailureReason"]


def test_an_answer_that_is_too_large(batch: Batch) -> None:
    """It fails its file, not the server."""
    batch.put(a=f"large {101 << 20}")
    batch.create()
    assert "in/a: an answer is larger than 100 MB" in batch.end()["FailureReason"]


def test_a_manifest_of_this_machine(batch: Batch, tmp_path: Path) -> None:
    """Its files have no object; they are transformed all the same."""
    (tmp_path / "a").write_text("1")
    manifest = json.dumps([{"prefix": f"file://{tmp_path}/"}, "a"])
    batch.s3.put_object(Bucket=BUCKET, Key="m.json", Body=manifest)
    assert batch.run(source=("ManifestFile", f"s3://{BUCKET}/m.json")) == {"a.out": b"1"}


def test_a_container_whose_wishes_are_rubbish(batch: Batch) -> None:
    """It is asked as if it had said nothing."""
    batch.put(a="1")
    for number, wanted in enumerate(("no json", "[3]", "nested")):
        batch.deployed.sagemaker.delete_model(ModelName="m")
        batch.deployed.model("m", PARAMETERS=wanted)
        assert batch.run(name=f"j{number}") == {"a.out": b"1"}


def test_a_container_cannot_wish_for_more_than_a_request(batch: Batch) -> None:
    """All that is asked at once is 100 MB at most, and 100 requests."""
    batch.deployed.sagemaker.delete_model(ModelName="m")
    batch.deployed.model("m", PARAMETERS=json.dumps({"MaxConcurrentTransforms": 100, "MaxPayloadInMB": 50}))
    batch.put(a="1")
    assert batch.run() == {"a.out": b"1"}
    events = batch.backend.client("logs").filter_log_events(logGroupName=GROUP)["events"]
    assert any("MaxConcurrentTransforms=2, MaxPayloadInMB=50" in event["message"] for event in events)


def test_a_key_that_gets_too_long_fails_its_file(batch: Batch) -> None:
    """The others come through, and the job ends."""
    deep = "d" * 1000
    batch.put(a="1", **{"k" * 20: "2"})
    batch.create(None, {"S3OutputPath": f"s3://{BUCKET}/out/{deep}"})
    reason = batch.end()["FailureReason"]
    assert "Not transformed: 1 of 2" in reason and "Your key is too long" in reason
    assert batch.results() == {f"{deep}/a.out": b"1"}


def test_two_files_with_one_place_for_their_results(batch: Batch) -> None:
    """A prefix can name a file and a folder of that name: neither result is lost to the other, the job says so."""
    batch.put(a="1", a_a="2")
    batch.create(source=("S3Prefix", f"s3://{BUCKET}/in/a"))
    reason = batch.end()["FailureReason"]
    assert reason.startswith(f"ClientError: the results of s3://{BUCKET}/in/a and s3://{BUCKET}/in/a/a ")
    assert f"s3://{BUCKET}/out/a.out" in reason and "with a slash" in reason
    assert batch.results() == {}
    assert batch.run(name="k", source=("S3Prefix", f"s3://{BUCKET}/in/a/")) == {"a.out": b"2"}


def test_reasons_of_jobs_that_cannot_begin(batch: Batch) -> None:
    """Each says what to do, and no container is left."""
    batch.s3.put_object(Bucket=BUCKET, Key="folder/")  # as consoles make them
    batch.create(name="folder", source=("S3Prefix", f"s3://{BUCKET}/folder/"))
    assert "No S3 objects found" in batch.end("folder")["FailureReason"]
    batch.create(name="bucket", source=("ManifestFile", f"s3://{BUCKET}"))
    assert f"no manifest s3://{BUCKET} (NoSuchKey)" in batch.end("bucket")["FailureReason"]
    batch.put(a="1")
    batch.create(name="nothing", source=("S3Prefix", f"s3://{BUCKET}/none/"))
    assert "No S3 objects found" in batch.end("nothing")["FailureReason"]
    batch.create(None, {"S3OutputPath": "s3://no-such-bucket/x"}, name="nowhere")
    assert "S3OutputPath does not exist" in batch.end("nowhere")["FailureReason"]
    batch.deployed.sagemaker.delete_model(ModelName="m")
    batch.deployed.model("m", FAIL="3")
    batch.create(name="broken")
    found = batch.end("broken")
    assert "exit code 3" in found["FailureReason"]
    assert "model_fn: no such file" in found["FailureReason"]
    assert "TransformStartTime" not in found
    wait_for(lambda: not batch.backend.runner.jobs())


@pytest.mark.parametrize(
    ("given", "members", "words"),
    [
        ({"SplitType": "TFRecord"}, {}, "SplitType TFRecord is not supported here. Use Line"),
        ({}, {"MaxPayloadInMB": 101}, "at most 100"),
        ({}, {"MaxPayloadInMB": 30, "MaxConcurrentTransforms": 4}, "at most 100 MB"),
        ({}, {"MaxPayloadInMB": 0, "MaxConcurrentTransforms": 101}, "at most 100 requests"),
        ({"ContentType": "text/csv\rX: y"}, {}, "printable ASCII"),
        (LINES, {"MaxPayloadInMB": 0}, "MaxPayloadInMB 0 streams whole files"),
        ({}, {"DataProcessing": {"InputFilter": "$.x"}}, "ContentType and TransformOutput.Accept"),
        ({}, {"DataProcessing": {"InputFilter": "x"}}, "must begin with"),
        ({}, {"DataProcessing": {"InputFilter": "$[0:2,5:]"}}, "is not supported"),
        ({}, {"DataProcessing": {"InputFilter": "$..x"}}, "is not supported"),
        ({}, {"DataCaptureConfig": {"DestinationS3Uri": "s3://b/c"}}, "DataCaptureConfig"),
        ({}, {"source": ("AugmentedManifestFile", "s3://b/c")}, "AugmentedManifestFile is not supported"),
        ({}, {"count": 33}, "33 instances"),
    ],
)
def test_what_is_refused(
    shared_batch: Batch, given: dict[str, Any], members: dict[str, Any], words: str
) -> None:
    """By name, with what to do."""
    with pytest.raises(ClientError, match=words):
        shared_batch.create(given, **members)


def test_words_of_aws(batch: Batch) -> None:
    """A name that is taken, jobs and models that are not there, and one that has ended."""
    batch.put(a="1")
    batch.run()
    with pytest.raises(ClientError, match=r"\(ResourceInUse\).*Job name must be unique"):
        batch.create()
    for call in (batch.sagemaker.describe_transform_job, batch.sagemaker.stop_transform_job):
        with pytest.raises(ClientError, match="Could not find transform job"):
            call(TransformJobName="x")
    with pytest.raises(ClientError, match=r"\(ValidationException\).*in status Completed"):
        batch.sagemaker.stop_transform_job(TransformJobName="j")
    batch.deployed.sagemaker.delete_model(ModelName="m")
    with pytest.raises(ClientError, match="Could not find model"):
        batch.create(name="k")


@pytest.mark.parametrize("is_kept", [True, False], ids=["the input stays", "the input is gone"])
def test_a_job_that_is_stopped_leaves_nothing(batch: Batch, is_kept: bool) -> None:
    """No output, as on AWS; what was there before and is not its own stays."""
    batch.put(a="1", b="sleep 60")
    batch.s3.put_object(Bucket=BUCKET, Key="out/other.out", Body=b"x")
    batch.create()
    wait_for(lambda: "a.out" in batch.results())
    if not is_kept:
        batch.s3.delete_object(Bucket=BUCKET, Key="in/a")
    batch.sagemaker.stop_transform_job(TransformJobName="j")
    assert batch.sagemaker.describe_transform_job(TransformJobName="j")["TransformJobStatus"] in (
        "Stopping",
        "Stopped",
    )
    assert batch.end()["TransformJobStatus"] == "Stopped"
    assert batch.results() == {"other.out": b"x"}
    wait_for(lambda: not batch.backend.runner.jobs())


def test_a_file_that_ends_containers_fails_alone(batch: Batch) -> None:
    """It is begun again as often as requests are; then the others go on in the next container."""
    batch.put(a="1", b="sleep 60", c="3")
    batch.create(ModelClientConfig={"InvocationsMaxRetries": 1})
    for done in ({"a.out"}, {"a.out", "c.out"}):
        (slot,) = wait_for(batch.backend.runner.jobs)
        wait_for(lambda done=done: batch.results().keys() == done)
        asked = batch.backend.runner.container(slot).asked
        wait_for(lambda asked=asked: b"sleep 60" in asked)
        batch.backend.runner.container(slot).finish(137)
        batch.backend.runner.container(slot).killed.set()
        wait_for(lambda gone=slot: gone not in batch.backend.runner.jobs())
    found = batch.end()
    assert "Not transformed: 1 of 3" in found["FailureReason"]
    assert "in/b: the container has ended 2 times" in found["FailureReason"]
    assert set(batch.results()) == {"a.out", "c.out"}


def test_a_container_that_is_away_for_a_moment(batch: Batch) -> None:
    """It counts once against the file that it was asked, however many threads are idle."""
    batch.deployed.sagemaker.delete_model(ModelName="m")
    batch.deployed.model("m", DOWN="1")
    batch.put(a="1")
    again = {"InvocationsMaxRetries": 1}
    assert batch.run(MaxConcurrentTransforms=4, ModelClientConfig=again) == {"a.out": b"1"}


def test_thousands_of_records_through_kills(tmp_path: Path) -> None:
    """40 files on two instances; containers are killed, another server takes over: each record once, in order."""
    files = {f"f{n:02}": [f"{n},{line}" for line in range(50)] for n in range(40)}
    with serving(tmp_path / "home") as first:
        batch = Batch(first)
        batch.deployed.model("m", PAUSE="0.01")
        batch.put(**{name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()})
        # Output below its own input: what is stored already is no input of the next server.
        output = {**AS_LINES, "S3OutputPath": f"s3://{BUCKET}/in/out"}
        members: dict[str, Any] = {"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 2}
        batch.create(LINES, output, count=2, **members)
        for _ in range(2):
            slot = min(
                wait_for(lambda: {i for i in first.runner.jobs() if first.runner.container(i).address})
            )
            time.sleep(0.3)
            first.runner.container(slot).finish(137)
            first.runner.container(slot).killed.set()
            wait_for(lambda gone=slot: gone not in first.runner.jobs())
        wait_for(lambda: batch.s3.list_objects_v2(Bucket=BUCKET, Prefix="in/out/").get("Contents"))
        first.application.transforms.shutdown()
    with serving(tmp_path / "home") as second:
        again = Batch(second)
        left = len(again.s3.list_objects_v2(Bucket=BUCKET, Prefix="in/out/").get("Contents", ()))
        assert 0 < left < len(files), "it was in the middle"
        assert again.end()["TransformJobStatus"] == "Completed"
        pages = again.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="in/out/")
        keys = [found["Key"] for page in pages for found in page["Contents"]]
        assert keys == [f"in/out/{name}.out" for name in files]
        for name, lines in files.items():
            stored = again.s3.get_object(Bucket=BUCKET, Key=f"in/out/{name}.out")["Body"].read().decode()
            assert stored.splitlines() == lines, name


def test_tags_that_come_as_a_job_ends(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither takes the other's place in the record: the job has ended, and has its tags."""
    store, ending, tagged = batch.backend.application.store, threading.Event(), threading.Event()
    update = store.update_resource

    def slowly(resource: Resource) -> None:
        if resource.kind == "transform-job" and resource.status == "Completed" and not ending.is_set():
            ending.set()
            tagged.wait(1)
        update(resource)

    monkeypatch.setattr(store, "update_resource", slowly)
    batch.put(a="hello")
    arn = batch.create()
    assert ending.wait(60)
    batch.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "k", "Value": "v"}])
    tagged.set()
    assert batch.end()["TransformJobStatus"] == "Completed"
    wait_for(lambda: not batch.backend.runner.jobs())
    assert batch.sagemaker.describe_transform_job(TransformJobName="j")["TransformJobStatus"] == "Completed"
    assert batch.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "k", "Value": "v"}]
