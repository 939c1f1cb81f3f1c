"""Estimators: what is checked before anything starts, and what fit() does."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.conftest import BotoSession
from tests.unit.sdk.fake_service import FakeService
from windtunnel import (
    AwsSession,
    ConfigurationError,
    Estimator,
    FileSystemInput,
    HuggingFace,
    InstanceGroup,
    LocalSession,
    PyTorch,
    ServiceCallFailed,
    SourceError,
    TrainingInput,
    UnknownImage,
    UnsupportedArgument,
)
from windtunnel.request.build import decoded_hyperparameter, job_name_from_base

TORCH: dict[str, Any] = {"torch_distributed": {"enabled": True}}
PLACE: dict[str, Any] = {"instance_count": 1, "instance_type": "ml.trn1.2xlarge"}


def pytorch(session: Any, **more: Any) -> PyTorch:
    given = {"framework_version": "2.9", "source_dir": "src", "distribution": TORCH, **PLACE, **more}
    return PyTorch(given.pop("entry_point", "train.py"), session=session, **given)


pytestmark = pytest.mark.usefixtures("project")


@pytest.mark.parametrize("argument", ["git_config", "rules", "compiler_config", "training_recipe"])
def test_arguments_without_a_meaning_here(local: LocalSession, argument: str) -> None:
    """They are refused with a reason, not dropped."""
    with pytest.raises(UnsupportedArgument, match=f"{argument}= is not supported: .+"):
        pytorch(local, **{argument: ["x"]})


@pytest.mark.parametrize(
    "argument",
    [
        {"training_plan": "arn:aws:sagemaker:us-east-1:1:training-plan/p"},
        {"enable_remote_debug": True},
        {"enable_infra_check": True},
    ],
)
def test_arguments_of_aws_alone(local: LocalSession, aws: AwsSession, argument: dict[str, Any]) -> None:
    """Locally they would be dropped, so they are refused; on AWS they are sent."""
    with pytest.raises(UnsupportedArgument, match="on the local backend"):
        pytorch(local, **argument)
    pytorch(aws, role="arn:aws:iam::1:role/r", **argument).request()


def test_unknown_argument(local: LocalSession) -> None:
    """A typo is a TypeError with the close name."""
    with pytest.raises(TypeError, match=r"no argument 'instance_tipe'. Did you mean 'instance_type'"):
        pytorch(local, instance_tipe="x")
    with pytest.raises(TypeError, match=r"no argument 'hyperparamters'. Did you mean 'hyperparameters'"):
        pytorch(local, hyperparamters={})


def test_shell_entry_points(local: LocalSession) -> None:
    """A .sh entry point runs without torch_distributed, and only so."""
    Path("src/run.sh").write_text("true")
    with pytest.raises(ConfigurationError, match=r"torchrun starts .py scripts only"):
        pytorch(local, entry_point="run.sh")
    request = pytorch(local, entry_point="run.sh", distribution=None).request()
    assert request.parameters["HyperParameters"]["sagemaker_program"] == '"run.sh"'


def test_missing_entry_point_is_said_first(local: LocalSession, service: FakeService) -> None:
    """fit() names the path and the close match; nothing was uploaded."""
    with pytest.raises(SourceError, match=r"no file .*/src/trian.py. Did you mean 'train.py'"):
        pytorch(local, entry_point="trian.py").fit()
    assert (service.requests, service.objects) == ({}, {})


@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        ({"prompt": "x" * 3000}, r"'prompt': 3002 characters after encoding, at most 2500"),
        ({"k" * 257: 1}, "its name has 257 characters, at most 256"),
        ({f"k{i}": i for i in range(100)}, r"107 \(7 of them set by the SDK\), at most 100"),
    ],
)
def test_hyperparameter_limits(local: LocalSession, hyperparameters: dict[str, Any], message: str) -> None:
    """AWS's limits, said with the key and the length."""
    with pytest.raises(ConfigurationError, match=message):
        pytorch(local, hyperparameters=hyperparameters).request()


@pytest.mark.parametrize("name", ["-a", "a-", "a_b", "a" * 64, ""])
def test_job_names(local: LocalSession, name: str) -> None:
    """AWS's pattern; an empty name means a generated one."""
    if name:
        with pytest.raises(ConfigurationError, match="up to 63 letters, digits and hyphens"):
            pytorch(local).request(job_name=name)
    else:
        assert pytorch(local).request(job_name=name).name.startswith("pytorch-training-neuronx-20")


