"""An engine that does not see this machine's files runs no job, and is told so at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.engine import DOCKER, runner_of
from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import DockerSettings
from windtunnel_local.runner.docker.checks import docker_checks
from windtunnel_local.service.ground.containers import JobPlan, Mount
from windtunnel_local.service.ground.errors import ImageNotFound, RunnerError

NO_SUCH_IMAGE = (404, {"message": "No such image: of-somebody"})


def settings(home: Path) -> DockerSettings:
    """Of a home, which need not be there."""
    return DockerSettings(home, "windtunnel-training:test")


@pytest.mark.parametrize(
    "said",
    [
        'invalid mount config for type "bind": bind source path does not exist: /home/me/x',
        "statfs /home/me/x: no such file or directory",
    ],
)
def test_an_engine_that_does_not_see_this_machines_files_is_told_at_once(said: str, tmp_path: Path) -> None:
    """By doctor, and at a job's start: before an image is built there for minutes."""
    with runner_of(tmp_path, {**DOCKER, "POST /containers/create": (400, {"message": said})}) as (
        runner,
        asked,
    ):
        with pytest.raises(
            RunnerError, match=f"unix://{tmp_path}/engine.sock does not see {tmp_path} of this"
        ):
            runner.ensure_image("windtunnel-training:test", print)
        assert "POST /build" not in asked
        found = docker_checks(settings(tmp_path / "not" / "made"))[0]
        assert (found.name, found.ok) == ("docker", False)
        assert "run Windtunnel where the engine is" in found.detail
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_sees_them_is_asked_once(tmp_path: Path) -> None:
    """Docker misses the runtime, Podman the image. Neither has made anything that a crash could leave behind."""
    no_such_runtime = (400, {"message": "unknown or invalid runtime name: windtunnel-none"})
    for said in (no_such_runtime, NO_SUCH_IMAGE):
        answers = {"POST /containers/create": said, "GET /images/of-somebody/json": NO_SUCH_IMAGE}
        with runner_of(tmp_path, {**DOCKER, **answers}) as (runner, asked):
            for _ in range(2):
                with pytest.raises(ImageNotFound):
                    runner.ensure_image("of-somebody", print)
            assert asked.count("POST /containers/create") == 1
            assert docker_checks(settings(tmp_path))[0].ok


def test_a_channel_that_the_engine_does_not_see_is_named(tmp_path: Path) -> None:
    """An engine in a virtual machine may see the home, and no other folder."""
    data = tmp_path / "data"
    data.mkdir()
    said = f'invalid mount config for type "bind": bind source path does not exist: {data}'
    plan = replace(container_plan(network="none"), mounts=(Mount(str(data), "/opt/ml/input/data/train"),))
    answers = {**DOCKER, "POST /containers/create": (400, {"message": said})}
    told = pytest.raises(RunnerError, match=f"does not see {data} of this machine")
    with runner_of(tmp_path, answers) as (runner, _), told:
        runner.start(JobPlan("job", (plan,)))
