"""A container plan as the engine gets it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from docker.errors import DockerException
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import create_arguments
from windtunnel_local.runner.docker.client import unavailable
from windtunnel_local.runner.docker.containers import container_state
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.runner.mounts import host_path, nested_mountpoints
from windtunnel_local.service.ground.containers import ContainerState, Forward, Mount

NAMES = create_arguments.Names(Path("/home/u/.windtunnel"))
PLAN = container_plan(
    host="algo-2",
    environment={"A": "plan", "http_proxy": "plan"},
    mounts=(Mount("/jobs/ml", "/opt/ml"),),
    user="1000:1000",
    memory_bytes=1 << 30,
    shm_bytes=1 << 29,
    labels={"mine": "1"},
)
PROXIED = HostNetwork(None, {"PIP_INDEX_URL": "http://index.test"}, {"http_proxy": "http://proxy.test"})


def test_names_and_labels_tell_homes_jobs_and_hosts_apart() -> None:
    """Two homes may run jobs of one name; labels find them again."""
    other = create_arguments.Names(Path("/home/v/.windtunnel"))
    assert NAMES.container("job", "algo-1") != other.container("job", "algo-1")
    assert NAMES.network("job") != other.network("job")
    arguments = create_arguments.container_arguments(PLAN, NAMES, HostNetwork())
    assert arguments["labels"] == {
        "mine": "1",
        "windtunnel.home": "/home/u/.windtunnel",
        "windtunnel.job": "job",
        "windtunnel.host": "algo-2",
    }
    assert arguments["hostname"] == "algo-2"
    assert arguments["user"] == "1000:1000"


def test_a_job_of_a_rootless_engine_is_its_containers_root() -> None:
    """No other user there can use this user's files. It gives none away: nobody here could remove them."""
    arguments = create_arguments.container_arguments(PLAN, NAMES, HostNetwork(), rootless=True)
    assert arguments["user"] == "0:0"
    assert arguments["environment"]["TAR_OPTIONS"] == "--no-same-owner"
    capabilities = create_arguments.host_arguments(PLAN, HostNetwork(), "id", rootless=True)["cap_add"]
    assert {*capabilities} == {*create_arguments._ROOT_CAPABILITIES} - {"CHOWN"}


@given(job=st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", fullmatch=True))
def test_no_job_name_makes_an_engine_side_name_longer_than_a_dns_label(job: str) -> None:
    """A longer name makes every reverse look-up between hosts wait for 10 s."""
    for name in (NAMES.container(job, "algo-10"), NAMES.network(job)):
        assert len(name) <= 63
    assert job in NAMES.network(job) or NAMES.network(job) != NAMES.network(job[:-1] + "x" + job[-1:])


def test_memory_is_limited_without_swap() -> None:
    """A job that is too large fails as on the instance."""
    arguments = create_arguments.host_arguments(PLAN, HostNetwork(), "id")
    assert arguments["mem_limit"] == arguments["memswap_limit"] == 1 << 30
    assert "mem_limit" not in create_arguments.host_arguments(
        replace(PLAN, memory_bytes=None), HostNetwork(), "id"
    )


def test_a_user_gets_no_capability_and_root_a_few() -> None:
    """Nobody can gain any."""
    for user, capabilities in (
        ("1000:1000", []),
        ("0:0", create_arguments._ROOT_CAPABILITIES),
        (None, create_arguments._ROOT_CAPABILITIES),
    ):
        arguments = create_arguments.host_arguments(replace(PLAN, user=user), HostNetwork(), "id")
        assert arguments["cap_drop"] == ["ALL"]
        assert arguments["cap_add"] == capabilities
        assert arguments["security_opt"] == ["no-new-privileges"]


def test_networks_of_a_plan() -> None:
    """That of all jobs, none with the host's own name kept resolvable, or one of the job's own."""
    default = create_arguments.host_arguments(PLAN, HostNetwork(), "id")
    assert default["network_mode"] == "id"
    isolated = create_arguments.host_arguments(replace(PLAN, network="none"), HostNetwork(), "id")
    assert isolated["network_mode"] == "none"
    assert isolated["extra_hosts"] == {"algo-2": "127.0.0.1"}
    own = create_arguments.host_arguments(replace(PLAN, network="x"), HostNetwork(), "id")
    assert own["network_mode"] == "id"
    assert "dns" not in own


def test_the_network_of_isolated_hosts() -> None:
    """Internal, without an address of the host in it; names of others are asked of nobody; no proxy."""
    plan = replace(PLAN, network="x", isolated=True, environment={})
    arguments = create_arguments.host_arguments(plan, HostNetwork(), "id")
    assert arguments["network_mode"] == "id"
    assert arguments["dns"] == ["127.0.0.1"]
    assert create_arguments.environment(plan, PROXIED) == {}
    made = create_arguments.network_arguments(isolated=True)
    assert made["internal"] is True
    assert made["options"] == {"com.docker.network.bridge.inhibit_ipv4": "true"}
    assert "internal" not in create_arguments.network_arguments(isolated=False)


def test_the_plans_environment_wins_and_an_isolated_job_gets_no_proxy() -> None:
    """What the host needs comes below what the job asked for."""
    loopback = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    expected = {"A": "plan", "http_proxy": "plan", "PIP_INDEX_URL": "http://index.test", **loopback}
    assert create_arguments.environment(PLAN, PROXIED) == expected
    assert create_arguments.environment(replace(PLAN, network="none", environment={}), PROXIED) == {}


def test_the_way_to_the_backend() -> None:
    """The folder of its socket, which the job cannot change, and no proxy for the container's loopback."""
    forward = Forward(20000, "/home/u/.windtunnel/api/socket")
    plan = replace(PLAN, forward=forward)
    mounts = create_arguments.host_arguments(plan, HostNetwork(), None)["mounts"]
    assert [(m["Source"], m["Target"], m["ReadOnly"]) for m in mounts[1:]] == [
        ("/home/u/.windtunnel/api", "/opt/windtunnel/host/api", True)
    ]
    assert len(create_arguments.host_arguments(PLAN, HostNetwork(), None)["mounts"]) == 1
    variables = create_arguments.environment(plan, PROXIED)
    assert variables["NO_PROXY"] == variables["no_proxy"] == "127.0.0.1"


def test_mountpoints_inside_other_mounts_are_found_in_order_of_depth() -> None:
    """Those inside a read-only mount cannot be made and must exist."""
    data, deep = Mount("/data", "/opt/ml/input/data/train", True), Mount("/x", "/opt/ml/input/data/train/a/b")
    source = Mount("/tar.gz", "/opt/windtunnel/source.tar.gz", True)
    ml, checkpoints = Mount("/jobs/ml", "/opt/ml"), Mount("/cp", "/opt/ml/checkpoints")
    assert nested_mountpoints((deep, data, source, checkpoints, ml)) == [
        (Path("/jobs/ml/checkpoints"), checkpoints),
        (Path("/jobs/ml/input/data/train"), data),
    ]


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("/opt/ml", "/jobs/ml"),
        ("/opt/ml/model/x.pt", "/jobs/ml/model/x.pt"),
        ("/opt/ml/input/data/train/a.csv", "/data/a.csv"),
        ("/opt/mlx", "/opt/mlx"),
        ("opt/ml", "opt/ml"),
        ("s3://opt/ml", "s3://opt/ml"),
        ("", ""),
    ],
)
def test_paths_inside_lead_to_the_host(inside: str, outside: str) -> None:
    """The deepest mount counts; what is no path under a mount stays."""
    mounts = (Mount("/jobs/ml", "/opt/ml"), Mount("/data", "/opt/ml/input/data/train"))
    assert host_path(inside, mounts) == outside


