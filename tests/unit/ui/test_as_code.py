"""The page's programs make the request that they are shown for: they are run here."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.wire import IMAGE, create_request
from tests.unit.sdk.conftest import BotoSession
from tests.unit.sdk.fake_service import FakeService
from windtunnel import (
    AwsSession,
    Estimator,
    HuggingFace,
    InstanceGroup,
    PyTorch,
    ShuffleConfig,
    TrainingInput,
)
from windtunnel_local.ui.job.as_code import boto3_text, estimator_text

ROLE = "arn:aws:iam::123456789012:role/r"
HF_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training-neuronx:2.7.0"
CODE: dict[str, Any] = {
    "entry_point": "train.py",
    "source_dir": "s3://code/sourcedir.tar.gz",
    "distribution": {"torch_distributed": {"enabled": True}},
}
PLACE: dict[str, Any] = {"role": ROLE, "instance_count": 1, "instance_type": "ml.trn1.2xlarge"}

FEW = settings(max_examples=60)
plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
name_text = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
    max_leaves=6,
)


class Recording(AwsSession):
    """A session of AWS that keeps what it is sent. Its jobs are not waited for."""

    def __init__(self) -> None:
        super().__init__(BotoSession(), default_bucket="bkt", service=FakeService())
        self.least_poll_s = self.log_poll_s = self.describe_poll_s = self.settle_s = 0.0


def sent_by(text: str, session: AwsSession, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program as if its session were this one; what it sent."""
    with monkeypatch.context() as patched:
        patched.setattr("windtunnel.estimator.base.resolve_session", lambda *_: session)
        exec(compile(text, "estimator.py", "exec"), {})  # noqa: S102  that is what people do with it
    requests = session.service.requests  # type: ignore[attr-defined]
    assert len(requests) == 1
    return dict(next(iter(requests.values())))


def of(estimator: Any, inputs: Any = None, **fit: Any) -> dict[str, Any]:
    """The request that an estimator would send."""
    return dict(estimator.request(inputs, "job-1", **fit).to_dict())


def test_a_pytorch_estimator_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a usual job says is said again, and nothing needs a comment."""
    session = Recording()
    request = of(
        PyTorch(
            image_uri=IMAGE,
            session=session,
            hyperparameters={"epochs": 3, "lr": 1e-3, "name": "a b", "flag": True, "list": [1, 2]},
            metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
            environment={"X": "it's"},
            tags={"team": "a"},
            checkpoint_s3_uri="s3://c/k",
            use_spot_instances=True,
            max_run=100,
            max_wait=200,
            max_retry_attempts=2,
            keep_alive_period_in_seconds=60,
            **CODE,
            **PLACE,
        ),
        {
            "train": "s3://b/t",
            "val": TrainingInput(
                "s3://b/v", input_mode="FastFile", content_type="text/csv", distribution="ShardedByS3Key",
                shuffle_config=ShuffleConfig(seed=3),
            ),
        },
        experiment_config={"ExperimentName": "e"},
    )  # fmt: skip
    text = estimator_text(request)
    assert "PyTorch(" in text
    assert "#" not in text
    assert sent_by(text, Recording(), monkeypatch) == request


@pytest.mark.parametrize(
    "make",
    [
        lambda session: HuggingFace(image_uri=HF_IMAGE, session=session, **CODE, **PLACE),
        lambda session: Estimator("img:1", session=session, hyperparameters={"a": 1, "b": "x"}, **PLACE),
        lambda session: Estimator(
            "img:1", session=session, hyperparameters={"a": 1}, entry_point="t.py", source_dir="s3://c/d.gz", **PLACE
        ),
        lambda session: PyTorch(
            image_uri=IMAGE, session=session, enable_network_isolation=True, container_log_level=10, **CODE, **PLACE
        ),
        lambda session: PyTorch(
            image_uri=IMAGE,
            session=session,
            role=ROLE,
            instance_groups=[InstanceGroup("a", "ml.trn1.2xlarge", 1), InstanceGroup("b", "ml.trn1.2xlarge", 2)],
            entry_point="t.py",
            source_dir="s3://c/d.tar.gz",
            distribution={
                "torch_distributed": {"enabled": True},
                "instance_groups": [InstanceGroup("a", "ml.trn1.2xlarge", 1)],
            },
        ),
        lambda session: PyTorch(
            image_uri=IMAGE, session=session, debugger_hook_config=False, disable_output_compression=True,
            output_path="s3://o/p", output_kms_key="k", volume_size=50, input_mode="FastFile",
            tensorboard_output_config={"S3OutputPath": "s3://t"}, **CODE, **PLACE,
        ),
        lambda session: Estimator(
            "img:1", role=ROLE, instance_count=2, instance_type="ml.p4d.24xlarge", session=session,
            disable_profiler=True,
        ),
        lambda session: Estimator(
            "img:1", role=ROLE, instance_count=2, instance_type="ml.p4d.24xlarge", session=session,
            container_entry_point=["/bin/sh"], container_arguments=["-c", 'echo "hello"'],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_estimator_comes_back(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By image, with code or none, isolated, in groups, with keys and places of its own."""
    request = of(make(Recording()), "s3://b/train")
    text = estimator_text(request)
    assert "#" not in text
    assert sent_by(text, Recording(), monkeypatch) == request