def test_generated_names() -> None:
    """base-YYYY-MM-DD-HH-MM-SS-mmm in UTC, never longer than 63."""
    assert job_name_from_base("base", lambda: 1_700_000_000.1239) == "base-2023-11-14-22-13-20-123"
    assert len(job_name_from_base("x" * 80, lambda: 0.0)) == 63


def test_local_cores_travel_in_the_environment(local: LocalSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the argument, else from the variable; the user's environment stays."""
    estimator = pytorch(local, local_cores=2, environment={"A": "1"})
    monkeypatch.setenv("WINDTUNNEL_LOCAL_CORES", "1")
    assert estimator.request().parameters["Environment"] == {"A": "1", "WINDTUNNEL_LOCAL_CORES": "2"}
    assert estimator.environment == {"A": "1"}
    assert pytorch(local).request().parameters["Environment"] == {"WINDTUNNEL_LOCAL_CORES": "1"}
    monkeypatch.setenv("WINDTUNNEL_LOCAL_CORES", "many")
    with pytest.raises(ConfigurationError, match="WINDTUNNEL_LOCAL_CORES='many'"):
        pytorch(local).request()
    for cores in (0, 3, True):
        with pytest.raises(ConfigurationError, match=f"local_cores={cores}: a whole number from 1 to 2"):
            pytorch(local, local_cores=cores).request()
    assert pytorch(local, local_cores=8, instance_type="ml.trn1.32xlarge").request()


def test_local_cores_never_reach_aws(aws: AwsSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """On AWS the argument is refused and the variable ignored."""
    role = "arn:aws:iam::1:role/r"
    monkeypatch.setenv("WINDTUNNEL_LOCAL_CORES", "8")
    assert "Environment" not in pytorch(aws, role=role).request().parameters
    with pytest.raises(UnsupportedArgument, match="rehearsals"):
        pytorch(aws, role=role, local_cores=2).request()


@pytest.mark.parametrize("place", ["source/pipe", "data/below/pipe"])
def test_dry_run_finds_what_fit_would_stumble_over(
    local: LocalSession, service: FakeService, place: str
) -> None:
    """A pipe among the code or the data: to open it would wait for ever."""
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path("source").mkdir(exist_ok=True)
    Path("source/train.py").touch()
    os.mkfifo(place)
    estimator = pytorch(local, source_dir="source")
    for try_it in (lambda: estimator.fit("data", dry_run=True), lambda: estimator.fit("data")):
        with pytest.raises(ConfigurationError, match=f"{place} is a socket, pipe or device"):
            try_it()
    assert (service.requests, service.objects) == ({}, {})


def test_dry_run_starts_nothing(local: LocalSession, service: FakeService) -> None:
    """fit(dry_run=True) returns the request with its uploads, readable, and changes nothing."""
    request = pytorch(local).fit("data", job_name="j", dry_run=True)
    assert (service.requests, service.objects, local.home.exists()) == ({}, {}, False)
    shown = repr(request)
    assert "upload: source code of train.py -> s3://windtunnel-us-east-1-000000000000/j/source" in shown
    assert json.loads(shown.partition("\nupload:")[0]) == request.to_dict()


def test_request_is_a_copy(local: LocalSession) -> None:
    """Changing what to_dict returns does not change the request."""
    request = pytorch(local).request()
    request.to_dict()["HyperParameters"]["x"] = "1"
    assert "x" not in request.parameters["HyperParameters"]


def test_fit_uploads_then_creates(local: LocalSession, service: FakeService) -> None:
    """The tarball is stored, encrypted, in the default bucket, which is made; then the job exists."""
    estimator = pytorch(local, role="MyRole")
    job = estimator.fit("data", job_name="j", wait=False)
    key = ("windtunnel-us-east-1-000000000000", "j/source/sourcedir.tar.gz")
    assert service.objects[key][:2] == b"\x1f\x8b"
    assert service.encrypted[key] is None
    assert service.requests["j"]["RoleArn"] == "arn:aws:iam::000000000000:role/MyRole"
    assert (estimator.latest_training_job, estimator.jobs) == (job, [job])


def test_a_name_that_is_taken_replaces_nothing(
    local: LocalSession, service: FakeService, project: Path
) -> None:
    """The code of the job that has the name stays: it may still wait for its turn, or be deployed later."""
    pytorch(local).fit(job_name="j", wait=False)
    before = dict(service.objects)
    (project / "src" / "train.py").write_text("print(2)\n")
    with pytest.raises(ServiceCallFailed, match=r"\(ResourceInUse\).*nothing was uploaded.*job_name="):
        pytorch(local).fit(job_name="j")
    assert service.objects == before


def test_fit_returns_the_finished_job(local: LocalSession, capsys: pytest.CaptureFixture[str]) -> None:
    """With wait the log is shown and the finished job returned."""
    job = pytorch(local).fit(job_name="j")
    assert "three" in capsys.readouterr().out
    assert job.status() == "Completed"


def test_image_only_jobs_still_get_their_bucket(local: LocalSession, service: FakeService) -> None:
    """A job without code of its own stores its output in the default bucket, so that is made too."""
    Estimator("img:1", session=local, **PLACE).fit(wait=False, job_name="j")
    assert service.buckets == {"windtunnel-us-east-1-000000000000"}


def test_local_channels_are_uploaded_on_aws(aws: AwsSession, service: FakeService) -> None:
    """Here a path is read in place; on AWS it is uploaded first and named by its s3:// URI."""
    pytorch(aws, role="r").fit({"train": "data", "one": "data/train.csv"}, wait=False, job_name="j")
    sources = {
        channel["ChannelName"]: channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in service.requests["j"]["InputDataConfig"]
    }
    assert sources == {"train": "s3://bkt/j/input/train/", "one": "s3://bkt/j/input/one/"}
    assert service.objects["bkt", "j/input/train/train.csv"] == b"a,b\n"
    assert service.objects["bkt", "j/input/one/train.csv"] == b"a,b\n"
    assert service.requests["j"]["RoleArn"] == "arn:aws:iam::123456789012:role/r"


def test_local_channels_stay_where_they_are(local: LocalSession) -> None:
    """The local backend gets the absolute path as file:// URI and no upload of data."""
    request = pytorch(local).request("data")
    uri = request.parameters["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]
    assert uri == f"file://{Path.cwd()}/data"
    assert len(request.uploads) == 1


def test_source_dir_in_s3(local: LocalSession) -> None:
    """A tarball that is in S3 already is used as it is."""
    request = pytorch(local, source_dir="s3://b/sourcedir.tar.gz").request()
    assert request.uploads == ()
    assert request.parameters["HyperParameters"]["sagemaker_submit_directory"] == '"s3://b/sourcedir.tar.gz"'
    with pytest.raises(SourceError, match="Put them into it"):
        pytorch(local, source_dir="s3://b/sourcedir.tar.gz", dependencies=["data"]).request()


def test_what_cannot_be_rehearsed(local: LocalSession) -> None:
    """Pipe mode and file systems of AWS are refused here, not ignored."""
    with pytest.raises(UnsupportedArgument, match="Pipe"):
        pytorch(local, input_mode="Pipe")
    with pytest.raises(UnsupportedArgument, match=r"channel 'training': input_mode='Pipe'.*Use 'FastFile'"):
        pytorch(local).request(TrainingInput("s3://b/x", input_mode="Pipe"))
    with pytest.raises(UnsupportedArgument, match="FileSystemInput"):
        pytorch(local).request(FileSystemInput("fs", "EFS", "/"))


def test_colliding_channels(local: LocalSession) -> None:
    """The channels the SDK adds never replace the user's."""
    with pytest.raises(ConfigurationError, match="'code' carries the code"):
        pytorch(local, enable_network_isolation=True).request({"code": "data"})
    with pytest.raises(ConfigurationError, match="'model' is model_uri's"):
        pytorch(local, model_uri="s3://m/x").request({"model": "data"})
    with pytest.raises(ConfigurationError, match="21 channels, at most 20"):
        pytorch(local).request({f"c{i}": "data" for i in range(21)})


def test_sessions(local: LocalSession, aws: AwsSession) -> None:
    """Both argument names; one at a time; AWS only when it is named, never by an old notebook's session."""
    assert PyTorch("src/train.py", "2.9", sagemaker_session=local, **PLACE).session is local
    boto = BotoSession()
    assert isinstance(pytorch(boto).session, AwsSession)
    with pytest.raises(ConfigurationError, match="same argument"):
        pytorch(local, sagemaker_session=aws)
    with pytest.raises(ConfigurationError, match="that run is billed"):
        PyTorch("src/train.py", "2.9", sagemaker_session=boto, **PLACE)
    assert pytorch(None).session.local


def test_role_is_required_on_aws(aws: AwsSession) -> None:
    """Locally a role is filled in; AWS needs one."""
    with pytest.raises(ConfigurationError, match="role= is required on AWS"):
        pytorch(aws).request()


def test_images(local: LocalSession) -> None:
    """Versions find AWS's image; unknown ones list the known."""
    found = pytorch(local, framework_version="2.8.0", py_version="py311").training_image_uri()
    assert found.endswith("/pytorch-training-neuronx:2.8.0-neuronx-py311-sdk2.26.1-ubuntu22.04")
    face = HuggingFace("py310", "src/train.py", "4.51.0", pytorch_version="2.7.0", session=local, **PLACE)
    assert "2.7.0-transformers4.51.0-neuronx-py310-sdk2.24.1" in face.training_image_uri()
    assert face.request().parameters["AlgorithmSpecification"]["EnableSageMakerMetricsTimeSeries"] is True
    with pytest.raises(UnknownImage, match=r"Known: 4\.28\.1 with 1\.13\.0"):
        HuggingFace("py310", "src/train.py", "4.0", pytorch_version="2.7.0", session=local, **PLACE)
    rehearse = 'write instance_type="ml.trn1.32xlarge".* its report models p4d.* check SCRIPT --diff'
    with pytest.raises(UnknownImage, match=rehearse):
        pytorch(local, instance_type="ml.p4d.24xlarge")
    other = BotoSession()
    other.region_name = "eu-north-1"
    with pytest.raises(UnknownImage, match="no Neuron training images in region 'eu-north-1'"):
        pytorch(AwsSession(other, service=FakeService()))


def test_hyperparameters_can_be_changed(local: LocalSession) -> None:
    """set_hyperparameters adds; hyperparameters() shows them encoded."""
    estimator = pytorch(local, hyperparameters={"a": 1})
    estimator.set_hyperparameters(b="x")
    assert estimator.hyperparameters()["b"] == '"x"'
    assert estimator.hyperparameters()["sagemaker_torch_distributed_enabled"] == "true"


def test_attach_rebuilds_the_estimator(local: LocalSession) -> None:
    """attach() brings back arguments, code, distribution and the user's hyperparameters."""
    first = pytorch(local, hyperparameters={"lr": 0.1}, tags={"k": "v"}, environment={"A": "1"})
    first.fit(job_name="base-2026-01-31-12-00-00-123", wait=False)
    again = PyTorch.attach("base-2026-01-31-12-00-00-123", local)
    assert isinstance(again, PyTorch)
    assert again.hyperparameters() == first.hyperparameters()
    assert (again.entry_point, again.base_job_name) == ("train.py", "base")
    assert (again.tags, again.environment) == ([{"Key": "k", "Value": "v"}], {"A": "1"})
    request = again.request(job_name="next").to_dict()
    assert request["HyperParameters"]["sagemaker_program"] == '"train.py"'
    assert again.model_data.endswith("/output/model.tar.gz")


def test_attach_to_a_plain_image(local: LocalSession) -> None:
    """The same for an Estimator, whose hyperparameters are text."""
    Estimator("img:1", session=local, hyperparameters={"a": 1}, **PLACE).fit(job_name="j", wait=False)
    again = Estimator.attach("j", local)
    assert (again.training_image_uri(), again.hyperparameters()) == ("img:1", {"a": "1"})
    assert decoded_hyperparameter("[" * 2400) == "[" * 2400, "nested deeper than can be read: text"


def test_attach_to_a_job_that_boto3_made(local: LocalSession, service: FakeService) -> None:
    """Its hyperparameters are bare, which AWS's toolkit takes as text, and it leaves out what has a default."""
    request = pytorch(local).request(job_name="j").to_dict()
    request["HyperParameters"] = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": "s3://b/code.tar.gz",
        "optimizer": "adam",
        "lr": "0.1",
    }
    del request["ResourceConfig"]["VolumeSizeInGB"]
    service.create_job(request)
    again = PyTorch.attach("j", local)
    assert (again.entry_point, again.source_dir) == ("train.py", "s3://b/code.tar.gz")
    assert again.hyperparameters() == {"optimizer": '"adam"', "lr": "0.1"}


def test_attach_to_a_job_on_instance_groups(local: LocalSession) -> None:
    """Groups, distribution and output come back as they were given."""
    head, workers = (
        InstanceGroup("head", "ml.trn1.2xlarge", 1),
        InstanceGroup("workers", "ml.trn1.2xlarge", 2),
    )
    first = pytorch(
        local,
        instance_type=None,
        instance_count=None,
        instance_groups=[head, workers],
        distribution={**TORCH, "instance_groups": [workers]},
        disable_output_compression=True,
    )
    first.fit(job_name="j", wait=False)
    again = PyTorch.attach("j", local)
    assert again.instance_groups == [head, workers]
    assert again.hyperparameters() == first.hyperparameters()
    assert again.disable_output_compression
    assert again.request(job_name="next").to_dict()["ResourceConfig"] == {
        "InstanceGroups": [
            {"InstanceGroupName": "head", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1},
            {"InstanceGroupName": "workers", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 2},
        ],
        "VolumeSizeInGB": 30,
    }


GROUP = InstanceGroup("g", "ml.trn1.2xlarge", 1)
OTHER = InstanceGroup("h", "ml.trn1.32xlarge", 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"instance_groups": [GROUP], "instance_count": 1}, "each group has its own. Leave these out"),
        ({"instance_groups": []}, "0 given, from 1 to 5"),
        ({"instance_groups": [GROUP] * 6}, "6 given, from 1 to 5"),
        ({"instance_groups": [GROUP, GROUP]}, "the names g, g must differ"),
        ({"instance_groups": ["g"]}, r"'g' is no group. Give InstanceGroup"),
        ({"instance_groups": [InstanceGroup("g", "ml.trn1.3xlarge", 1)]}, "does not exist. Trainium"),
        ({"instance_groups": [InstanceGroup("g", "ml.trn1.2xlarge", 0)]}, "instance_count of 'g'=0"),
        ({"instance_groups": [GROUP, OTHER], "distribution": TORCH}, "name the one in which torchrun"),
        (
            {"instance_groups": [GROUP], "distribution": {**TORCH, "instance_groups": [OTHER]}},
            r"\['h'\]: groups out of instance_groups= \(g\)",
        ),
        (
            {"instance_groups": [GROUP], "distribution": {"instance_groups": [GROUP]}},
            "together with torch_distributed",
        ),
        ({"instance_groups": [GROUP, OTHER], "distribution": None, "local_cores": 3}, "from 1 to 2"),
    ],
)
def test_wrong_instance_groups(local: LocalSession, wrong: dict[str, Any], message: str) -> None:
    """Said before anything is sent."""
    with pytest.raises(ConfigurationError, match=message):
        pytorch(local, **{"instance_type": None, "instance_count": None, **wrong}).request()


def test_model_data_before_fit(local: LocalSession) -> None:
    """There is none, and the message says what to do."""
    with pytest.raises(ConfigurationError, match="Call fit"):
        _ = pytorch(local).model_data


def test_signatures_follow_v2() -> None:
    """Positions of SDK v2 (2.257.7); the shared arguments are all shown."""
    order = list(inspect.signature(PyTorch).parameters)
    assert order[:7] == [
        "entry_point",
        "framework_version",
        "py_version",
        "source_dir",
        "hyperparameters",
        "image_uri",
        "distribution",
    ]
    assert list(inspect.signature(HuggingFace).parameters)[:5] == [
        "py_version",
        "entry_point",
        "transformers_version",
        "tensorflow_version",
        "pytorch_version",
    ]
    estimator = inspect.signature(Estimator).parameters
    assert list(estimator)[:4] == ["image_uri", "role", "instance_count", "instance_type"]
    assert {"max_retry_attempts", "local_cores", "session"} <= set(estimator)
    assert len(order) == len(set(order))
