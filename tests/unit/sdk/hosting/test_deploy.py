"""Deploying: what is sent, what it says of the bill, and what is left when it fails."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.archive import archive
from tests.unit.sdk.fake_endpoints import FakeEndpoints
from tests.unit.sdk.fake_service import FakeService
from windtunnel import (
    AsyncInferenceConfig,
    BudgetWarning,
    ConfigurationError,
    EndpointFailed,
    EndpointNotFound,
    InputError,
    JSONDeserializer,
    JSONSerializer,
    Model,
    NumpySerializer,
    Predictor,
    PyTorch,
    PyTorchModel,
    ServiceCallFailed,
    SourceError,
    TrainingJob,
    UnknownImage,
    UnsupportedArgument,
    WaitTimeout,
)
from windtunnel.hosting.cost import EndpointCost, endpoint_cost, lifetime_s, running_line
from windtunnel.hosting.endpoint import Endpoint
from windtunnel.priceperf import Price, PriceBook
from windtunnel.session.aws import AwsSession
from windtunnel.session.local import LocalSession
from windtunnel.session.training_service import LogLine

pytestmark = pytest.mark.usefixtures("code")
ROLE = "arn:aws:iam::123456789012:role/serving"
DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


def files_of(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read().decode() for m in tar if m.isreg()}  # type: ignore[union-attr]


@pytest.fixture
def code(project: Path, service: FakeService) -> Path:
    """A directory of code, and a model in S3."""
    (project / "code").mkdir()
    (project / "code" / "inference.py").write_text("def model_fn(folder): ...\n")
    service.objects["models", "job/model.tar.gz"] = archive(("model.pth", b"weights"))
    return project / "code"


def model(session: Any, **more: Any) -> PyTorchModel:
    given = {"entry_point": "inference.py", "source_dir": "code", "framework_version": "1.12.0", **more}
    return PyTorchModel("s3://models/job/model.tar.gz", ROLE, session=session, **given)


def test_what_is_sent(aws: AwsSession, service: FakeService, endpoints: FakeEndpoints) -> None:
    """As SDK v2: the archive with ``code/``, a model, a configuration with one variant, an endpoint."""
    tags = {"team": "a"}
    predictor = model(aws, name="m", env={"A": "1"}, model_server_workers=2, model_kms_key="k").deploy(
        1, "ml.c5.xlarge", JSONSerializer(), JSONDeserializer(), endpoint_name="e", tags=tags, volume_size=30
    )
    assert endpoints.calls == ["CreateModel", "CreateEndpointConfig", "CreateEndpoint"]
    sent_tags = [{"Key": "team", "Value": "a"}]
    assert endpoints.models["m"] == {
        "ModelName": "m",
        "ExecutionRoleArn": ROLE,
        "PrimaryContainer": {
            "Image": f"{DLC}/pytorch-inference:1.12.0-cpu-py38",
            "ModelDataUrl": "s3://bkt/m/model.tar.gz",
            "Environment": {
                "A": "1",
                "SAGEMAKER_PROGRAM": "inference.py",
                "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
                "SAGEMAKER_CONTAINER_LOG_LEVEL": "20",
                "SAGEMAKER_REGION": "us-east-1",
                "SAGEMAKER_MODEL_SERVER_WORKERS": "2",
            },
        },
        "Tags": sent_tags,
    }
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": "m",
        "InitialInstanceCount": 1,
        "InstanceType": "ml.c5.xlarge",
        "InitialVariantWeight": 1,
        "VolumeSizeInGB": 30,
    }
    assert endpoints.configs["e"] == {
        "EndpointConfigName": "e",
        "ProductionVariants": [variant],
        "Tags": sent_tags,
    }
    assert endpoints.endpoints["e"] == {"EndpointName": "e", "EndpointConfigName": "e", "Tags": sent_tags}
    stored = service.objects["bkt", "m/model.tar.gz"]
    assert files_of(stored) == {
        "model.pth": "weights",
        "code/inference.py": "def model_fn(folder): ...\n",
    }
    assert service.encrypted["bkt", "m/model.tar.gz"] == "k"
    assert predictor.predict({"inputs": "good"}) == {"label": 1}


def test_what_is_asked(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """Types of question and answer from the serializers; what is given by the call goes along, or instead."""
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    predictor = Predictor("e", local, JSONSerializer(), JSONDeserializer())
    predictor.predict({"a": 1})
    predictor.predict(
        [2], {"Accept": "text/csv"}, target_variant="blue", inference_id="i", custom_attributes="trace=1"
    )
    first = {"EndpointName": "e", "ContentType": "application/json", "Accept": "application/json"}
    assert endpoints.asked[0] == {**first, "Body": '{"a": 1}'}
    more = {"TargetVariant": "blue", "InferenceId": "i", "CustomAttributes": "trace=1"}
    assert endpoints.asked[1] == {**first, "Accept": "text/csv", **more, "Body": "[2]"}
    with pytest.raises(EndpointNotFound, match="windtunnel endpoints"):
        Predictor("other", local).predict(b"")


def interrupted(_: str) -> dict[str, Any]:
    """Ctrl-C in the middle of a call."""
    raise KeyboardInterrupt


def test_who_waits_no_longer(
    local: LocalSession, endpoints: FakeEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a timeout, or Ctrl-C, the endpoint goes on, and it is said how to end it."""
    endpoints.script = ("Creating",)
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e", wait=False)
    with pytest.raises(WaitTimeout, match=r"still Creating after 0 s .* rm --endpoint e"):
        Endpoint("e", local).wait(timeout=0)
    monkeypatch.setattr(endpoints, "describe", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"goes on, and is billed .* rm --endpoint e"):
        Endpoint("e", local).wait()


