"""The request is the one SageMaker SDK v2 sends: `v2_requests.json` was recorded from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windtunnel import (
    AwsSession,
    Estimator,
    InstanceGroup,
    LocalSession,
    PyTorch,
    ShuffleConfig,
    TrainingInput,
)

RECORDED = json.loads((Path(__file__).parent / "v2_requests.json").read_text())
ROLE = "arn:aws:iam::123456789012:role/r"
IMAGE = (
    "123.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
)
TRN1: dict[str, Any] = {"role": ROLE, "instance_count": 1, "instance_type": "ml.trn1.2xlarge"}


pytestmark = pytest.mark.usefixtures("project")


def test_pytorch_by_version(aws: AwsSession) -> None:
    """Image, encoded hyperparameters, torch_distributed, code and two channels."""
    estimator = PyTorch(
        "train.py",
        source_dir="src",
        framework_version="1.11.0",
        py_version="py38",
        distribution={"torch_distributed": {"enabled": True}},
        hyperparameters={"epochs": 3, "lr": 1e-3, "name": "a b", "flag": True, "l": [1, 2]},
        session=aws,
        **TRN1,
    )
    inputs: dict[str, Any] = {
        "train": "s3://b/t",
        "val": TrainingInput("s3://b/v", input_mode="FastFile", content_type="text/csv"),
    }
    assert estimator.request(inputs, "job-1").to_dict() == RECORDED["pytorch"]


def test_pytorch_with_everything(aws: AwsSession) -> None:
    """Isolation, keys, VPC, spot, warm pool, checkpoints, retries, metrics, tags, experiment."""
    estimator = PyTorch(
        "src/train.py",
        image_uri=IMAGE,
        session=aws,
        tags={"a": "b"},
        environment={"X": "1"},
        checkpoint_s3_uri="s3://c/k",
        checkpoint_local_path="/opt/ml/checkpoints",
        use_spot_instances=True,
        max_run=100,
        max_wait=200,
        output_path="s3://out/pre",
        output_kms_key="k",
        volume_kms_key="vk",
        subnets=["s"],
        security_group_ids=["g"],
        enable_network_isolation=True,
        encrypt_inter_container_traffic=True,
        keep_alive_period_in_seconds=60,
        max_retry_attempts=2,
        metric_definitions=[{"Name": "l", "Regex": "(x)"}],
        disable_output_compression=True,
        **TRN1,
    )
    request = estimator.request("s3://b/t", "job-1", {"ExperimentName": "e"})
    assert request.to_dict() == RECORDED["pytorch_everything"]


def test_estimator_with_plain_image(aws: AwsSession) -> None:
    """Hyperparameters as text; the mode of a lone TrainingInput becomes the job's."""
    estimator = Estimator("img:1", session=aws, hyperparameters={"a": 1, "b": True, "c": "x"}, **TRN1)
    inputs = TrainingInput("s3://b/v", input_mode="FastFile")
    assert estimator.request(inputs, "job-1").to_dict() == RECORDED["estimator"]


def test_estimator_with_source_dir(aws: AwsSession) -> None:
    """With source_dir values are encoded; the model is one more channel; code_location is honoured."""
    estimator = Estimator(
        "img:1",
        session=aws,
        entry_point="train.py",
        source_dir="src",
        hyperparameters={"a": 1, "c": "x"},
        model_uri="s3://m/x",
        debugger_hook_config=False,
        output_path="s3://out/pre/",
        code_location="s3://code/loc",
        **TRN1,
    )
    assert estimator.request(None, "job-1").to_dict() == RECORDED["estimator_source_dir"]


def test_estimator_on_gpu_instances(aws: AwsSession) -> None:
    """Off Trainium the profiler is on, unless it is switched off."""
    place: dict[str, Any] = {"role": ROLE, "instance_count": 2, "instance_type": "ml.p4d.24xlarge"}
    scripted = Estimator(
        "img:1",
        session=aws,
        entry_point="src/train.py",
        hyperparameters={"a": 1, "c": "x"},
        disable_profiler=True,
        **place,
    )
    assert scripted.request(None, "job-1").to_dict() == RECORDED["estimator_entry_point_gpu"]
    plain = Estimator("img:1", session=aws, **place)
    assert plain.request(None, "job-1").to_dict() == RECORDED["estimator_gpu"]


HEAD = InstanceGroup("head", "ml.trn1.2xlarge", 1)
WORKERS = InstanceGroup("workers", "ml.trn1.32xlarge", 2)


