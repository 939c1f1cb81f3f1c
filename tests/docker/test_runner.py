"""The `docker` runner against a real engine, with the small base image of ours."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient
from docker.errors import APIError

from tests.fakes.plans import container_plan
from windtunnel._version import __version__
from windtunnel_local.runner.docker import (
    DockerRunner,
    DockerSettings,
    Engine,
    blackhole,
    cut_off,
    shared_files,
)
from windtunnel_local.runner.docker.containers import Containers
from windtunnel_local.runner.docker.shared_files import check_shared
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.service.ground.containers import ContainerPlan, Forward, JobPlan, LogLine, Mount
from windtunnel_local.service.ground.errors import ImageNotFound, RunnerError, RunnerUnavailable

pytestmark = pytest.mark.docker

HOST = "algo-1"
PATIENCE_S = 120.0


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[DockerRunner]:
    """A runner of a home of its own; removes all its containers."""
    runner = make_runner(tmp_path)
    yield runner
    for job in runner.jobs():
        runner.remove(job)
    runner.close()


@pytest.fixture(scope="module")
def information() -> dict[str, Any]:
    """What the engine says of itself."""
    engine = Engine()
    try:
        return {**engine.client().api.info(), **asdict(engine.kind)}
    finally:
        engine.close()


def make_runner(home: Path, network: HostNetwork | None = None) -> DockerRunner:
    """A runner as a (restarted) server makes it."""
    return DockerRunner(DockerSettings(home, "windtunnel-none:test", network=network or HostNetwork()))


def container(base: str, script: str, host: str = HOST, job: str = "job") -> ContainerPlan:
    """A host that runs a line of shell."""
    return container_plan(
        job=job,
        host=host,
        image=base,
        command=("sh", "-c", script),
        environment={"GREETING": "hello"},
        user=f"{os.getuid()}:{os.getgid()}",
        memory_bytes=256 << 20,
    )


def run(runner: DockerRunner, *containers: ContainerPlan) -> None:
    """Start one job."""
    runner.start(JobPlan(containers[0].job, containers))


def lines(runner: DockerRunner, host: str = HOST, cursor: str | None = None) -> list[str]:
    """All of a host's lines behind the cursor; waits for its end."""
    return [line.text for batch in runner.logs("job", host, cursor) for line in batch.lines]


def test_a_container_runs_prints_and_ends(
    runner: DockerRunner, base: str, information: dict[str, Any]
) -> None:
    """With its environment, host name, user and limits; the exit code and times are kept."""
    script = (
        'echo "$GREETING from $(hostname) as $(id -u):$(id -g)";'
        "df -m --output=size /dev/shm | tail -1 | tr -d ' ';"
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max; exit 3"
    )
    run(runner, container(base, script))
    user = "0:0" if information["rootless"] else f"{os.getuid()}:{os.getgid()}"
    limit = [str(256 << 20)] if information["limits_memory"] else []
    assert lines(runner)[: 2 + len(limit)] == [f"hello from algo-1 as {user}", "64", *limit]
    state = runner.wait("job", HOST, PATIENCE_S)
    assert (state.status, state.exit_code, state.oom_killed) == ("exited", 3, False)
    assert state.started_at is not None
    assert state.finished_at is not None
    assert state.finished_at >= state.started_at


def test_lines_come_while_the_job_runs_and_only_once(runner: DockerRunner, base: str, tmp_path: Path) -> None:
    """The job goes on when its line was read; a new server goes on behind the cursor."""
    read = tmp_path / "read"
    read.mkdir()
    script = "for i in 1 2 3 4 5 6; do echo $i; until [ -e /read/$i ]; do sleep 0.02; done; done"
    run(runner, replace(container(base, script), mounts=(Mount(str(read), "/read", read_only=True),)))
    batches = runner.logs("job", HOST, None)
    first: list[LogLine] = []
    cursor = None
    while len(first) < 3:
        batch = next(batches)
        first += batch.lines
        cursor = batch.cursor
        (read / first[-1].text).touch()
    batches.close()  # type: ignore[attr-defined]  # a generator
    for number in (4, 5, 6):
        (read / str(number)).touch()
    other = make_runner(tmp_path)
    assert [line.text for line in first] + lines(other, cursor=cursor) == ["1", "2", "3", "4", "5", "6"]
    assert lines(other, cursor=cursor) == ["4", "5", "6"]
    other.close()


