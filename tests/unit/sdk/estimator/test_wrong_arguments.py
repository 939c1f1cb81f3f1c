"""What a user can get wrong: said in one sentence, before anything is uploaded or started."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.estimator.test_estimator import TORCH, pytorch
from tests.unit.sdk.fake_service import FakeService
from tests.unit.sdk.job.test_job import started
from windtunnel import (
    AwsSession,
    ConfigurationError,
    LocalSession,
    SourceError,
    TrainingInput,
    TrainingJobFailed,
)
from windtunnel.porting.program import of_its_imports
from windtunnel.porting.script import Script
from windtunnel.settings import home

pytestmark = pytest.mark.usefixtures("project")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hyperparameters": ["a"]}, r"hyperparameters=\['a'\]: a dict is needed"),
        ({"distribution": "torch_distributed"}, "distribution='torch_distributed': a dict is needed"),
        ({"environment": ["A=1"]}, "a dict is needed"),
        ({"environment": {"A": "\0"}}, "null character"),
        ({"dependencies": "lib"}, r"dependencies='lib': a list \(each item text or a path\) is needed"),
        ({"tags": "x"}, r"tags='x': a list \(each item a dict\) or a dict is needed"),
        ({"tags": [{"key": "a", "value": "b"}]}, "exactly the keys 'Key' and 'Value'"),
        ({"metric_definitions": [{"Name": "x", "Regex": 1}]}, "both values must be texts"),
        ({"metric_definitions": [{"Name": "x", "Regex": ""}]}, "must be texts, and not empty"),
        ({"metric_definitions": ["x"]}, "each item a dict"),
        (
            {"metric_definitions": [{"Name": "x", "Regex": "a("}]},
            r"the Regex of 'x' is not valid .*Given: a\(",
        ),
        (
            {"metric_definitions": [{"Name": "x", "Regex": "(a{4294967296})"}]},
            "the Regex of 'x' is not valid",
        ),
        ({"metric_definitions": [{"Name": "x", "Regex": "abc"}]}, "the Regex of 'x' has no group"),
        ({"instance_type": 1}, "instance_type=1: text is needed"),
        ({"instance_count": "1"}, "instance_count='1': a whole number from 1"),
        ({"max_wait": "x"}, "max_wait='x': a whole number is needed"),
        ({"role": 1}, "role=1: text is needed"),
        ({"image_uri": 1}, "image_uri=1: text is needed"),
        ({"entry_point": b"train.py"}, "text or a path is needed"),
        ({"source_dir": 1}, "text or a path is needed"),
        ({"enable_network_isolation": "yes"}, "True or False is needed"),
        ({"container_arguments": "x"}, "each item text"),
        ({"base_job_name": "my_job"}, "base_job_name='my_job': letters, digits and hyphens"),
        ({"instance_type": "ml.trn1.16xlarge"}, "does not exist. Trainium: ml.trn1.2xlarge"),
        ({"instance_type": "trn1.2xlarge"}, r"no SageMaker instance type .* Did you mean 'ml.trn1.2xlarge'"),
        ({"instance_type": "local"}, "Windtunnel runs locally by default"),
        ({"instance_type": None}, "both are needed"),
        ({"instance_count": 0}, r"instance_count=0: a whole number from 1"),
        ({"instance_count": True}, "instance_count=True"),
        ({"max_run": 0}, r"max_run=0: a whole number from 1 to 2419200 s \(28 days\)"),
        ({"max_run": 2419201}, "max_run=2419201"),
        ({"volume_size": 0}, "volume_size=0"),
        ({"input_mode": "Stream"}, "input_mode='Stream': one of File, FastFile, Pipe"),
        ({"subnets": ["s"]}, "go together"),
        ({"output_path": "file:///tmp/x"}, "download_model"),
        ({"use_spot_instances": True}, "max_wait= is needed"),
        ({"max_wait": 100_000}, "only spot jobs wait"),
        ({"metric_definitions": [{"Name": "x"}]}, "exactly the keys"),
        ({"environment": {"1A": "x"}}, "'1A' is not valid"),
        ({"environment": {"A": "x" * 513}}, "its value has 513 characters, at most 512"),
        ({"environment": {"A": 1}}, "names and values are strings"),
        ({"environment": {f"A{i}": "" for i in range(101)}}, "101 variables, at most 100"),
        ({"tags": {str(i): "" for i in range(51)}}, "51 given, at most 50"),
        ({"profiler_config": {"S3OutputPath": "s3://x"}}, "profiler"),
        ({"distribution": {"mpi": {"enabled": True}}}, "Trainium instances take torch_distributed only. Use"),
        ({"distribution": {**TORCH, "smdistributed": {}}}, "torch_distributed only"),
        ({"distribution": {"torch_distributed": True}}, "use distribution="),
        ({"framework_version": "1.12"}, "Known: 1.11.0, 1.13.1, 2.1.2"),
        ({"py_version": "py39"}, "PyTorch 2.9.0 has py312"),
        ({"framework_version": None}, "framework_version= is missing"),
        ({"train_instance_count": 1}, "renamed in SageMaker SDK v2 to instance_count="),
    ],
)
def test_wrong_arguments(local: LocalSession, wrong: dict[str, Any], message: str) -> None:
    """The constructor says what was given, what is valid and what to do."""
    with pytest.raises(ConfigurationError, match=message):
        pytorch(local, **wrong)


def test_a_hyperparameter_that_cannot_be_sent(local: LocalSession) -> None:
    """It is named, and what can be sent."""
    with pytest.raises(ConfigurationError, match=r"hyperparameter 'a'=.* convert it"):
        pytorch(local, hyperparameters={"a": Path("x")}).request()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"job_name": 5}, "job_name=5: text is needed"),
        ({"experiment_config": "x"}, "experiment_config='x': a dict is needed"),
        ({"inputs": ""}, "'' is no path"),
        ({"inputs": TrainingInput(5)}, "5 is no path"),  # type: ignore[arg-type]
        ({"inputs": {"..": "data"}}, "not '.' or '..'"),
        ({"inputs": "~no-such-user/data"}, "'~' is the home of nobody here"),
        ({"inputs": "d" * 300}, "File name too long|does not exist"),  # the latter since Python 3.14
    ],
)
def test_wrong_arguments_of_fit(local: LocalSession, given: dict[str, Any], message: str) -> None:
    """They are refused before anything is uploaded."""
    with pytest.raises(ConfigurationError, match=message):
        pytorch(local).request(**given)


@pytest.mark.parametrize("source_dir", ["~no-such-user/src", "s" * 300, "s3://", "s3://bucket"])
def test_a_source_dir_that_cannot_be(local: LocalSession, source_dir: str) -> None:
    """No traceback of the file system's."""
    with pytest.raises(ConfigurationError):
        pytorch(local, source_dir=source_dir).request()