@FEW
@given(
    hyperparameters=st.dictionaries(name_text, json_value, max_size=5),
    environment=st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True), plain_text.map(
        lambda text: text.replace("\0", "")), max_size=3),
    channels=st.dictionaries(
        name_text, st.text("abc/'\"\\ ", max_size=10).map(lambda key: f"s3://b/x{key}"), max_size=3
    ),
)  # fmt: skip
def test_any_text_comes_back(
    hyperparameters: dict[str, Any],
    environment: dict[str, str],
    channels: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Quotes, backslashes, newlines, numbers: the program says them so that Python reads the same."""
    estimator = PyTorch(
        image_uri=IMAGE,
        session=Recording(),
        hyperparameters=hyperparameters,
        environment=environment or None,
        **CODE,
        **PLACE,
    )
    request = of(estimator, channels or None)
    assert sent_by(estimator_text(request), Recording(), monkeypatch) == request


@FEW
@given(
    hyperparameters=st.dictionaries(name_text, plain_text, max_size=4),
    members=st.fixed_dictionaries(
        {},
        optional={
            "EnableNetworkIsolation": st.just(True),
            "InputDataConfig": st.just(
                [{"ChannelName": "t", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/t"}}}]
            ),
            "StoppingCondition": st.just({"MaxRuntimeInSeconds": 60, "MaxPendingTimeInSeconds": 7200}),
            "ProfilerConfig": st.sampled_from([{"DisableProfiler": True}, {"S3OutputPath": "s3://p"}]),
            "DebugHookConfig": st.just({"S3OutputPath": "s3://out/models"}),
        },
    ),
)  # fmt: skip
def test_what_an_estimator_cannot_say_is_named(
    hyperparameters: dict[str, str], members: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a request that boto3 sent, all that differs is in a comment above the program."""
    request = create_request(HyperParameters=hyperparameters or None, **members)
    text = estimator_text(request)
    sent = sent_by(text, Recording(), monkeypatch)
    for member in request.keys() | sent.keys():
        if request.get(member) != sent.get(member):
            named = {"InputDataConfig": "channel t"}.get(member, member)
            assert any(line.startswith("#") and named in line for line in text.splitlines()), member


def test_the_boto3_call_is_the_request() -> None:
    """Run with a client that records, it sends the same members."""
    request = create_request(Tags=[{"Key": "a", "Value": "b'\"\n"}])
    calls: list[dict[str, Any]] = []

    class Client:
        def create_training_job(self, **members: Any) -> None:
            calls.append(members)

    class Boto3:
        @staticmethod
        def client(_: str) -> Client:
            return Client()

    exec(boto3_text(request).replace("import boto3\n", ""), {"boto3": Boto3})  # noqa: S102
    assert calls == [request]