@pytest.mark.parametrize(
    ("engine", "state"),
    [
        (
            {
                "Status": "created",
                "ExitCode": 0,
                "StartedAt": "0001-01-01T00:00:00Z",
                "FinishedAt": "0001-01-01T00:00:00Z",
            },
            ContainerState("created"),
        ),
        # Its engine was killed before the start call came to an end, and may never see it ending.
        (
            {"Status": "running", "ExitCode": 0, "StartedAt": "0001-01-01T00:00:00Z"},
            ContainerState("created"),
        ),
        (
            {
                "Status": "paused",
                "ExitCode": 0,
                "StartedAt": "2026-01-02T03:04:05.123456789Z",
                "FinishedAt": "",
            },
            ContainerState("running", started_at=datetime(2026, 1, 2, 3, 4, 5, 123456, timezone.utc)),
        ),
        (
            {
                "Status": "exited",
                "ExitCode": 137,
                "OOMKilled": True,
                "StartedAt": "2026-01-02T03:04:05.1Z",
                "FinishedAt": "2026-01-02T03:04:06Z",
            },
            ContainerState(
                "exited",
                137,
                True,
                datetime(2026, 1, 2, 3, 4, 5, 100000, timezone.utc),
                datetime(2026, 1, 2, 3, 4, 6, 0, timezone.utc),
            ),
        ),
        # Over before the engine noted that it had begun.
        (
            {
                "Status": "exited",
                "ExitCode": 3,
                "StartedAt": "2026-01-02T03:04:05.003Z",
                "FinishedAt": "2026-01-02T03:04:05.001Z",
            },
            ContainerState(
                "exited",
                3,
                False,
                datetime(2026, 1, 2, 3, 4, 5, 1000, timezone.utc),
                datetime(2026, 1, 2, 3, 4, 5, 1000, timezone.utc),
            ),
        ),
        ({"Status": "dead", "ExitCode": 1}, ContainerState("exited", 1)),
        # Somebody's `docker rm -f`: its exit code tells nothing of the script.
        ({"Status": "removing", "ExitCode": 137}, ContainerState("absent")),
    ],
)
def test_the_engines_states_are_the_ports(engine: dict[str, object], state: ContainerState) -> None:
    """With times, and only an exited container has an exit code."""
    assert container_state(engine) == state


def test_a_refused_socket_names_the_group() -> None:
    """The commonest trouble of a fresh install."""
    error = DockerException(
        "Error while fetching server API version: PermissionError(13, 'Permission denied')"
    )
    assert "usermod -aG docker" in str(unavailable(error))
    assert "usermod -aG docker" in str(unavailable(PermissionError(13, "Permission denied")))


def test_an_engine_that_does_not_answer_is_told_with_the_way_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backend keeps the DOCKER_HOST that it was started with: to set another in the shell changes nothing."""
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/docker")
    said = str(unavailable(ConnectionRefusedError(111, "refused")))
    assert "set DOCKER_HOST" in said and "`windtunnel down`" in said


def test_where_there_is_podman_alone_its_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not run by itself, and no variable points to it."""
    monkeypatch.setattr(shutil, "which", {"podman": "/usr/bin/podman"}.get)
    said = str(unavailable(ConnectionRefusedError(111, "refused")))
    assert "systemctl --user start podman.socket" in said and "DOCKER_HOST=unix://" in said
