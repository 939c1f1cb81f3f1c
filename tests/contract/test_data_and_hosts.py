"""What a CreateTrainingJob request asks of data and hosts, with real boto3 and the real object store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import Backend
from tests.fakes.runner import FakeContainer

GROUPS = [
    {"InstanceGroupName": "head", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1},
    {"InstanceGroupName": "workers", "InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
]
IN_CONTAINER = "/opt/ml/input/data/train"


def channel(uri: str, mode: str = "File", **source: Any) -> dict[str, Any]:
    described = {
        "S3DataType": "S3Prefix",
        "S3Uri": uri,
        "S3DataDistributionType": "FullyReplicated",
        **source,
    }
    return {"ChannelName": "train", "DataSource": {"S3DataSource": described}, "InputMode": mode}


@pytest.fixture
def s3(backend: Backend) -> Any:
    client = backend.client("s3")
    for bucket in ("out", "data"):
        client.create_bucket(Bucket=bucket)
    for name in "abc":
        client.put_object(Bucket="data", Key=f"train/{name}", Body=name.encode())
    return client


def test_groups_of_instances_share_out_a_manifest(backend: Backend, s3: Any) -> None:
    """Describe echoes the groups; each host has its own files, memory and log stream."""
    seen: dict[str, tuple[list[str], str, int | None]] = {}

    def look(container: FakeContainer) -> int:
        config = json.loads(container.path("/opt/ml/input/config/resourceconfig.json").read_text())
        files = sorted(
            path.name for path in container.path("/opt/ml/input/data").rglob("*") if path.is_file()
        )
        plan = container.plan
        seen[plan.host] = (files, config["current_group_name"], plan.memory_bytes)
        container.print(plan.host)
        return 0

    backend.runner.script = look
    manifest = [{"prefix": "s3://data/train/"}, "c", "a", "b"]
    s3.put_object(Bucket="data", Key="list.json", Body=json.dumps(manifest).encode())
    resources = {"InstanceGroups": GROUPS, "VolumeSizeInGB": 30}
    source = {"S3DataType": "ManifestFile", "S3DataDistributionType": "ShardedByS3Key"}
    given = channel("s3://data/list.json", InstanceGroupNames=["workers"], **source)
    job = backend.run(ResourceConfig=resources, InputDataConfig=[given])
    assert job["TrainingJobStatus"] == "Completed", job
    assert job["ResourceConfig"] == resources
    (told,) = job["InputDataConfig"]
    assert given.items() <= told.items()
    assert {host: files for host, (files, _, _) in seen.items()} == {
        "algo-1": [],
        "algo-2": ["b", "c"],
        "algo-3": ["a"],
    }
    assert [seen[host][1] for host in sorted(seen)] == ["head", "workers", "workers"]
    assert seen["algo-1"][2] is not None
    streams = backend.client("logs").describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix="job/"
    )["logStreams"]
    assert [stream["logStreamName"].rpartition("-")[0] for stream in streams] == [
        "job/algo-1",
        "job/algo-2",
        "job/algo-3",
    ]


def test_fast_file_outlives_its_objects(backend: Backend, s3: Any) -> None:
    """Real blobs, also of a multipart upload: linked, not copied, and readable when the objects are gone."""
    part = b"x" * (5 << 20)
    upload = s3.create_multipart_upload(Bucket="data", Key="train/large")["UploadId"]
    parts = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(
                Bucket="data", Key="train/large", UploadId=upload, PartNumber=number, Body=part
            )["ETag"],
        }
        for number in (1, 2)
    ]
    s3.complete_multipart_upload(
        Bucket="data", Key="train/large", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    read: dict[str, int] = {}

    def look(container: FakeContainer) -> int:
        mount = next(m for m in container.plan.mounts if m.target == IN_CONTAINER)
        assert mount.read_only
        for name in ("a", "b", "large"):
            s3.delete_object(Bucket="data", Key=f"train/{name}")
        s3.put_object(Bucket="data", Key="train/c", Body=b"replaced")
        folder = Path(mount.source)
        read.update({path.name: len(path.read_bytes()) for path in folder.iterdir()})
        assert (folder / "c").read_bytes() == b"c"
        return 0

    backend.runner.script = look
    job = backend.run(InputDataConfig=[channel("s3://data/train/", "FastFile")])
    assert job["TrainingJobStatus"] == "Completed", job
    assert read == {"a": 1, "b": 1, "c": 1, "large": 10 << 20}


def test_uncompressed_output_is_described(backend: Backend, s3: Any) -> None:
    """S3ModelArtifacts is the prefix below which the files are."""
    output = {"S3OutputPath": "s3://out/models", "CompressionType": "NONE", "KmsKeyId": "key"}
    job = backend.run(OutputDataConfig=output)
    assert job["OutputDataConfig"] == output
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == "s3://out/models/job/output/model/"
    stored = s3.get_object(Bucket="out", Key="models/job/output/model/model.txt")
    assert stored["Body"].read() == b"weights"
    stored["Body"].close()