def test_a_local_job_writes_to_any_bucket(local: LocalSession, aws: AwsSession, service: FakeService) -> None:
    """The user's buckets on AWS are not here, so they are made; on AWS none of them is."""
    places = {"output_path": "s3://mine/out", "checkpoint_s3_uri": "s3://ckpt/x"}
    pytorch(local, code_location="s3://code", **places).fit(wait=False)
    assert service.buckets == {"mine", "ckpt", "code"}
    service.buckets = {"mine"}
    pytorch(aws, role="arn:aws:iam::1:role/r", base_job_name="on-aws", **places).fit(wait=False)
    assert service.buckets == {"mine"}


def test_ctrl_c_while_a_job_is_sent(local: LocalSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell whether it has arrived; the message says how to find out."""

    def create_job(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local.service, "create_job", create_job)
    with pytest.raises(KeyboardInterrupt, match=r"job j was being sent; it may have started .* stop j"):
        pytorch(local).fit(job_name="j")


@pytest.mark.parametrize("refused", ["open", "iterdir"])
def test_code_that_cannot_be_read(
    local: LocalSession, project: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """The file is named."""
    (project / "src" / "lib").mkdir()
    usual = getattr(Path, refused)

    def call(path: Path, *arguments: Any) -> Any:
        if path.name in ("train.py", "lib"):
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *arguments)

    estimator = pytorch(local)
    monkeypatch.setattr(Path, refused, call)
    with pytest.raises(SourceError, match=r"src/(train.py|lib) cannot be read: Permission denied\. Repair"):
        estimator.fit(wait=False)


def test_a_home_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `~` of nobody is no traceback."""
    monkeypatch.setenv("WINDTUNNEL_HOME", "~no-such-user/wt")
    with pytest.raises(ConfigurationError, match="home of nobody here"):
        home()


def test_a_model_that_has_no_place(local: LocalSession, project: Path) -> None:
    """A file in the place of the directory."""
    job = started(local).wait(logs=False)
    with pytest.raises(ConfigurationError, match=r"train\.csv cannot be a directory"):
        job.download_model(project / "data" / "train.csv")


def test_a_line_of_a_megabyte_is_no_message() -> None:
    """The log has it all; the error shows its beginning."""
    error = TrainingJobFailed("j", "r", log_tail=["x" * 2**20], logs_location="here", next_step="n")
    assert len(str(error)) < 1000
    assert "x... (1048576 characters)" in str(error)
    assert error.log_tail == ("x" * 2**20,)


def test_a_log_that_the_terminal_cannot_show(local: LocalSession) -> None:
    """It is shown as far as possible, and the job followed to its end."""
    printed: dict[str, tuple[str, ...]] = {"algo-1": ("é \N{ROCKET}",)}
    steps = [("InProgress", "Training", "m", printed), ("Completed", "Completed", "m", {})]
    local.service = FakeService(*steps)
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="latin-1")
    started(local).wait(out=out)
    out.flush()
    assert "é ?\n".encode("latin-1") in raw.getvalue()


@pytest.mark.parametrize("source", [b"x = '\0'", b"\xff\xfe", b"(" * 300])
def test_a_script_that_is_no_python(project: Path, source: bytes) -> None:
    """`check` says so."""
    script = project / "odd.py"
    script.write_bytes(source)
    with pytest.raises(SourceError, match="cannot be imported"):
        Script(script)


def test_a_script_in_an_encoding_of_its_own(project: Path) -> None:
    """Python reads it, so does `check`."""
    script = project / "old.py"
    script.write_bytes("# -*- coding: latin-1 -*-\nimport torch_xla\nx = 'é'\n".encode("latin-1"))
    assert of_its_imports(Script(script)) == []
