"""Engines that are not Docker's own, run by root on this machine: what they say, and what becomes of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import DOCKER, PODMAN, engine, runner_of
from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import DockerSettings, Engine, build_image, create_arguments
from windtunnel_local.runner.docker.checks import docker_checks
from windtunnel_local.runner.docker.client import Kind
from windtunnel_local.service.ground.containers import JobPlan
from windtunnel_local.service.ground.errors import RunnerError

ROOTLESS_DOCKER = DOCKER | {"GET /info": (200, {"SecurityOptions": ["name=rootless"], "MemoryLimit": False})}
ENDED = {
    "Id": "1",
    "State": {
        "Status": "exited",
        "ExitCode": 137,
        "StartedAt": "2026-01-02T03:04:05Z",
        "FinishedAt": "2026-01-02T03:05:00Z",
    },
    "Config": {"Labels": {}},
}


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (DOCKER, Kind(podman=False, rootless=False, limits_memory=True)),
        (ROOTLESS_DOCKER, Kind(podman=False, rootless=True, limits_memory=False)),
        (PODMAN, Kind(podman=True, rootless=True, limits_memory=False)),
    ],
)
def test_an_engine_says_what_it_is(answers: dict[str, tuple[int, Any]], kind: Kind, tmp_path: Path) -> None:
    """Once for all that is asked of it."""
    with runner_of(tmp_path, answers) as (_, asked):
        asking = Engine()
        assert [asking.kind, asking.kind] == [kind, kind]
        asking.close()
        assert asked.count("GET /info") == 1


def test_an_engine_of_other_processors_is_refused(tmp_path: Path) -> None:
    """Before anything is built there, and by doctor; torch_xla is for x86-64 alone."""
    arm = {"GET /version": (200, {"ApiVersion": "1.41", "Version": "28.0", "Arch": "arm64"})}
    settings = DockerSettings(tmp_path, "windtunnel-training:test")
    with engine(tmp_path, DOCKER | arm) as (address, asked), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        with pytest.raises(RunnerError, match=r"is one of arm64,.*colima start --arch x86_64"):
            build_image(settings, print)
        [found] = [check for check in docker_checks(settings) if check.name == "docker"]
        assert not found.ok and "arm64" in found.detail
        assert not {"POST /build", "POST /images/create"} & {*asked}


def name_of(home: Path) -> str:
    """Of the first host's container."""
    return create_arguments.Names(home).container("job", "algo-1")


def test_podmans_way_to_say_that_it_is_so_already_is_no_error(tmp_path: Path) -> None:
    """500, for what is 409 of Docker's: a stop that comes too late, a container that an earlier server made."""
    name = name_of(tmp_path)
    late = "can only kill running containers. 1 is in state exited: container state improper"
    there = f'creating container storage: the container name "{name}" is already in use by 1'
    answers = {
        f"POST /containers/{name}/kill": (500, {"message": late}),
        "POST /containers/create": (500, {"message": there}),
        f"GET /containers/{name}/json": (200, ENDED),
    }
    with runner_of(tmp_path, PODMAN | answers) as (runner, asked):
        runner.terminate("job", "algo-1")
        runner.start(JobPlan("job", (container_plan(network="none"),)))
        assert {*asked} >= {f"POST /containers/{name}/kill", "POST /containers/create"}


def test_podman_takes_no_container_along(tmp_path: Path) -> None:
    """Its default network is as old as the question: each container that was killed seemed lost, and began again."""
    answers = {
        f"GET /containers/{name_of(tmp_path)}/json": (200, ENDED),
        "GET /networks/bridge": (200, {"Created": "2036-01-01T00:00:00Z"}),
        "GET /events": (200, {"status": "kill"}),
    }
    for kind, lost in ((DOCKER, True), (PODMAN, False)):
        with runner_of(tmp_path, kind | answers) as (runner, _):
            assert runner.state("job", "algo-1").lost == lost


def test_hosts_that_would_not_be_isolated_are_refused(tmp_path: Path) -> None:
    """Podman knows no network whose hosts cannot call this machine."""
    plan = container_plan(network="own", isolated=True)
    refused = pytest.raises(RunnerError, match=r"several hosts and network isolation: Podman.*on one host")
    with runner_of(tmp_path, PODMAN) as (runner, _), refused:
        runner.start(JobPlan("job", (plan,)))
