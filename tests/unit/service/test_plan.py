"""A job as containers: data, compared as data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire import IMAGE
from tests.unit.service.samples import LOCAL_IMAGE, channel, config, job, request
from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.ground.containers import ContainerPlan, Forward, JobPlan, Mount
from windtunnel_local.service.request.plan import config_files, log_preface, plan_job

HOME = Path("/home/me/.windtunnel")
SUBMIT = "s3://code/job/source/sourcedir.tar.gz"


def test_one_host() -> None:
    """Everything that a runner is told of a job."""
    accepted = request(
        Environment={"WINDTUNNEL_LOCAL_CORES": "1", "WINDTUNNEL_COUNTERS_DIR": "/evil", "AWS_REGION": "eu"},
        HyperParameters={"sagemaker_submit_directory": json.dumps(SUBMIT)},
    )
    arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"
    folder = HOME / "jobs/job/hosts/algo-1"
    data = Mount("/data", "/opt/ml/input/data/train", read_only=True)
    assert plan_job(job(HOME, accepted), config(HOME), {"algo-1": (data,)}) == JobPlan(
        job="job",
        containers=(
            ContainerPlan(
                job="job",
                host="algo-1",
                image=LOCAL_IMAGE,
                command=("train",),
                environment={
                    "AWS_REGION": "eu",
                    "AWS_DEFAULT_REGION": "us-east-1",
                    "AWS_EC2_METADATA_DISABLED": "true",
                    "HOME": "/opt/windtunnel/home",
                    "USER": "root",
                    "LOGNAME": "root",
                    "PYTHONUNBUFFERED": "1",
                    "TRAINING_JOB_NAME": "job",
                    "TRAINING_JOB_ARN": arn,
                    "WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.2xlarge",
                    "WINDTUNNEL_COUNTERS_DIR": "/opt/windtunnel/counters",
                    "WINDTUNNEL_TENSORBOARD_DIR": "/opt/ml/output/tensorboard",
                    "WINDTUNNEL_FRAMEWORK_VERSION": "2.9",
                    "WINDTUNNEL_LOCAL_CORES": "1",
                },
                mounts=(
                    Mount(f"{folder}/ml", "/opt/ml"),
                    Mount(f"{folder}/counters", "/opt/windtunnel/counters"),
                    Mount(f"{folder}/home", "/opt/windtunnel/home"),
                    Mount(
                        str(HOME / "jobs/job/source/sourcedir.tar.gz"),
                        "/opt/windtunnel/source/sourcedir.tar.gz",
                        read_only=True,
                    ),
                    data,
                ),
                user="1000:1000",
                network=None,
                memory_bytes=32 * GIB,
                shm_bytes=16 * GIB,
                labels={
                    "windtunnel.job": "job",
                    "windtunnel.host": "algo-1",
                    "windtunnel.home": str(HOME),
                },
            ),
        ),
    )


def test_several_hosts_share_a_network_of_their_own() -> None:
    """Equal job names of two homes never meet in one network."""
    two = job(HOME, request(hosts=2))
    first, second = plan_job(two, config(HOME)).containers
    assert (first.host, second.host) == ("algo-1", "algo-2")
    assert first.network == second.network
    elsewhere = plan_job(two, config(Path("/other"))).containers[0]
    assert first.network is not None
    assert first.network != elsewhere.network


def test_isolation_cap_entry_point_and_foreign_image() -> None:
    """What changes the plan's other fields."""
    accepted = request(
        EnableNetworkIsolation=True,
        CheckpointConfig={"S3Uri": "s3://b/c", "LocalPath": "/checkpoints/"},
        AlgorithmSpecification={
            "TrainingImage": "mine:1",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["/bin/bash"],
            "ContainerArguments": ["-c", "echo hi"],
        },
    )
    limited = replace(config(HOME), memory_cap_bytes=4 * GIB)
    (plan,) = plan_job(job(HOME, accepted), limited).containers
    assert (plan.network, plan.isolated) == ("none", True)
    assert (plan.memory_bytes, plan.image) == (4 * GIB, "mine:1")
    assert (plan.entrypoint, plan.command) == (("/bin/bash",), ("-c", "echo hi"))
    assert plan.mounts[-1] == Mount(str(HOME / "jobs/job/hosts/algo-1/ml/checkpoints"), "/checkpoints")
    assert "WINDTUNNEL_FRAMEWORK_VERSION" not in plan.environment
    assert (
        plan.environment["WINDTUNNEL_STRICT_REQUIREMENTS"] == "1"
    )  # pip reaches nothing on SageMaker either