def test_the_commands_that_end_an_endpoint_on_aws_ask_there(
    aws: AwsSession, endpoints: FakeEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --aws they would ask this machine, find none, and the endpoint would be billed on."""
    endpoints.script = ("Creating",)
    with pytest.warns(BudgetWarning, match="windtunnel rm --endpoint e --aws"):
        model(aws).deploy(1, "ml.c5.xlarge", endpoint_name="e", wait=False, max_hours=1)
    with pytest.raises(WaitTimeout, match="windtunnel rm --endpoint e --aws"):
        Endpoint("e", aws).wait(timeout=0)
    endpoints.script = ("Failed",)
    with pytest.raises(EndpointFailed, match="windtunnel rm --endpoint e --aws"):
        Endpoint("e", aws).wait()
    monkeypatch.setattr(endpoints, "describe", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"endpoints --aws` .* rm --endpoint e --aws`"):
        Endpoint("e", aws).wait()


def test_names_and_serializers_by_default(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """Named after the image, or the model; .npy as SDK v2 has it. Two endpoints of a model need one model."""
    it = model(local)
    predictor = it.deploy(1, "ml.c5.xlarge")
    assert predictor.endpoint_name.startswith("pytorch-inference-2")
    assert isinstance(predictor.serializer, NumpySerializer)
    it.deploy(1, "ml.c5.xlarge", endpoint_name="second")
    assert list(endpoints.endpoints) == [predictor.endpoint_name, "second"]
    assert len(endpoints.models) == 1


def test_it_waits_until_it_serves_and_says_so(
    local: LocalSession, endpoints: FakeEndpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """It returns at the first look that finds it InService; with wait=False before any."""
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    assert endpoints.looks["e"] == 2
    assert re.search(r"Creating\nInService after \d+\.\d s\n", capsys.readouterr().out)
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="f", wait=False)
    assert "f" not in endpoints.looks


def test_one_that_does_not_come_up(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """The reason, the log's last lines, where it all is, and what to do."""
    endpoints.script, endpoints.failure = (
        ("Creating", "Failed"),
        "The primary container did not pass the ping check.",
    )
    endpoints.printed["e"] = {"AllTraffic/i-1": [f"line {n}" for n in range(30)]}
    with pytest.raises(EndpointFailed) as failed:
        model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    error = failed.value
    assert error.reason.startswith("The primary container")
    assert error.log_tail == tuple(f"line {n}" for n in range(10, 30))
    assert "Endpoint e failed: The primary container" in str(error) and "windtunnel rm --endpoint e" in str(
        error
    )
    endpoints.printed_at_ms -= 60_000
    with pytest.raises(EndpointFailed) as again:
        Endpoint("e", local).wait()
    assert again.value.log_tail == (), "what an earlier endpoint of this name printed"


def test_a_name_that_is_taken_leaves_nothing_behind(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """What this call made is deleted; a model that was there before stays."""
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    before = set(endpoints.models)
    with pytest.raises(ServiceCallFailed, match="already existing endpointconfig"):
        model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    assert set(endpoints.models) == before
    assert list(endpoints.configs) == ["e"]
    with pytest.raises(ServiceCallFailed):
        model(local, name=next(iter(before))).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    assert set(endpoints.models) == before


def test_an_existing_model_is_used_and_named(local: LocalSession, capsys: pytest.CaptureFixture[str]) -> None:
    """As SDK v2; but said, for it may be another."""
    model(local, name="m").create("ml.c5.xlarge")
    assert capsys.readouterr().out == ""
    model(local, name="m").deploy(1, "ml.c5.xlarge")
    assert "Model m exists already and is used as it is" in capsys.readouterr().out


def test_a_model_without_a_script_goes_as_it_is(
    local: LocalSession, service: FakeService, endpoints: FakeEndpoints, project: Path
) -> None:
    """In S3 nothing is fetched or stored; a file of this machine is stored as it is."""
    before = set(service.objects)
    Model("mine:1", "s3://models/job/model.tar.gz", name="a", session=local).create()
    assert set(service.objects) == before
    container = endpoints.models["a"]["PrimaryContainer"]
    assert container == {"Image": "mine:1", "ModelDataUrl": "s3://models/job/model.tar.gz", "Environment": {}}
    (project / "m.tar.gz").write_bytes(b"whatever")
    Model("mine:1", "m.tar.gz", name="b", session=local).create()
    place = ("windtunnel-us-east-1-000000000000", "b/model.tar.gz")
    assert service.objects[place] == b"whatever"
    assert endpoints.models["b"]["PrimaryContainer"]["ModelDataUrl"] == "s3://{}/{}".format(*place)
    # A bucket that is on AWS and not here, as an estimator may name one.
    Model("mine:1", "m.tar.gz", name="c", code_location="s3://theirs/p", session=local).create()
    assert ("theirs", "p/c/model.tar.gz") in service.objects
    AsyncInferenceConfig("s3://answers/p", failure_path="s3://reasons/p").request(local, "e")
    assert {"answers", "reasons"} <= service.buckets


def test_a_hostile_or_missing_archive_stores_nothing(
    local: LocalSession, service: FakeService, endpoints: FakeEndpoints
) -> None:
    """Refused before anything is sent."""
    service.objects["models", "job/model.tar.gz"] = archive(("/../evil", b"x"))
    before = set(service.objects)
    with pytest.raises(SourceError, match="evil"):
        model(local).deploy(1, "ml.c5.xlarge")
    del service.objects["models", "job/model.tar.gz"]
    with pytest.raises(InputError, match="does not exist"):
        model(local).deploy(1, "ml.c5.xlarge")
    assert set(service.objects) < before and endpoints.calls == []


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, ConfigurationError, "instance_type=None is no SageMaker instance type"),
        ({"instance_type": "c5"}, ConfigurationError, "no SageMaker instance type"),
        (
            {"instance_type": "ml.c5.xlarge", "initial_instance_count": 0},
            ConfigurationError,
            "from 1 is needed",
        ),
        (
            {"instance_type": "ml.c5.xlarge", "endpoint_name": "a_b"},
            ConfigurationError,
            "endpoint_name='a_b'",
        ),
        (
            {"instance_type": "ml.c5.xlarge", "container_startup_health_check_timeout": 5},
            ConfigurationError,
            "60 to 3600 s",
        ),
        ({"instance_type": "ml.c5.xlarge", "data_capture_config": object()}, UnsupportedArgument, "boto3"),
        ({"instance_type": "ml.c5.xlarge", "endpoint": "e"}, TypeError, "Did you mean 'endpoint_name'"),
        ({"instance_type": "ml.c7g.xlarge"}, UnknownImage, "Graviton"),
    ],
)
def test_wrong_arguments_send_nothing(
    local: LocalSession,
    endpoints: FakeEndpoints,
    arguments: dict[str, Any],
    error: type[Exception],
    said: str,
) -> None:
    """Each names the argument and what is valid."""
    with pytest.raises(error, match=said):
        model(local).deploy(**arguments)
    assert endpoints.calls == []


