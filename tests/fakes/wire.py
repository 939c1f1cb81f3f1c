"""A request as a client would send it."""

from __future__ import annotations

from typing import Any

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py311-sdk2.27.0"


def create_request(name: str = "job", **members: Any) -> dict[str, Any]:
    """A valid CreateTrainingJob request; ``members`` replace its own, None removes one."""
    base: dict[str, Any] = {
        "TrainingJobName": name,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::000000000000:role/windtunnel",
        "OutputDataConfig": {"S3OutputPath": "s3://out/models"},
        "ResourceConfig": {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": {"epochs": "3"},
    }
    return {member: value for member, value in {**base, **members}.items() if value is not None}
