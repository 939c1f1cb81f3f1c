"""A transform job through kill -9 of the server, its container and the engine: each record once, in order."""

from __future__ import annotations

import random
import time

import pytest

from tests.faults.engine import can_run
from tests.faults.serving import BUCKET, MODEL, ServingStage
from tests.faults.stage import KINDS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not can_run(), reason="a second Docker engine needs root, dockerd and unshare"),
]
SEED = 11
FILES, RECORDS = 100, 50
_PATIENCE_S = 900.0
_POLL_S = 0.5  # a file takes as long


def keys(stage: ServingStage) -> list[str]:
    """Of the output that there is."""
    page = stage.backend.call("s3", "list_objects_v2", Bucket=BUCKET, Prefix="out/")
    return [found["Key"] for found in page.get("Contents", ())]


def status(stage: ServingStage) -> str:
    described = stage.backend.call("sagemaker", "describe_transform_job", TransformJobName="j")
    return f"{described['TransformJobStatus']} {described.get('FailureReason', '')}".strip()


def test_each_record_once_and_in_order() -> None:
    """5,000 records in 100 files; each kind of kill once, in the first half; then nothing is left."""
    lines = {f"f{n:03}": [f"{n},{line}" for line in range(RECORDS)] for n in range(FILES)}
    with ServingStage(random.Random(SEED)) as stage:  # noqa: S311 - reproducible, not secret
        call = stage.backend.call
        for name, records in lines.items():
            body = "".join(f"{record}\n" for record in records)
            call("s3", "put_object", Bucket=BUCKET, Key=f"in/{name}", Body=body.encode())
        source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/in/"}
        call(
            "sagemaker",
            "create_transform_job",
            TransformJobName="j",
            ModelName=MODEL,
            BatchStrategy="SingleRecord",
            MaxConcurrentTransforms=8,
            TransformInput={"DataSource": {"S3DataSource": source}, "SplitType": "Line"},
            TransformOutput={"S3OutputPath": f"s3://{BUCKET}/out", "AssembleWith": "Line"},
            TransformResources={"InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        )
        deadline = time.monotonic() + _PATIENCE_S
        for number, kind in enumerate(KINDS, 1):
            while (done := len(keys(stage))) < number * FILES // 2 // len(KINDS):
                assert time.monotonic() < deadline, (
                    kind,
                    done,
                    status(stage),
                    stage.backend.output()[-4000:],
                )
                time.sleep(_POLL_S)
            assert done < FILES, f"{kind}: it is over already"
            stage.kill(kind)
        while (now := status(stage)) == "InProgress":
            assert time.monotonic() < deadline, stage.backend.output()[-4000:]
            time.sleep(_POLL_S)
        assert now == "Completed", stage.backend.output()[-4000:]
        assert keys(stage) == [f"out/{name}.out" for name in lines]
        for name, records in lines.items():
            stored = call("s3", "get_object", Bucket=BUCKET, Key=f"out/{name}.out")["Body"].read()
            assert stored.decode().splitlines() == records, name
        while stage.remains() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert stage.remains() == []