def test_wrong_code_is_refused_at_once(code: Path, local: LocalSession) -> None:
    """When the model is made, before anything runs."""
    (code / "sub").mkdir()
    (code / "sub" / "inference.py").touch()
    with pytest.raises(SourceError, match="at the root of source_dir"):
        model(local, entry_point="sub/inference.py")
    with pytest.raises(SourceError, match="entry_point is missing"):
        model(local, entry_point=None)
    with pytest.raises(ConfigurationError, match="framework_version= is missing"):
        model(local, framework_version=None)
    with pytest.raises(SourceError, match=r"there is no file .*missing\.py"):
        model(local, entry_point="missing.py")


PRICE = Price(
    "ml.c5.xlarge", 0.25, "us-east-1", "SageMaker hosting on-demand", date(2026, 1, 2),
    "fetched", "a test", date(2026, 1, 3),
)  # fmt: skip


def test_the_bill_is_said() -> None:
    """By hour and day, of all instances, with the price's date; a price of training is none of an endpoint."""
    book = PriceBook().adding([PRICE])
    cost = endpoint_cost([("ml.c5.xlarge", 2)], "us-east-1", book)
    assert (cost.usd_per_hour, cost.usd_per_day) == (0.5, 12.0)
    said = running_line("e", [("ml.c5.xlarge", 2)], cost, local=False)
    assert said == (
        "Endpoint e, 2 x ml.c5.xlarge: $0.50 an hour, $12.00 a day while it runs (fetched price of 2026-01-03, "
        "us-east-1); delete_endpoint() ends it."
    )
    here = running_line("e", [("ml.c5.xlarge", 2)], cost, local=True)
    assert "here it costs nothing; on AWS $0.50 an hour" in here
    unknown = endpoint_cost([("ml.c5.xlarge", 1), ("ml.trn1.32xlarge", 1)], "us-east-1", book)
    assert unknown.usd_per_hour is None
    assert "refresh --hosting --instances ml.trn1.32xlarge" in unknown.words()
    assert PriceBook().price("ml.trn1.32xlarge").usd_per_hour == 24.725