def test_long_lines_are_joined_and_the_unfinished_last_is_delivered(runner: DockerRunner, base: str) -> None:
    """The engine splits at 16 KiB; nobody else needs to know."""
    long = 'head -c 50000 /dev/zero | tr "\\0" x'
    run(
        runner,
        container(base, f"{long}; echo; printf 'dos\\r\\n'; printf 'bad \\377\\n'; {long} >&2; printf end"),
    )
    got = lines(runner)
    assert sorted(got) == sorted(["x" * 50000, "dos", "bad \ufffd", "x" * 50000, "end"])


def test_many_lines_survive_many_cuts(runner: DockerRunner, base: str) -> None:
    """20,000 lines on two streams, read by followers that give up again and again."""
    script = "i=0; while [ $i -lt 10000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
    run(runner, container(base, script))
    got: list[str] = []
    cursor = None
    for patience in (1, 2, 3, 5, 8, 13, 21, None):
        batches = runner.logs("job", HOST, cursor)
        for number, batch in enumerate(batches):
            got += [line.text for line in batch.lines]
            cursor = batch.cursor
            if patience is not None and number >= patience:
                break
        batches.close()  # type: ignore[attr-defined]  # a generator
    assert [text for text in got if text[0] == "o"] == [f"o{i}" for i in range(10000)]
    assert [text for text in got if text[0] == "e"] == [f"e{i}" for i in range(10000)]


def test_sigterm_reaches_the_job_and_stop_is_quick_without_a_handler(runner: DockerRunner, base: str) -> None:
    """A handler runs; without one the process ends at once, as it is not process 1."""
    script = "trap 'echo saving; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    run(runner, container(base, script), container(base, "echo ready; exec sleep 600", "algo-2"))
    for host in (HOST, "algo-2"):
        assert next(iter(runner.logs("job", host, None))).lines[0].text == "ready"
    runner.terminate("job", HOST)
    runner.terminate("job", "algo-2")
    assert runner.wait("job", HOST, PATIENCE_S).exit_code == 7
    assert runner.wait("job", "algo-2", PATIENCE_S).exit_code == 143
    assert lines(runner) == ["ready", "saving"]
    runner.terminate("job", HOST)  # gone already: no error


def test_kill_counts_as_137(runner: DockerRunner, base: str) -> None:
    """Also when the job ignores SIGTERM."""
    run(runner, container(base, "trap '' TERM; echo ready; while :; do sleep 1; done"))
    assert next(iter(runner.logs("job", HOST, None))).lines[0].text == "ready"
    runner.terminate("job", HOST)
    assert runner.wait("job", HOST, 0.3).status == "running"
    runner.kill("job", HOST)
    assert runner.wait("job", HOST, PATIENCE_S).exit_code == 137
    runner.kill("job", HOST)
    runner.kill("nobody", HOST)


def test_too_much_memory_is_told_apart(runner: DockerRunner, base: str, information: dict[str, Any]) -> None:
    """The kernel's kill is marked as such, and swap does not soften the limit."""
    if not information["limits_memory"]:
        pytest.skip("this engine limits no memory")
    told = not (information["podman"] and information["CgroupVersion"] == "1")
    plan = replace(container(base, "exec tail /dev/zero"), memory_bytes=32 << 20)
    run(runner, plan)
    state = runner.wait("job", HOST, PATIENCE_S)
    assert state.status == "exited"
    assert state.exit_code == 137
    assert state.oom_killed == told