@pytest.mark.parametrize(
    ("default", "said", "isolated", "reaches"),
    [
        (False, None, False, False),
        (False, "1", False, True),
        (True, None, False, True),
        (True, "0", False, False),
        (True, None, True, False),
    ],
)
def test_code_reaches_the_backend_only_where_that_was_asked_for(
    default: bool, said: str | None, isolated: bool, reaches: bool
) -> None:
    """By the backend's setting or the job's own variable; never with network isolation."""
    accepted = request(
        Environment={} if said is None else {"WINDTUNNEL_AWS_IN_JOBS": said}, EnableNetworkIsolation=isolated
    )
    api = Forward(20000, "/home/me/.windtunnel/api/socket")
    (plan,) = plan_job(job(HOME, accepted), replace(config(HOME), api=api, aws_in_jobs=default)).containers
    assert plan.forward == (api if reaches else None)
    for name in ("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL"):
        assert plan.environment.get(name) == ("http://127.0.0.1:20000" if reaches else None)
    assert plan.environment.get("AWS_ALLOW_HTTP") == ("true" if reaches else None)


def test_a_cap_above_the_instance_changes_nothing() -> None:
    """A script that needs more memory than the instance has must fail here too."""
    generous = replace(config(HOME), memory_cap_bytes=64 * GIB)
    assert plan_job(job(HOME), generous).containers[0].memory_bytes == 32 * GIB


def groups(*counted: tuple[str, str, int]) -> dict[str, Any]:
    """A ResourceConfig with instance groups."""
    listed = [
        {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": count}
        for name, kind, count in counted
    ]
    return {"VolumeSizeInGB": 30, "InstanceGroups": listed}


def test_instance_groups() -> None:
    """Hosts are numbered through the groups; each has its group's instance, memory and channels."""
    only_workers = channel("train", "s3://b/t", InputMode="FastFile")
    only_workers["DataSource"]["S3DataSource"]["InstanceGroupNames"] = ["workers"]
    accepted = request(
        ResourceConfig=groups(("head", "ml.trn1.2xlarge", 1), ("workers", "ml.trn1.32xlarge", 2)),
        InputDataConfig=[only_workers, channel("val", "s3://b/v")],
    )
    mixed = job(HOME, accepted)
    assert mixed.hosts == ("algo-1", "algo-2", "algo-3")
    plans = plan_job(mixed, config(HOME)).containers
    assert [p.memory_bytes for p in plans] == [32 * GIB, 512 * GIB, 512 * GIB]
    kinds = [p.environment["WINDTUNNEL_INSTANCE_TYPE"] for p in plans]
    assert kinds == ["ml.trn1.2xlarge", "ml.trn1.32xlarge", "ml.trn1.32xlarge"]
    described = config_files(mixed, "algo-3")["resourceconfig.json"]
    assert described == {
        "current_host": "algo-3",
        "current_instance_type": "ml.trn1.32xlarge",
        "current_group_name": "workers",
        "hosts": ["algo-1", "algo-2", "algo-3"],
        "instance_groups": [
            {"instance_group_name": "head", "instance_type": "ml.trn1.2xlarge", "hosts": ["algo-1"]},
            {
                "instance_group_name": "workers",
                "instance_type": "ml.trn1.32xlarge",
                "hosts": ["algo-2", "algo-3"],
            },
        ],
        "network_interface_name": "eth0",
    }
    channels = {host: config_files(mixed, host)["inputdataconfig.json"] for host in mixed.hosts}
    assert [sorted(described) for described in channels.values()] == [["val"], *[["train", "val"]] * 2]
    assert channels["algo-2"]["train"]["TrainingInputMode"] == "FastFile"


def test_isolated_hosts_keep_their_own_network_and_nothing_else() -> None:
    """As on SageMaker, which allows calls between the peers of a training cluster."""
    plans = plan_job(job(HOME, request(hosts=2, EnableNetworkIsolation=True)), config(HOME)).containers
    assert [plan.isolated for plan in plans] == [True, True]
    assert plans[0].network == plans[1].network not in {None, "none"}


def test_the_log_says_that_a_vpc_has_no_effect() -> None:
    """Training code of a company names one: it runs here as it is."""
    within = job(HOME, request(VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}))
    (line,) = log_preface(within, "algo-1", config(HOME))
    assert "VpcConfig has no effect here" in line.text
    assert plan_job(within, config(HOME)).containers[0].isolated is False