def test_estimator_with_instance_groups(aws: AwsSession) -> None:
    """Groups, a channel for one of them, shards, a manifest, an own entry point, all three experiment names."""
    estimator = Estimator(
        "img:1",
        role=ROLE,
        session=aws,
        instance_groups=[HEAD, WORKERS],
        input_mode="FastFile",
        container_entry_point=["/bin/sh", "-c"],
        container_arguments=["run"],
        disable_output_compression=True,
        output_kms_key="k",
        enable_network_isolation=True,
        encrypt_inter_container_traffic=True,
        use_spot_instances=True,
        max_run=100,
        max_wait=200,
        max_retry_attempts=3,
        checkpoint_s3_uri="s3://c/k",
        checkpoint_local_path="/ck",
    )
    inputs = {
        "train": TrainingInput(
            "s3://b/t",
            distribution="ShardedByS3Key",
            instance_groups=["workers"],
            s3_data_type="ManifestFile",
            input_mode="File",
            shuffle_config=ShuffleConfig(7),
        ),
        "val": TrainingInput("s3://b/v", compression="Gzip", record_wrapping="RecordIO", content_type="x"),
    }
    experiment = {"ExperimentName": "e", "TrialName": "t", "RunName": "r"}
    assert estimator.request(inputs, "job-1", experiment).to_dict() == RECORDED["estimator_instance_groups"]


def test_pytorch_with_instance_groups(aws: AwsSession) -> None:
    """Without a distribution; and with torchrun in the only group. SDK v2's own objects do as well."""

    class TheirGroup:
        instance_group_name, instance_type, instance_count = "workers", "ml.trn1.32xlarge", 2

    common: dict[str, Any] = {
        "source_dir": "src",
        "role": ROLE,
        "session": aws,
        "image_uri": IMAGE,
        "debugger_hook_config": False,
    }
    plain = PyTorch("train.py", instance_groups=[HEAD, TheirGroup()], **common)
    assert plain.request("s3://b/t", "job-1").to_dict() == RECORDED["pytorch_instance_groups"]
    distributed = PyTorch(
        "train.py",
        instance_groups=[WORKERS],
        distribution={"torch_distributed": {"enabled": True}},
        **common,
    )
    assert distributed.request("s3://b/t", "job-1").to_dict() == RECORDED["pytorch_one_instance_group"]


def test_torchrun_in_one_group_of_several(aws: AwsSession) -> None:
    """SDK v2 refuses it on Trainium, with every form of the argument; the toolkit of the images knows it."""
    estimator = PyTorch(
        "train.py",
        "2.9",
        source_dir="src",
        role=ROLE,
        session=aws,
        instance_groups=[HEAD, WORKERS],
        distribution={"torch_distributed": {"enabled": True}, "instance_groups": [WORKERS]},
    )
    sent = estimator.request("s3://b/t", "job-1").to_dict()["HyperParameters"]
    assert sent["sagemaker_torch_distributed_enabled"] == "true"
    assert sent["sagemaker_distribution_instance_groups"] == '["workers"]'
    assert "sagemaker_instance_type" not in sent


def test_estimator_with_switches(aws: AwsSession) -> None:
    """A warm pool, and what only AWS honours."""
    estimator = Estimator(
        "img:1",
        session=aws,
        keep_alive_period_in_seconds=120,
        enable_remote_debug=True,
        enable_session_tag_chaining=True,
        enable_infra_check=True,
        **TRN1,
    )
    assert estimator.request(None, "job-1").to_dict() == RECORDED["estimator_switches"]


def test_same_request_here_and_on_aws(aws: AwsSession, local: LocalSession) -> None:
    """But for bucket, role and account a local job's request is the one AWS would get."""
    made = [
        PyTorch("train.py", "2.9", source_dir="src", session=session, **{**TRN1, "output_path": "s3://o/"})
        .request({"train": "s3://b/t"}, "job-1")
        .to_dict()
        for session in (aws, local)
    ]
    assert made[0] == made[1]


def test_request_satisfies_botocore(local: LocalSession) -> None:
    """The service model of CreateTrainingJob accepts the request as it is."""
    import botocore.session
    from botocore.validate import ParamValidator

    estimator = PyTorch("train.py", "2.9", source_dir="src", session=local, local_cores=2, **TRN1)
    request = estimator.request({"train": "data"}).to_dict()
    model = botocore.session.get_session().get_service_model("sagemaker")
    report = ParamValidator().validate(request, model.operation_model("CreateTrainingJob").input_shape)
    assert not report.has_errors(), report.generate_report()