def test_hosts_of_a_job_find_each_other_and_equal_names_of_jobs_do_not_clash(
    base: str, tmp_path: Path
) -> None:
    """Two homes run a job of the same name with the same host names at the same time."""
    homes = [tmp_path / name for name in ("one", "two")]
    runners = [make_runner(home) for home in homes]
    look_up = "for h in algo-1 algo-2; do until getent hosts $h; do sleep 0.1; done; done >/dev/null"
    # Each stays until the other has looked, too.
    meet = "touch /met/$(hostname); until [ -e /met/algo-1 -a -e /met/algo-2 ]; do sleep 0.1; done"
    script = f"{look_up}; cat /met/me; {meet}"
    try:
        for home, runner in zip(homes, runners, strict=True):
            home.mkdir()
            (home / "me").write_text(f"{home.name}\n")
            mounts = (Mount(str(home), "/met"),)
            plans = [
                replace(container(base, script, host), network="a-network", mounts=mounts)
                for host in ("algo-1", "algo-2")
            ]
            run(runner, *plans)
        for home, runner in zip(homes, runners, strict=True):
            for host in ("algo-1", "algo-2"):
                assert lines(runner, host) == [home.name]
                assert runner.wait("job", host, PATIENCE_S).exit_code == 0
    finally:
        for runner in runners:
            runner.remove("job")
            assert runner.jobs() == set()
            runner.close()


def test_an_isolated_job_has_no_network_but_knows_itself(runner: DockerRunner, base: str) -> None:
    """EnableNetworkIsolation: only loopback, and the toolkit's look-up of algo-1 succeeds."""
    script = "ls /sys/class/net; getent hosts algo-1 | awk '{print $1}'"
    run(runner, replace(container(base, script), network="none"))
    assert lines(runner) == ["lo", "127.0.0.1"]


def test_starting_again_after_a_crash_makes_the_rest_good(
    runner: DockerRunner, base: str, tmp_path: Path
) -> None:
    """Created but not started, running, exited: each is kept and none runs twice."""
    plan = container(base, "echo once")
    engine = Engine()
    Containers(tmp_path, HostNetwork(), engine).create(JobPlan("job", (plan,)))
    engine.close()
    assert runner.state("job", HOST).status == "created"
    restarted = make_runner(tmp_path)
    run(restarted, plan)
    restarted.close()
    assert lines(runner) == ["once"]
    run(runner, plan)
    assert lines(runner) == ["once"]


def test_remove_ends_all_of_the_job_and_nothing_else(runner: DockerRunner, base: str) -> None:
    """Idempotent, network included."""
    run(runner, replace(container(base, "sleep 60"), network="net"))
    run(runner, container(base, "sleep 60", job="other"))
    assert runner.jobs() == {"job", "other"}
    runner.remove("job")
    runner.remove("job")
    assert runner.state("job", HOST).status == "absent"
    assert runner.jobs() == {"other"}
    assert list(runner.logs("job", HOST, None)) == []


def test_nested_mounts_belong_to_the_user_and_channels_are_read_only(
    runner: DockerRunner, base: str, tmp_path: Path
) -> None:
    """The mountpoint of a channel inside /opt/ml is made by us, not by the engine as root."""
    ml, data = tmp_path / "ml", tmp_path / "data"
    ml.mkdir()
    data.mkdir()
    (data / "train.csv").write_text("rows\n")
    mounts = (Mount(str(data), "/opt/ml/input/data/train", read_only=True), Mount(str(ml), "/opt/ml"))
    script = "cd /opt/ml; cat input/data/train/train.csv; touch model; touch input/data/train/x || echo no"
    run(runner, replace(container(base, f"({script}) 2>/dev/null"), mounts=mounts))
    assert lines(runner) == ["rows", "no"]
    for path in (ml / "model", ml / "input", ml / "input/data/train"):
        assert path.stat().st_uid == os.getuid()


def test_a_job_gets_no_privileges(runner: DockerRunner, base: str, information: dict[str, Any]) -> None:
    """Whoever it runs as: few capabilities, none to gain. A rootless engine's are over this user's own files."""
    run(
        runner,
        replace(
            container(base, "grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status", HOST), user="12345:12345"
        ),
        replace(container(base, "grep -E '^CapBnd' /proc/self/status", "algo-2"), user="0:0"),
    )
    user, root = ("ca", "ca") if information["rootless"] else ("00", "cb")
    assert [line.split() for line in lines(runner)] == [["CapBnd:", f"{user:0>16}"], ["NoNewPrivs:", "1"]]
    assert [line.split() for line in lines(runner, "algo-2")] == [["CapBnd:", f"{root:0>16}"]]


