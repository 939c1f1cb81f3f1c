"""Images of one's own: what the job's log and its FailureReason say of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.crash import Fuse
from tests.fakes.runner import FakeContainer, Image
from tests.fakes.wire import IMAGE
from tests.unit.service.conftest import World
from tests.unit.service.samples import LOCAL_IMAGE, config, job, request
from windtunnel_local.runner.sources import containers_folder, image_contents
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request.images import framework_version, is_neuron_image
from windtunnel_local.service.running.start_failure import start_failure

CONFIG = config(Path("/home"), user="1000:1000")


def own(**algorithm: Any) -> Job:
    named = {"TrainingImage": "mine:1", "TrainingInputMode": "File", **algorithm}
    return job(CONFIG.home, request(AlgorithmSpecification=named))


def tini(program: str, why: str = "No such file or directory") -> list[str]:
    return ["something before", f"[FATAL tini (7)] exec {program} failed: {why}"]


@pytest.mark.parametrize(
    ("algorithm", "code", "tail", "says"),
    [
        ({}, 127, tini("train"), ["mine:1", "`train` on the image's PATH", "ContainerEntrypoint"]),
        (
            {"ContainerEntrypoint": ["/no/such", "x"]},
            127,
            tini("/no/such"),
            ["ContainerEntrypoint names '/no/such'", "mine:1", "docker run --rm -it mine:1 sh"],
        ),
        (
            {"ContainerArguments": ["--epochs", "3"]},
            127,
            tini("--epochs"),
            ["ContainerArguments begin with '--epochs'", "as ContainerEntrypoint"],
        ),
        ({}, 126, tini("train", "Permission denied"), ["cannot be executed", "chmod a+rx", "1000:1000"]),
        (
            {},
            1,
            ["PermissionError: [Errno 13] Permission denied: '/home/app/cache'"],
            ["Exit Code: 1", "1000:1000", "chmod -R a+rX"],
        ),
    ],
)
def test_what_keeps_an_image_from_running_is_said(
    algorithm: dict[str, Any], code: int, tail: list[str], says: list[str]
) -> None:
    """What was named, what is wrong with it, what to do."""
    text = start_failure(own(**algorithm), code, tail, CONFIG)
    assert text is not None
    assert [part for part in says if part not in text] == []


def test_a_path_that_the_job_itself_sets_is_named() -> None:
    """The image may well have the program."""
    named = {"TrainingImage": "mine:1", "TrainingInputMode": "File"}
    given = request(AlgorithmSpecification=named, Environment={"PATH": "/nope"})
    text = start_failure(job(CONFIG.home, given), 127, tini("train"), CONFIG)
    assert text is not None and "own Environment has set PATH to '/nope'" in text
    assert "does not have it" not in text


def test_an_entry_point_that_the_archive_lacks_is_named(world: World) -> None:
    """Beside what AWS's toolkit says, which is only the exit code."""

    def script(container: FakeContainer) -> int:
        container.print(
            "/opt/venv/bin/python3: can't open file '/opt/ml/code/no.py': [Errno 2] No such file or directory"
        )
        container.write("/opt/ml/output/failure", 'ExecuteUserScriptError:\nExitCode 2\nErrorMessage ""')
        return 2

    world.runner.script = script
    reason = world.run(request()).lifecycle.failure_reason
    assert reason is not None and "The source archive has no no.py." in reason


def test_other_failures_are_left_to_the_script() -> None:
    """Only what the container's init says counts, and our own image keeps nothing for a user of its own."""
    assert start_failure(own(), 1, ["ValueError: x"], CONFIG) is None
    assert start_failure(own(), 127, ["sh: 1: train: not found"], CONFIG) is None
    assert start_failure(own(), 1, tini("train"), CONFIG) is None
    ours = job(CONFIG.home)
    assert start_failure(ours, 1, ["Permission denied"], CONFIG) is None


def test_the_reason_reaches_the_job(world: World) -> None:
    """Through the log that the container left."""

    def script(container: FakeContainer) -> int:
        container.print(tini("train")[1])
        return 127

    world.runner.script = script
    world.runner.images["mine:1"] = Image()
    algorithm = {"TrainingImage": "mine:1", "TrainingInputMode": "File"}
    reason = world.run(request(AlgorithmSpecification=algorithm)).lifecycle.failure_reason
    assert reason is not None
    assert reason.startswith("AlgorithmError: SageMaker runs `docker run IMAGE train`")


@pytest.mark.parametrize(
    ("name", "is_ours", "version"),
    [
        (IMAGE, True, "2.9"),
        (
            "763104351884.dkr.ecr.us-west-2.amazonaws.com/huggingface-pytorch-training-neuronx:"
            "2.7.0-transformers4.51.0-neuronx-py310-sdk2.24.1-ubuntu22.04",
            True,
            "2.7",
        ),
        ("public.ecr.aws/neuron/pytorch-training-neuronx:2.8.0-neuronx-py311", True, "2.8"),
        ("727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training-neuronx:latest", True, None),
        (f"public.ecr.aws/neuron/pytorch-training-neuronx@sha256:{'0' * 64}", True, None),
        (
            "111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror/pytorch-training-neuronx:2.8.0-neuronx",
            True,
            "2.8",
        ),
        ("pytorch-training-neuronx:2.9.0", False, None),
        ("windtunnel-training:0.1.0", False, None),
        ("docker.io/me/pytorch-training-neuronx:2.9.0", False, None),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.9.0-gpu-py312", False, None),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx-mine:1", False, None),
        ("evil.com/763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:2.9.0", False, None),
    ],
)
def test_which_names_mean_the_local_image(name: str, is_ours: bool, version: str | None) -> None:
    """AWS's Neuron training images in ECR and in the public gallery; every other name means itself."""
    assert (is_neuron_image(name), framework_version(name)) == (is_ours, version)


def test_the_log_says_once_which_image_runs(world: World) -> None:
    """Ahead of the container's first line, also when the server dies in between."""
    world.config = replace(world.config, image_contents=image_contents(containers_folder()))
    for calls in range(20, 400, 4):
        name = f"job-{calls}"
        survived = world.outlives(Fuse(calls), request(name))
        world.finish(name)
        lines = world.lines(name)
        assert [line for line in lines if not line.startswith("Windtunnel: ")] == ["hello"]
        assert lines[:2] == [
            f"Windtunnel: the request names the image {IMAGE}.",
            f"Windtunnel: {LOCAL_IMAGE} runs in its place: {image_contents(containers_folder())}.",
        ]
        assert lines.index("hello") == 3, (calls, lines)
        if survived:
            return
    raise AssertionError("no job ran through")


def test_what_the_image_holds_is_read_from_its_sources() -> None:
    """The versions that the log names are those that the image is built from."""
    text = image_contents(containers_folder())
    pinned = (containers_folder() / "training" / "requirements.txt").read_text()
    for part in text.split(", ")[:2]:
        name, version = part.split(" ")
        assert f"{'torch' if name == 'PyTorch' else name}=={version}\n" in pinned