def trained(session: Any, **more: Any) -> TrainingJob:
    """A job that has completed, with a model in S3."""
    job = PyTorch(
        "train.py",
        source_dir="src",
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        role=ROLE,
        base_job_name="bert",
        session=session,
        **more,
    ).fit(logs=False)
    assert isinstance(job, TrainingJob)
    bucket, _, key = job.model_data.removeprefix("s3://").partition("/")
    session.service.objects[bucket, key] = archive(("model.pth", b"weights"))
    return job


def test_a_limit_is_kept_here_and_a_warning_on_aws(
    local: LocalSession, aws: AwsSession, endpoints: FakeEndpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """The backend is told by a tag; AWS has no limit, and nothing is sent that looks like one."""
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="here", max_hours=1.5, tags={"a": "b"})
    assert endpoints.endpoints["here"]["Tags"][-1] == {"Key": "windtunnel:max-seconds", "Value": "5400"}
    assert "It is deleted 1.50 h after its creation" in capsys.readouterr().out
    with pytest.warns(BudgetWarning, match="AWS has no limit that ends an endpoint"):
        model(aws, name="other").deploy(1, "ml.c5.xlarge", endpoint_name="there", max_hours=1.5)
    assert "Tags" not in endpoints.endpoints["there"]


def test_the_stricter_limit_counts() -> None:
    """Dollars become seconds at the price of all instances; without a price they cannot."""
    cost = EndpointCost(0.4, "of some day")
    assert lifetime_s(cost, 1.0, None) == 9000
    assert lifetime_s(cost, 1.0, 2) == 7200
    assert lifetime_s(cost, None, None) is None
    for max_cost, max_hours, known in ((0, None, 0.4), (None, -1, 0.4), (1e-9, None, 0.4), (1.0, None, None)):
        with pytest.raises(ConfigurationError, match=r"max_cost|max_hours"):
            lifetime_s(EndpointCost(known, "unknown"), max_cost, max_hours)