@pytest.mark.parametrize("part", ["OutputDataConfig", "ResourceConfig"])
def test_the_log_says_that_keys_have_no_effect(part: str) -> None:
    """Nothing is encrypted; who reads the log learns it."""
    member = {"OutputDataConfig": "KmsKeyId", "ResourceConfig": "VolumeKmsKeyId"}[part]
    for key, is_said in (("alias/mine", True), ("", False)):
        given = {**request(), part: {**request()[part], member: key}}
        lines = [line.text for line in log_preface(job(HOME, given), "algo-1", config(HOME))]
        assert [f"{part}.{member}: without effect" in line for line in lines] == [True] * is_said


def test_the_log_says_which_image_runs() -> None:
    """Named, run and their versions, at the head of the first host's log; nothing for an image of one's own."""
    said = replace(config(HOME), image_contents="PyTorch 2.9.0, torch_xla 2.9.0")
    accepted = job(HOME, request(hosts=2))
    lines = [line.text for line in log_preface(accepted, "algo-1", said)]
    assert IMAGE in lines[0]
    assert f"{LOCAL_IMAGE} runs in its place: PyTorch 2.9.0, torch_xla 2.9.0." in lines[1]
    assert lines[2].endswith("for PyTorch 2.9 find.")
    assert log_preface(accepted, "algo-2", said) == ()
    assert log_preface(accepted, "algo-1", config(HOME)) == ()
    own = request(AlgorithmSpecification={"TrainingImage": "mine:1", "TrainingInputMode": "File"})
    assert log_preface(job(HOME, own), "algo-1", said) == ()


def test_config_files() -> None:
    """/opt/ml/input/config as SageMaker writes it; the code's address is the container's path."""
    accepted = request(
        hosts=2,
        HyperParameters={"epochs": "3", "sagemaker_submit_directory": json.dumps(SUBMIT)},
        InputDataConfig=[channel("train", "s3://b/t", ContentType="text/csv")],
    )
    assert config_files(job(HOME, accepted), "algo-2") == {
        "hyperparameters.json": {
            "epochs": "3",
            "sagemaker_submit_directory": '"/opt/windtunnel/source/sourcedir.tar.gz"',
        },
        "resourceconfig.json": {
            "current_host": "algo-2",
            "current_instance_type": "ml.trn1.2xlarge",
            "current_group_name": "homogeneousCluster",
            "hosts": ["algo-1", "algo-2"],
            "instance_groups": [
                {
                    "instance_group_name": "homogeneousCluster",
                    "instance_type": "ml.trn1.2xlarge",
                    "hosts": ["algo-1", "algo-2"],
                }
            ],
            "network_interface_name": "eth0",
        },
        "inputdataconfig.json": {
            "train": {
                "TrainingInputMode": "File",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": "None",
                "ContentType": "text/csv",
            }
        },
    }


def test_code_that_is_in_the_image_stays_where_it_is() -> None:
    """A path of the container is no address to fetch from."""
    accepted = request(HyperParameters={"sagemaker_submit_directory": '"/opt/ml/code"'})
    files = config_files(job(HOME, accepted), "algo-1")
    assert files["hyperparameters.json"] == {"sagemaker_submit_directory": '"/opt/ml/code"'}
    targets = [mount.target for mount in plan_job(job(HOME, accepted), config(HOME)).containers[0].mounts]
    assert "/opt/windtunnel/source/sourcedir.tar.gz" not in targets


def test_what_a_backend_sets_for_its_jobs_a_job_may_set_otherwise() -> None:
    """Not set: AWS's way."""
    switched_on = replace(config(HOME), strict_requirements=True, forward_sigterm=True)
    for variable in ("WINDTUNNEL_STRICT_REQUIREMENTS", "WINDTUNNEL_FORWARD_SIGTERM"):
        otherwise = request(Environment={variable: "0"})
        (plain,) = plan_job(job(HOME, request()), config(HOME)).containers
        (switched,) = plan_job(job(HOME, request()), switched_on).containers
        (own,) = plan_job(job(HOME, otherwise), switched_on).containers
        assert variable not in plain.environment
        assert (switched.environment[variable], own.environment[variable]) == ("1", "0")


def test_a_hyperparameter_that_is_nested_too_deep_is_text() -> None:
    """As what is no JSON is; also where it names the code."""
    deep = "[" * 2400
    accepted = job(HOME, request(HyperParameters={"sagemaker_submit_directory": deep, "x": deep}))
    assert config_files(accepted, "algo-1")["hyperparameters.json"]["x"] == deep
