"""AWS's own clients train here, unmodified: what is in their environment is all that is changed.

Nothing of theirs is patched, no account of AWS is there, and, as far as the machine lets us, no network.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator

import pytest

from tests.clients.places import SCRIPTS, Place, Run

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
]  # packages are installed once, which takes minutes

MakePlace = Callable[[str], Place]


@pytest.fixture(scope="module")
def fit_of_v2(place: MakePlace) -> Iterator[tuple[Place, Run]]:
    """SDK v2's fit(), which waits for most of its 40 s: the other clients run meanwhile."""
    here = place("sagemaker_v2")
    run = here.started("python", "with_sagemaker_v2.py")
    yield here, run
    run.process.kill()
    run.process.wait()


@pytest.fixture(autouse=True)
def _start_early(request: pytest.FixtureRequest) -> None:
    """Start v2 before the first test, if it is among those that were asked for."""
    if any("fit_of_v2" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("fit_of_v2")


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
    """SDK v3's ModelTrainer with Torchrun on ml.trn1.32xlarge, of which two cores are rehearsed."""
    here = place("sagemaker_v3")
    output = here.run("python", "with_sagemaker_v3.py")
    assert "Running Torchrun Driver" in output
    assert "2 of the 32 NeuronCores of ml.trn1.32xlarge, simulated" in output
    assert "epoch=1 samples=3 world=2 loss=0.500" in output
    assert re.search(r"s3://windtunnel-us-east-1-0{12}/from-v3/from-v3-\d+/output/model.tar.gz\n$", output)


@pytest.mark.parametrize("client", ["sagemaker_v2", "sagemaker_v3"])
def test_remote_functions(place: MakePlace, client: str) -> None:
    """@remote: the function runs as a job, which fetches it from S3 and stores there what it returns."""
    scripts = {
        "sagemaker_v2": "with_remote_of_sagemaker_v2.py",
        "sagemaker_v3": "with_remote_of_sagemaker_v3.py",
    }
    output = place(client).run("python", scripts[client])
    assert output.endswith("3 epochs on xla: 3\n")


@pytest.fixture(scope="module")
def with_v2(place: MakePlace) -> Place:
    """A home for two tests: the one that starts no job is the first."""
    return place("sagemaker_v2")


def test_the_tuner_of_sagemaker_v2_is_refused_by_name(with_v2: Place) -> None:
    """The user reads what is not served, and what is; nothing was started."""
    here = with_v2
    code, output = here.started("python", "tuner_of_sagemaker_v2.py").ended()
    assert code == 1
    words = " ".join(output.split("ClientError: ")[-1].split())  # the SDK's own tracebacks are folded
    assert words.startswith(
        "An error occurred (UnsupportedOperation) when calling the CreateHyperParameterTuningJob operation: "
        "Windtunnel does not serve sagemaker:CreateHyperParameterTuningJob."
    )
    assert "CreateTrainingJob" in words
    assert "No training jobs." in here.run("windtunnel", "ps")


def test_huggingface_of_sagemaker_v2(with_v2: Place) -> None:
    """By its image's name; without it, the SDK itself refuses trn1."""
    here = with_v2
    program = (SCRIPTS / "with_huggingface_of_sagemaker_v2.py").read_text()
    without = "\n".join(
        line.replace("py_version", "transformers_version='4.46.1', pytorch_version='2.3.0', py_version")
        for line in program.splitlines()
        if "image_uri=" not in line and "transformers4" not in line
    )
    # One process, since the SDK's import takes longer than all else.
    both = f"try: exec({without!r})\nexcept ValueError as error: print(error)\nexec({program!r})"
    output = here.run("python", "-c", both)
    assert "Unsupported processor: trn" in output
    assert "epoch=1 samples=3" in here.run("windtunnel", "logs", "-f", output.split()[-1])


def test_sagemaker_v2(fit_of_v2: tuple[Place, Run]) -> None:
    """SDK v2's PyTorch.fit() with its log, attach(), the model's download, and the job's metrics."""
    here, run = fit_of_v2
    code, output = run.ended()
    assert code == 0, output[-3000:]
    assert "epoch=1 samples=3 world=2 loss=0.500" in output
    assert re.search(r"^Training seconds: \d+$", output, flags=re.MULTILINE)
    assert re.search(r"^s3://windtunnel-us-east-1-0{12}/.*/output/model.tar.gz$", output, flags=re.MULTILINE)
    with tarfile.open(here.work / "model.tar.gz") as model:
        assert model.getnames() == ["model.txt"]
    assert re.search(r"^0 +0.0 +loss +0.75$", output, flags=re.MULTILINE)