def test_a_job_is_deployed(
    aws: AwsSession, endpoints: FakeEndpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named after it, with its role; AWS's newest image that is not newer than its PyTorch, which is said."""
    job = trained(aws)
    predictor = job.deploy(
        1, "ml.c5.xlarge", entry_point="inference.py", source_dir="code", serializer=JSONSerializer()
    )
    assert predictor.endpoint_name.startswith("bert-2")
    (made,) = endpoints.models.values()
    assert made["ExecutionRoleArn"] == ROLE
    assert made["PrimaryContainer"]["Image"] == f"{DLC}/pytorch-inference:2.6.0-cpu-py312"
    said = capsys.readouterr().out
    assert "no inference image of PyTorch 2.9.0 for ml.c5.xlarge: that of 2.6.0 serves it" in said
    job.deploy(1, "ml.inf2.xlarge", entry_point="inference.py", source_dir="code")
    assert (
        "pytorch-inference-neuronx:2.9.0-" in list(endpoints.models.values())[1]["PrimaryContainer"]["Image"]
    )


def test_a_jobs_own_code_serves_where_none_is_named(
    aws: AwsSession, service: FakeService, endpoints: FakeEndpoints
) -> None:
    """As SDK v2's estimator.deploy(): the script that trained, from the archive in S3."""
    job = trained(aws)
    job.deploy(1, "ml.c5.xlarge", endpoint_name="e")
    (made,) = endpoints.models.values()
    assert made["PrimaryContainer"]["Environment"]["SAGEMAKER_PROGRAM"] == "train.py"
    bucket, _, key = made["PrimaryContainer"]["ModelDataUrl"].removeprefix("s3://").partition("/")
    assert files_of(service.objects[bucket, key]) == {"code/train.py": "print(1)\n", "model.pth": "weights"}
    # boto3's users write the two bare, which AWS's toolkit takes as well.
    values = service.requests[job.name]["HyperParameters"]
    values.update({name: json.loads(value) for name, value in values.items() if value.startswith('"')})
    job.deploy(1, "ml.c5.xlarge", endpoint_name="bare")
    made = list(endpoints.models.values())[1]
    assert made["PrimaryContainer"]["Environment"]["SAGEMAKER_PROGRAM"] == "train.py"


def test_an_estimator_deploys_its_latest_job(aws: AwsSession, endpoints: FakeEndpoints) -> None:
    """Nothing before fit()."""
    estimator = PyTorch(
        "src/train.py",
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        role=ROLE,
        session=aws,
    )
    with pytest.raises(ConfigurationError, match="no training job yet"):
        estimator.deploy(1, "ml.c5.xlarge")
    job = estimator.fit(logs=False)
    bucket, _, key = job.model_data.removeprefix("s3://").partition("/")
    aws.service.objects[bucket, key] = archive(("model.pth", b"w"))  # type: ignore[attr-defined]
    predictor = estimator.deploy(
        1, "ml.c5.xlarge", entry_point="code/inference.py", model_name="m", endpoint_name="e"
    )
    assert (predictor.endpoint_name, list(endpoints.models)) == ("e", ["m"])


def test_deleting(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """Endpoint, configuration and model, in either order of SDK v2's two calls, from any process."""
    for name, steps in (
        ("a", ("delete_model", "delete_endpoint")),
        ("b", ("delete_endpoint", "delete_model")),
    ):
        model(local).deploy(1, "ml.c5.xlarge", endpoint_name=name)
        predictor = Predictor(name, local)
        for step in steps:
            getattr(predictor, step)()
        assert (endpoints.models, endpoints.configs, endpoints.endpoints) == ({}, {}, {})
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="c")
    Predictor("c", local).delete_endpoint(delete_endpoint_config=False)
    assert (list(endpoints.configs), endpoints.endpoints) == (["c"], {})


def test_an_endpoint_without_its_configuration_can_be_deleted(
    local: LocalSession, endpoints: FakeEndpoints
) -> None:
    """Its bill must have an end, whatever was deleted before."""
    model(local).deploy(1, "ml.c5.xlarge", endpoint_name="e")
    endpoints.configs.clear()
    Endpoint("e", local).delete(models=True)
    assert endpoints.endpoints == {}


def test_the_log_of_several_containers(local: LocalSession, endpoints: FakeEndpoints) -> None:
    """Each line once, with its stream; of one container without."""
    endpoints.printed["e"] = {"AllTraffic/i-1": ["a", "b", "c"]}
    assert list(Endpoint("e", local).logs()) == ["a", "b", "c"]
    endpoints.printed["e"]["AllTraffic/i-2"] = ["d"]
    assert list(Endpoint("e", local).logs(last=2)) == ["[AllTraffic/i-1] c", "[AllTraffic/i-2] d"]
    assert len(list(Endpoint("e", local).logs(follow=True, poll=0))) == 4


def test_an_empty_page_of_an_endpoints_log_leads_on(local: LocalSession) -> None:
    """As CloudWatch gives one where nothing was printed for a while, at the beginning too."""

    class Sparse(FakeEndpoints):
        def read_log(
            self, endpoint: str, stream: str, token: str | None
        ) -> tuple[Sequence[LogLine], str | None]:
            return ((), "0") if token is None else super().read_log(endpoint, stream, token)

    local.endpoints = sparse = Sparse()
    sparse.printed["e"] = {"AllTraffic/i-1": ["a", "b", "c"]}
    assert list(Endpoint("e", local).logs()) == ["a", "b", "c"]
