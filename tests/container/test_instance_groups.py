"""Instance groups as AWS's own toolkit reads them from the files that the backend writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
READ = """
import json
from sagemaker_training.environment import Environment
print("SAY " + json.dumps({name: value for name, value in Environment().to_env_vars().items()}))
"""


def seen(tmp_path: Path, host: str) -> dict[str, str]:
    """The SM_* variables of a host of a job on two groups, the second of which is distributed."""
    sys.path.insert(0, str(CHECKOUT / "local_backend"))
    try:
        from windtunnel_local.service.ground.job import Job
        from windtunnel_local.service.ground.lifecycle import begin
        from windtunnel_local.service.request.plan import config_files
    finally:
        sys.path.pop(0)
    from datetime import datetime, timezone

    groups = [
        {"InstanceGroupName": "head", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "workers", "InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
    ]
    request = {
        "AlgorithmSpecification": {"TrainingImage": "x", "TrainingInputMode": "File"},
        "ResourceConfig": {"InstanceGroups": groups},
        "HyperParameters": {
            "sagemaker_distribution_instance_groups": '["workers"]',
            "sagemaker_torch_distributed_enabled": "true",
            "sagemaker_program": '"train.py"',
        },
        "InputDataConfig": [
            {
                "ChannelName": "train",
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": "s3://b/t",
                        "InstanceGroupNames": ["workers"],
                    }
                },
            }
        ],
    }
    job = Job("job", "arn", request, begin(datetime.now(timezone.utc)))
    folder = tmp_path / host / "input" / "config"
    folder.mkdir(parents=True)
    for name, content in config_files(job, host).items():
        (folder / name).write_text(json.dumps(content))
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(tmp_path / host)},
        capture_output=True,
        text=True,
        check=True,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("SAY "))
    return dict(json.loads(line.partition("SAY ")[2]))


def test_the_toolkit_sees_the_groups(tmp_path: Path) -> None:
    """SM_* of a host in the distributed group, and of one outside of it, which has no channel."""
    worker, head = seen(tmp_path, "algo-3"), seen(tmp_path, "algo-1")
    assert json.loads(worker["SM_HOSTS"]) == ["algo-1", "algo-2", "algo-3"]
    assert worker["SM_CURRENT_INSTANCE_TYPE"] == "ml.trn1.32xlarge"
    assert worker["SM_CURRENT_INSTANCE_GROUP"] == "workers"
    assert json.loads(worker["SM_CURRENT_INSTANCE_GROUP_HOSTS"]) == ["algo-2", "algo-3"]
    assert json.loads(worker["SM_INSTANCE_GROUPS"]) == ["head", "workers"]
    assert json.loads(worker["SM_DISTRIBUTION_INSTANCE_GROUPS"]) == ["workers"]
    assert worker["SM_IS_HETERO"] == "true"
    assert worker["SM_CHANNEL_TRAIN"].endswith("/input/data/train")
    assert (head["SM_CURRENT_INSTANCE_GROUP"], head["SM_CURRENT_INSTANCE_TYPE"]) == (
        "head",
        "ml.trn1.2xlarge",
    )
    assert "SM_CHANNEL_TRAIN" not in head