def test_what_a_job_unpacks_is_this_users(runner: DockerRunner, base: str, tmp_path: Path) -> None:
    """Also as root of a rootless engine, where a file of another user's could not be removed by anybody here."""
    out = tmp_path / "out"
    out.mkdir()
    script = (
        "cd /out && mkdir a && touch a/f && tar cf a.tar --owner=1000 --group=1000 a && rm -r a && tar xf a.tar &&"
        ' python3 -c \'import tarfile; tarfile.open("a.tar").extractall("b")\' && echo done'
    )
    run(runner, replace(container(base, script), mounts=(Mount(str(out), "/out"),)))
    assert lines(runner) == ["done"]
    if os.getuid():
        assert {path.stat().st_uid for path in out.rglob("*")} == {os.getuid()}


def test_the_hosts_ca_bundle_reaches_the_job(base: str, tmp_path: Path) -> None:
    """So that pip works in jobs behind a proxy that inspects TLS; what the plan sets wins."""
    bundle = tmp_path / "ca.crt"
    bundle.write_text("certificates\n")
    runner = make_runner(tmp_path, HostNetwork(bundle, {"PIP_INDEX_URL": "http://index.test/"}, {}))
    try:
        plan = container(
            base, 'cat "$PIP_CERT" "$SSL_CERT_FILE"; echo "$PIP_INDEX_URL" "$REQUESTS_CA_BUNDLE"'
        )
        run(runner, replace(plan, environment={"REQUESTS_CA_BUNDLE": "mine"}))
        assert lines(runner) == ["certificates", "certificates", "http://index.test/ mine"]
    finally:
        runner.remove("job")
        runner.close()


def test_what_cannot_start_says_why(
    runner: DockerRunner, base: str, tmp_path: Path, information: dict[str, Any]
) -> None:
    """Each message names what was wrong, and the next job runs."""
    with pytest.raises(ImageNotFound, match=r"no image windtunnel-nowhere:1.*docker pull"):
        run(runner, replace(container(base, ""), image="windtunnel-nowhere:1"))
    with pytest.raises(ImageNotFound, match="docker pull windtunnel-nowhere:1"):
        runner.ensure_image("windtunnel-nowhere:1", print)
    missing = Mount(str(tmp_path / "missing"), "/opt/ml")
    with pytest.raises(RunnerError, match=r"missing.*does not exist"):
        run(runner, replace(container(base, "", job="mount"), mounts=(missing,)))
    run(runner, replace(container(base, "", host="algo-2"), command=("no-such-program",)))
    assert any("No such file or directory" in line for line in lines(runner, "algo-2"))
    assert runner.wait("job", "algo-2", PATIENCE_S).exit_code == (1 if information["podman"] else 127)
    runner.ensure_image(base, print)
    run(runner, container(base, "echo fine"))
    assert lines(runner) == ["fine"]


def test_no_engine_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked of the runner."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(RunnerUnavailable, match="DOCKER_HOST"):
        make_runner(tmp_path).jobs()


def test_a_backend_that_cannot_be_reached_fails_the_start(
    runner: DockerRunner, base: str, tmp_path: Path
) -> None:
    """Not the script's first call of S3, many minutes later."""
    (tmp_path / "api").mkdir()
    plan = replace(container(base, "sleep 60"), forward=Forward(20000, str(tmp_path / "api" / "socket")))
    with pytest.raises(
        RunnerError, match=r"job cannot reach the backend from algo-1: .*WINDTUNNEL_AWS_IN_JOBS"
    ):
        run(runner, plan)


