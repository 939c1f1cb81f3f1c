"""The training image: current, and usable by a job of any user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import (
    DockerRunner,
    DockerSettings,
    build_image,
    docker_settings,
    image_status,
)
from windtunnel_local.service.ground.containers import JobPlan, Mount
from windtunnel_local.settings import from_environment

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def settings() -> DockerSettings:
    """This machine's, with the image built."""
    settings = docker_settings(from_environment(os.environ))
    build_image(settings, print)
    return settings


@pytest.fixture
def runner(settings: DockerSettings, tmp_path: Path) -> Iterator[DockerRunner]:
    """A runner of a home of its own."""
    runner = DockerRunner(replace(settings, home=tmp_path))
    yield runner
    for job in runner.jobs():
        runner.remove(job)
    runner.close()


@pytest.fixture
def cpu_build(runner: DockerRunner, settings: DockerSettings) -> bool:
    """Whether the image holds torch's CPU build."""
    ask = "grep -hc '^cuda.*= None' /opt/venv/lib/python3*/site-packages/torch/version.py"
    return output(runner, settings.image, ask) == ["1"]


def output(runner: DockerRunner, image: str, script: str, mounts: tuple[Mount, ...] = ()) -> list[str]:
    """What a line of shell prints as a user the image has never heard of."""
    command = ("sh", "-c", script)
    plan = container_plan(image=image, command=command, mounts=mounts, user="12345:12345", network="none")
    runner.start(JobPlan("job", (plan,)))
    lines = [line.text for batch in runner.logs("job", "algo-1", None) for line in batch.lines]
    runner.remove("job")
    return lines


def test_building_again_is_quick_and_changes_nothing(settings: DockerSettings) -> None:
    """A current image is left as it is, and said to be."""
    before, said = image_status(settings), list[str]()
    assert before.state == "current"
    assert build_image(settings, said.append) == before
    assert said == [f"{settings.image} is current."]


def test_an_image_that_is_not_there_is_missing(settings: DockerSettings) -> None:
    """With the hash that a build would give it."""
    status = image_status(replace(settings, image="windtunnel-none:test"))
    assert (status.state, status.content) == ("missing", None)
    assert status.expected == image_status(settings).expected


def test_any_user_may_install_requirements(
    runner: DockerRunner, settings: DockerSettings, tmp_path: Path
) -> None:
    """A job's requirements.txt goes into the environment that the script runs in."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "some-requirement"\nversion = "1"\n[tool.setuptools]\npy-modules = ["some_requirement"]\n'
    )
    (project / "some_requirement.py").write_text("")
    script = (
        "cp -r /project ~/p && pip install -q --no-index --no-build-isolation ~/p"
        " && python -c 'import some_requirement as s; print(s.__file__)'"
    )
    lines = output(runner, settings.image, script, (Mount(str(project), "/project", True),))
    assert lines == ["/opt/venv/lib/python3.11/site-packages/some_requirement.py"]


def test_torch_needs_nothing_more(runner: DockerRunner, settings: DockerSettings, cpu_build: bool) -> None:
    """No package is missing to pip, so a job that pins torch fetches no CUDA; and torch knows that it has none."""
    script = (
        "pip check && pip install -q --no-index torch==2.9.0 torchvision nvidia-cublas-cu12 && echo satisfied;"
        "python -c 'import torch; print(torch.cuda.is_available(), torch.ones(2, 2).matmul(torch.ones(2, 2)).sum())'"
    )
    if cpu_build:
        script = script.replace("nvidia-cublas-cu12", "")
    lines = output(runner, settings.image, script)
    assert lines == ["No broken requirements found.", "satisfied", "False tensor(8.)"]


def test_what_stands_for_cuda_refuses_aloud(
    runner: DockerRunner, settings: DockerSettings, cpu_build: bool
) -> None:
    """A CUDA device is an error in Python; a call that torch would not make without one ends the process."""
    if cpu_build:
        pytest.skip("the image has torch's CPU build: nothing stands for CUDA")
    program = (
        "import ctypes, torch\n"
        "try: torch.cuda.Stream()\n"
        "except Exception as error: print(error, flush=True)\n"
        'ctypes.CDLL("libcublas.so.12").cublasCreate_v2()\n'
        'print("went on")'
    )
    script = (
        f"python -c '{program}' 2>&1 | grep -o 'CUDA error:.*image\\|.*called.*\\|went on';"
        "pip show nvidia-cublas-cu12 | grep Summary"
    )
    *said, summary = output(runner, settings.image, script)
    ended, device, call = sorted(said)  # the shell may say "Aborted" before grep has written anything
    assert ended.startswith("Aborted")
    assert device.startswith("CUDA error") and "NVIDIA's CUDA libraries are not in this image" in device
    assert call.startswith("cublasCreate_v2 was called, but NVIDIA's CUDA libraries are not in this image")
    assert "Not in this image" in summary


def test_the_toolkit_finds_what_it_calls(runner: DockerRunner, settings: DockerSettings) -> None:
    """`train` is AWS's but for the import of torch; torchrun and neuron-ls are the simulator's."""
    script = (
        "for c in train torchrun neuron-ls; do command -v $c; done;"
        "grep -o 'neuron_sim[a-z.]*' $(command -v train) $(command -v torchrun);"
        "echo $SAGEMAKER_TRAINING_MODULE; neuron-ls -j | grep -c nc_count"
    )
    assert output(runner, settings.image, script) == [
        "/opt/venv/bin/train",
        "/opt/venv/bin/torchrun",
        "/opt/venv/bin/neuron-ls",
        "/opt/venv/bin/train:neuron_sim.launcher.train",
        "/opt/venv/bin/torchrun:neuron_sim.warm.torchrun",
        "sagemaker_pytorch_container.training:main",
        "1",
    ]
