"""Of a container that ended while its engine did: who was it?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.plans import container_plan
from tests.faults.engine import BASE, PrivateEngine, can_run
from tests.waiting import wait_for
from windtunnel_local.runner.docker import DockerRunner, DockerSettings, shims
from windtunnel_local.service.ground.containers import ContainerPlan, JobPlan, Mount
from windtunnel_local.service.ground.errors import RunnerUnavailable

pytestmark = [
    pytest.mark.docker,
    # docker-py does not close a socket at which nobody answers.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.skipif(not can_run(), reason="a second Docker engine needs root, dockerd and unshare"),
]
HOST = "algo-1"
RUNTIME = """
for word; do
    [ "$word" = start ] && [ -e stall ] && { runc "$@"; touch stalled; sleep 600; exit 1; }
done
exec runc "$@"
"""
"""With a file `stall`, a start does not come back, though the container runs."""
_GO = "until [ -e /go/now ]; do sleep 0.05; done"
# Those that end do so when the engine is gone already: one that is killed meanwhile makes up their exit code.
SCRIPTS = {
    "long": "while :; do echo on; sleep 0.2; done",
    "polite": 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.2; done',
    "well": f"{_GO}; echo last words",
    "badly": f"{_GO}; exit 3",
    "killed": f"{_GO}; kill -9 $$",
    "odd": f"{_GO}; exit 255",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    """An engine that may be killed."""
    engine = PrivateEngine(live_restore=False, runtime=RUNTIME)
    try:
        engine.start()
        engine.load_base()
        yield engine
    finally:
        engine.close()


@pytest.fixture
def runner(engine: PrivateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerRunner]:
    """A runner on it, with a container for each script; the one that listens for a signal does so."""
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    runner = DockerRunner(DockerSettings(tmp_path, "windtunnel-none:test"))
    (tmp_path / "go").mkdir()
    go = Mount(str(tmp_path / "go"), "/go", read_only=True)
    for job, script in SCRIPTS.items():
        runner.start(JobPlan(job, (replace(plan(job, script), mounts=(go,)),)))
    lines = runner.logs("polite", HOST, None)
    assert next(iter(lines)).lines[0].text == "ready"
    lines.close()  # type: ignore[attr-defined]  # a generator
    yield runner
    for job in SCRIPTS:
        wait_for(partial(removed, runner, job), patience_s=120)
    runner.close()


def plan(job: str, script: str) -> ContainerPlan:
    """A host that runs a line of shell."""
    return container_plan(
        job=job,
        host=HOST,
        image=BASE,
        command=("sh", "-c", script),
        user=f"{os.getuid()}:{os.getgid()}",
        network="none",
        memory_bytes=64 << 20,
    )


def removed(runner: DockerRunner, job: str) -> bool:
    """Remove it; False: the engine did not answer, and is asked again, as the service does."""
    with suppress(RunnerUnavailable):
        runner.remove(job)
        return True
    return False


def ends(runner: DockerRunner, *jobs: str) -> dict[str, tuple[int | None, bool]]:
    """Exit code, and whether the container was lost."""
    states = {job: runner.state(job, HOST) for job in jobs}
    return {job: (state.exit_code, state.lost) for job, state in states.items() if state.status == "exited"}


def test_killed_and_started_again(engine: PrivateEngine, runner: DockerRunner, tmp_path: Path) -> None:
    """It stops all that still runs: that is its doing, also where a script makes the best of it."""
    engine.kill()
    with pytest.raises(RunnerUnavailable, match="Cannot reach Docker"):
        runner.state("long", HOST)
    (tmp_path / "go" / "now").touch()
    wait_for(lambda: "/go/now" not in engine.inside("ps", "-eo", "args"), patience_s=120)
    engine.start(live_restore=False)
    assert ends(runner, "long", "polite") == {"long": (143, True), "polite": (0, True)}
    assert ends(runner, "well", "badly") == {"well": (0, False), "badly": (3, False)}
    # Nobody can tell who sent the signal, when any engine may have.
    assert ends(runner, "killed") == {"killed": (137, True)}


def test_killed_and_started_again_with_live_restore(
    engine: PrivateEngine, runner: DockerRunner, tmp_path: Path
) -> None:
    """It takes nothing along; what was printed meanwhile is there, also of a container that ended."""
    batches = runner.logs("well", HOST, None)
    engine.kill()
    engine.start(live_restore=True)
    (tmp_path / "go" / "now").touch()
    held = [line.text for batch in batches for line in batch.lines]
    assert held == ["last words"]
    wait_for(lambda: len(ends(runner, "well", "badly", "killed", "odd")) == 4, patience_s=120)
    assert ends(runner, *SCRIPTS) == {
        "well": (0, False),
        "badly": (3, False),
        "killed": (137, False),
        "odd": (255, False),
    }


def test_killed_while_it_starts_a_container(
    engine: PrivateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It forgets what it has started; removing that ends it, so that it never runs beside its successor."""
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    runner, half = (
        DockerRunner(DockerSettings(tmp_path, "windtunnel-none:test")),
        JobPlan("half", (plan("half", "sleep 999"),)),
    )
    (engine.folder / "stall").touch()
    with ThreadPoolExecutor() as pool:
        starting = pool.submit(runner.start, half)
        wait_for((engine.folder / "stalled").exists, patience_s=120)
        (found,) = engine.client().api.containers(all=True)
        engine.kill()
        with pytest.raises(RunnerUnavailable):
            starting.result(120)
    (engine.folder / "stall").unlink()
    engine.start(live_restore=True)
    assert runner.state("half", HOST).status == "created"
    shim = shims.find(found["Id"])
    assert shim is not None
    assert (shim / "task" / shim.name / "children").read_text() != "", "its script runs"
    runner.remove("half")
    assert not shim.exists() or "Z" in (shim / "stat").read_text()
    assert shims.find(found["Id"]) is None
    runner.start(half)
    assert runner.state("half", HOST).status == "running"
    runner.remove("half")
    runner.close()


def test_the_machine_goes_down(engine: PrivateEngine, runner: DockerRunner) -> None:
    """Whatever ran is lost; the engine makes up an exit code."""
    engine.power_cut()
    engine.start(live_restore=True)
    assert ends(runner, "long", "polite") == {"long": (255, True), "polite": (255, True)}


def test_a_signal_from_somebody_else(runner: DockerRunner, tmp_path: Path) -> None:
    """`docker kill`, and the script's own way: the engine was there all the time."""
    (tmp_path / "go" / "now").touch()
    runner.kill("long", HOST)
    runner.terminate("polite", HOST)
    states = {job: runner.wait(job, HOST, 120) for job in ("long", "polite", "odd")}
    assert {job: (state.exit_code, state.lost) for job, state in states.items()} == {
        "long": (137, False),
        "polite": (0, False),
        "odd": (255, False),
    }