def test_a_job_on_a_clouds_machine_does_not_reach_its_metadata_service(
    base: str, runner: DockerRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The route is gone soon after the start, and the job has no right to bring it back."""
    image = os.environ.get("WINDTUNNEL_IMAGE", f"windtunnel-training:{__version__}")
    vendor = tmp_path / "sys_vendor"
    assert not cut_off.is_of_a_cloud(vendor)
    vendor.write_text("Amazon EC2\n")
    assert cut_off.is_of_a_cloud(vendor)
    monkeypatch.setattr(cut_off, "is_of_a_cloud", lambda: True)
    again = Path(blackhole.__file__).read_text()
    script = (
        "import errno, socket, subprocess, sys, time\n"
        "for attempt in range(3000):\n"
        "    try:\n"
        "        socket.create_connection(('169.254.169.254', 80), timeout=0.1).close()\n"
        "    except OSError as error:\n"
        "        if error.errno == errno.EINVAL: break\n"
        "    time.sleep(0.1)\n"
        "else:\n"
        "    sys.exit(1)\n"
        f"undone = subprocess.run([sys.executable, '-c', {again!r}, '10.9.9.9'], stderr=subprocess.DEVNULL)\n"
        "sys.exit(0 if undone.returncode else 2)\n"
    )
    plan = replace(container(base, ""), image=image, command=("python3", "-c", script), entrypoint=None)
    runner.start(JobPlan("job", (plan,)))
    assert runner.wait("job", HOST, PATIENCE_S).exit_code == 0


def test_what_cuts_a_job_off_is_removed_with_it(
    base: str, runner: DockerRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that is killed in between leaves a container that has no name of its own."""

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(cut_off, "is_of_a_cloud", lambda: True)
    with monkeypatch.context() as patch:
        patch.setattr(APIClient, "remove_container", killed)
        with pytest.raises(Killed):
            run(runner, container(base, "sleep 60"))
    with closing(Engine()) as engine:
        api = engine.client().api
        (job,) = api.containers(filters={"label": f"windtunnel.home={tmp_path}"})

        def left() -> list[Any]:
            guest = f"container:{job['Id']}"
            return [one for one in api.containers(all=True) if one["HostConfig"]["NetworkMode"] == guest]

        assert len(left()) == 1
        runner.remove("job")
        assert not left()


def test_no_container_is_made_to_see_whether_files_are_shared(
    tmp_path: Path, information: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker looks at mounts first: without its folder the answer is another one."""
    if information["podman"]:
        pytest.skip("Podman tells nothing")
    said: list[str] = []
    create = APIClient.create_container

    def listening(*arguments: Any, **named: Any) -> Any:
        try:
            return create(*arguments, **named)
        except APIError as error:
            said.append(str(error.explanation))
            raise

    monkeypatch.setattr(APIClient, "create_container", listening)
    with closing(Engine()) as engine:
        check_shared(engine, tmp_path)
        monkeypatch.setattr(
            shared_files, "TemporaryDirectory", lambda **_: nullcontext(str(tmp_path / "not-there"))
        )
        with pytest.raises(RunnerError, match=f"does not see {tmp_path} of this machine"):
            check_shared(engine, tmp_path)
    assert [("runtime" in words, "does not exist" in words) for words in said] == [
        (True, False),
        (False, True),
    ]


def test_a_port_is_called_at_the_containers_own_address(
    base: str, runner: DockerRunner, information: dict[str, Any]
) -> None:
    """Where the engine has its bridges on this machine: no proxy of its stands between."""
    script = (
        "import socketserver\n"
        "class Hello(socketserver.BaseRequestHandler):\n"
        "    def handle(self): self.request.sendall(b'hello')\n"
        "socketserver.TCPServer(('', 8080), Hello).serve_forever()\n"
    )
    assert runner.address("job", HOST) is None
    run(runner, replace(container(base, ""), command=("python3", "-c", script), port=8080))
    address = runner.address("job", HOST)
    assert address is not None
    assert (address[1] == 8080) != (information["rootless"] or information["podman"])
    deadline = time.monotonic() + PATIENCE_S
    said = b""
    while not said:  # a proxy takes a connection, and lets it go again, before there is a server
        assert time.monotonic() < deadline
        with suppress(ConnectionError), socket.create_connection(address, timeout=PATIENCE_S) as connection:
            said = connection.recv(5)
        time.sleep(0.05)
    assert said == b"hello"
