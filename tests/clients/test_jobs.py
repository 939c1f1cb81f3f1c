"""AWS's own clients train here, unmodified: what is in their environment is all that is changed.

Nothing of theirs is patched, no account of AWS is there, and, as far as the machine lets us, no network.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator

import pytest

from tests.clients.places import Place, Run

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
]  # packages are installed once, which takes minutes

MakePlace = Callable[[str], Place]
OF_V2 = (
    "with_sagemaker_v2.py",
    "with_remote_of_sagemaker_v2.py",
    "with_huggingface_of_sagemaker_v2.py",
    "huggingface_by_version_of_sagemaker_v2.py",
    "tuner_of_sagemaker_v2.py",
)
OF_V3 = ("with_sagemaker_v3.py", "with_remote_of_sagemaker_v3.py")


@pytest.fixture(scope="module")
def v2(place: MakePlace) -> Iterator[tuple[Place, dict[str, Run]]]:
    """All scripts of SDK v2. Its fit() waits for most of its 40 s: the other clients run meanwhile."""
    here = place("sagemaker_v2")
    runs = here.started_together("sagemaker", *OF_V2)
    yield here, runs
    runs[OF_V2[0]].killed()


@pytest.fixture(autouse=True)
def _start_early(request: pytest.FixtureRequest) -> None:
    """Start v2 before the first test, if it is among those that were asked for."""
    if any("v2" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("v2")


def test_boto3(place: MakePlace) -> None:
    """boto3 alone: create, botocore's own waiter, logs, model."""
    here = place("boto3")
    output = here.run("python", "with_boto3.py")
    assert "epoch=1 samples=3 world=1 loss=0.500" in output
    assert re.search(r"from-boto3-\d+ model.tar.gz holds \['model.txt'\]", output)


def test_aws_cli(place: MakePlace) -> None:
    """The AWS CLI: s3, sts, sagemaker with its waiter, logs, a presigned URL that curl reads."""
    here = place("awscli")
    output = here.run("sh", "with_aws_cli.sh")
    assert re.search(r'^    "from-cli-\d+"$', output, flags=re.MULTILINE)
    assert '"epoch=1 samples=3 world=1 loss=0.500"' in output
    assert output.endswith("model.txt\n")


def test_sagemaker_v3(place: MakePlace) -> None:
    """SDK v3's ModelTrainer with Torchrun on ml.trn1.32xlarge, of which two cores are rehearsed; and @remote."""
    train, remote = place("sagemaker_v3").started_together("sagemaker.train", *OF_V3).values()
    code, output = train.ended()
    assert code == 0, output[-3000:]
    assert "Running Torchrun Driver" in output
    assert "2 of the 32 NeuronCores of ml.trn1.32xlarge, simulated" in output
    assert "epoch=1 samples=3 world=2 loss=0.500" in output
    assert re.search(r"s3://windtunnel-us-east-1-0{12}/from-v3/from-v3-\d+/output/model.tar.gz\n$", output)
    _returned(remote)


def test_remote_function_of_sagemaker_v2(v2: tuple[Place, dict[str, Run]]) -> None:
    """@remote: the function runs as a job, which fetches it from S3 and stores there what it returns."""
    _returned(v2[1]["with_remote_of_sagemaker_v2.py"])


def _returned(remote: Run) -> None:
    code, output = remote.ended()
    assert code == 0, output[-3000:]
    assert output.endswith("3 epochs on xla: 3\n")


def test_the_tuner_of_sagemaker_v2_is_refused_by_name(v2: tuple[Place, dict[str, Run]]) -> None:
    """The user reads what is not served, and what is."""
    code, output = v2[1]["tuner_of_sagemaker_v2.py"].ended()
    assert code == 1
    words = " ".join(output.split("ClientError: ")[-1].split())  # the SDK's own tracebacks are folded
    assert words.startswith(
        "An error occurred (UnsupportedOperation) when calling the CreateHyperParameterTuningJob operation: "
        "Windtunnel does not serve sagemaker:CreateHyperParameterTuningJob."
    )
    assert "CreateTrainingJob" in words


def test_huggingface_of_sagemaker_v2(v2: tuple[Place, dict[str, Run]]) -> None:
    """By its image's name; without it, the SDK itself refuses trn1."""
    here, runs = v2
    code, output = runs["huggingface_by_version_of_sagemaker_v2.py"].ended()
    assert (code, "Unsupported processor: trn" in output) == (1, True), output[-3000:]
    code, output = runs["with_huggingface_of_sagemaker_v2.py"].ended()
    assert code == 0, output[-3000:]
    assert "epoch=1 samples=3" in here.run("windtunnel", "logs", "-f", output.split()[-1])


def test_sagemaker_v2(v2: tuple[Place, dict[str, Run]]) -> None:
    """SDK v2's PyTorch.fit() with its log, attach(), the model's download, and the job's metrics."""
    here, runs = v2
    code, output = runs["with_sagemaker_v2.py"].ended()
    assert code == 0, output[-3000:]
    assert "epoch=1 samples=3 world=2 loss=0.500" in output
    assert re.search(r"^Training seconds: \d+$", output, flags=re.MULTILINE)
    assert re.search(r"^s3://windtunnel-us-east-1-0{12}/.*/output/model.tar.gz$", output, flags=re.MULTILINE)
    with tarfile.open(here.work / "model.tar.gz") as model:
        assert model.getnames() == ["model.txt"]
    assert re.search(r"^0 +0.0 +loss +0.75$", output, flags=re.MULTILINE)
