"""Containers that are kept: their orders, whose log lines are whose, what they are labelled with."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from docker.errors import NotFound
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim.warm.orders import Folder
from tests.fakes.engine import DOCKER, runner_of
from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import create_arguments, kept_containers, log_marks
from windtunnel_local.runner.docker.keeper_orders import Orders
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.service.ground.containers import (
    ContainerState,
    JobPlan,
    Keeper,
    LogBatch,
    LogLine,
    Mount,
)

PLAN = container_plan(
    job="one",
    environment={"TRAINING_JOB_NAME": "one"},
    mounts=(Mount("/jobs/one/ml", "/opt/ml"),),
    user="1000:1000",
    memory_bytes=1 << 30,
    shm_bytes=1 << 29,
    keeper=Keeper("/jobs/one/keeper", "/opt/windtunnel/keeper", {"HOME": "/opt/windtunnel/home"}),
)
ORDERS = ["1" * 32, "2" * 32, "3" * 32]
RUNNING = ContainerState("running")


def mark(order: str, stream: int) -> str:
    """As `neuron_sim.warm.keeper.end_mark` writes it; `test_keeper` holds the two equal."""
    return f"\x1ewindtunnel:end:{order}:{stream}\x1e"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of orders, empty."""
    (tmp_path / "keeper").mkdir()
    return tmp_path / "keeper"


@pytest.fixture
def orders(folder: Path) -> Orders:
    """The backend's side of it."""
    orders = Orders(folder)
    orders.prepare()
    return orders


@pytest.fixture
def keeper(folder: Path, orders: Orders) -> Folder:
    """The keeper's side, as it is when the container has started."""
    return Folder(folder)


def test_a_container_that_is_kept_has_no_variable_of_a_job() -> None:
    """They come with the order; the next job's process is started by the same keeper."""
    arguments = create_arguments.container_arguments(
        PLAN, create_arguments.Names(Path("/home")), HostNetwork()
    )
    assert arguments["entrypoint"] == ["windtunnel-keeper"]
    assert arguments["command"] == ["/opt/windtunnel/keeper"]
    assert arguments["environment"] == {"HOME": "/opt/windtunnel/home"}
    assert arguments["labels"][kept_containers.KEEPER_LABEL] == "/jobs/one/keeper"


def test_the_shape_is_what_a_running_container_cannot_change() -> None:
    """Command, variables and labels are a job's own."""
    same = replace(PLAN, command=("x",), environment={"A": "1"}, labels={"b": "2"}, entrypoint=("e",))
    assert kept_containers.shape(same) == kept_containers.shape(PLAN)
    others = [
        replace(PLAN, image="other"),
        replace(PLAN, mounts=()),
        replace(PLAN, memory_bytes=2 << 30),
        replace(PLAN, user="0:0"),
        replace(PLAN, isolated=True),
    ]
    assert len({kept_containers.shape(plan) for plan in (PLAN, *others)}) == len(others) + 1


def test_a_kept_container_fits_however_full_memory_is(folder: Path, tmp_path: Path) -> None:
    """Each job in it has the memory that is free when it comes; one that goes on keeps what it has."""
    keeper = Keeper(str(folder), "/keeper", {})
    plan = JobPlan("one", (replace(PLAN, mounts=(), network="none", memory_bytes=8 << 30, keeper=keeper),))
    name = create_arguments.Names(tmp_path).container("one", "algo-1")
    made: dict[str, Any] = {}
    limits: list[int] = []

    def created(body: dict[str, Any]) -> dict[str, Any]:
        made.update(made or body)
        return {"Id": "1"}

    def updated(body: dict[str, Any]) -> dict[str, Any]:
        limits.append(body["Memory"])
        return {}

    def inspected(_: None) -> dict[str, Any]:
        return {
            "State": {"Status": "running", "StartedAt": "2026-01-02T03:04:05Z"},
            "Config": made,
            "Image": "x",
        }

    answers = {
        "POST /containers/create": (201, created),
        f"GET /containers/{name}/json": (200, inspected),
        f"POST /containers/{name}/update": (200, updated),
        "GET /images/image/json": (200, {"Id": "x"}),
    }
    with runner_of(tmp_path, DOCKER | answers) as (runner, _), pytest.MonkeyPatch.context() as patch:
        for room_gib in (4, 3, 16):
            patch.setattr(machine_memory, "room_bytes", lambda room=room_gib << 30: room)
            runner.start(plan)
            runner.start(plan)
            Orders(folder).withdraw()
            assert runner.fits(plan)
    assert made["HostConfig"]["Memory"] == 4 << 30
    assert limits == [4 << 30, 3 << 30, 8 << 30]


def test_the_state_is_the_job_s(orders: Orders, keeper: Folder) -> None:
    """From the order to its end, and again for the next one."""
    assert kept_containers.state_of(orders, RUNNING).status == "created"
    assert kept_containers.state_of(orders, ContainerState("exited", exit_code=0)).status == "absent"
    orders.give(["train"], {"A": "1"})
    orders.give(["something else"], {})
    given = keeper.order()
    assert given is not None
    assert (given.command, given.environment) == (("train",), {"A": "1"}), "an order is given once"
    assert kept_containers.state_of(orders, RUNNING).status == "running"
    keeper.write("started.json", id=given.id, at="2026-01-02T03:04:05+00:00")
    keeper.write("ended.json", id="another", exit_code=0)
    assert kept_containers.state_of(orders, RUNNING).status == "running"
    died = kept_containers.state_of(orders, ContainerState("exited", exit_code=137))
    assert (died.status, died.exit_code) == ("exited", 137)
    keeper.write("ended.json", id=given.id, exit_code=3, oom_killed=True, at="2026-01-02T03:04:06+00:00")
    state = kept_containers.state_of(orders, RUNNING)
    assert (state.status, state.exit_code, state.oom_killed) == ("exited", 3, True)
    assert state.started_at and state.finished_at and state.started_at < state.finished_at
    orders.withdraw()
    assert kept_containers.state_of(orders, RUNNING).status == "created"


class Removing:
    """An engine whose container somebody removes, or stops, behind the first look; also its client and `api`."""

    def __init__(self, folder: Path, then: str | None) -> None:
        self._states = iter(["running"])
        self._then = then
        self._labels = {kept_containers.KEEPER_LABEL: str(folder)}
        self.api = self

    def client(self) -> Removing:
        return self

    def inspect_container(self, name: str) -> dict[str, Any]:
        """What is asked first is running."""
        status = next(self._states, self._then)
        if status is None:
            raise NotFound(name)
        return {"State": {"Status": status}, "Config": {"Labels": self._labels}}

    def kill(self, name: str, signal: str) -> None:
        """There is no keeper that would hear it."""


@pytest.mark.parametrize("then", [None, "exited", "paused"])
def test_a_container_that_goes_is_not_waited_for(
    orders: Orders, keeper: Folder, folder: Path, monkeypatch: pytest.MonkeyPatch, then: str | None
) -> None:
    """The next job, which might have it, waits meanwhile."""
    monkeypatch.setattr(kept_containers, "_CLEAN_PATIENCE_S", 60.0)
    monkeypatch.setattr(kept_containers, "_LOOK_S", 0.01)
    orders.give(["train"], {})
    keeper.write("ended.json", id=orders.current(), exit_code=0)
    keeping = kept_containers.Keeping(Removing(folder, then))  # type: ignore[arg-type]
    begun = time.monotonic()
    assert not keeping.retain({"kept": PLAN}, datetime.now(timezone.utc))
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("trick", ["link", "pipe", "folder", "list", "huge"])
def test_what_a_job_puts_into_the_folder_does_no_harm(
    orders: Orders, keeper: Folder, folder: Path, trick: str
) -> None:
    """It runs as the same user: no link is followed, nothing is waited for, nothing outside is written."""
    outside = folder.parent / "outside"
    outside.write_text("precious")
    for name in ("order.json", "ended.json", "until.json"):
        path = folder / name
        if trick == "link":
            path.symlink_to(outside)
        elif trick == "pipe":
            os.mkfifo(path)
        elif trick == "folder" and name == "ended.json":
            path.mkdir()
        elif trick == "list":
            path.write_text("[1]")
        elif trick == "huge":
            path.write_text("{" + " " * (2 << 20))
    assert orders.current() is None
    assert orders.ended() is None
    assert (keeper.order(), keeper.clean(), keeper.until()) == (None, None, None)
    orders.give(["train"], {})
    orders.keep_until(12.5)
    assert orders.current() is not None
    assert outside.read_text() == "precious"


def test_only_the_keeper_is_believed(orders: Orders, keeper: Folder, folder: Path) -> None:
    """A job says that it has ended and that all is clean, and would live on: it lacks the key."""
    orders.give(["train"], {})
    order = orders.current()
    assert order is not None
    assert not (folder / "key").exists(), "the keeper has taken it away before any job ran"
    identity = orders.clean()
    for said in ({"id": order, "exit_code": 0}, {"id": identity, "problems": []}):
        for seal in ("", "0" * 64, "\ud800", keeper.mark(order)):
            wrapped = json.dumps({"record": json.dumps(said), "seal": seal})
            for text in (wrapped, json.dumps(said)):
                (folder / "ended.json").write_text(text)
                (folder / "cleaned.json").write_text(text)
                assert orders.ended() is None
                assert orders.cleaned(identity) is None
    (folder / "ended.json").write_text("[" * 100_000)  # deeper than can be read
    assert orders.ended() is None
    keeper.write("started.json", id=order)
    for name in ("ended.json", "cleaned.json"):  # a record's seal is for its own name
        (folder / name).write_bytes((folder / "started.json").read_bytes())
    assert orders.ended() is None
    keeper.write("ended.json", id=order, exit_code=0)
    keeper.write("cleaned.json", id=identity, problems=[])
    assert orders.ended() == {"id": order, "exit_code": 0}
    assert orders.cleaned(identity) == []


def test_a_job_cannot_order_anything(orders: Orders, keeper: Folder, folder: Path) -> None:
    """Nor hide from the backend that it has an order."""
    orders.give(["train"], {})
    order = orders.current()
    forged = {"id": "f" * 32, "command": ["stay"], "environment": {}}
    (folder / "order.json").write_text(json.dumps({"record": json.dumps(forged), "seal": "0" * 64}))
    (folder / "until.json").write_text(json.dumps({"unix_s": 1e12}))
    assert (keeper.order(), keeper.until()) == (None, None)
    assert orders.current() == order
    (folder / "order.json").unlink()
    assert orders.current() == order
    assert Orders(folder).current() == order, "also after the backend was started anew"


def test_the_time_of_an_idle_container_ends_with_an_order(orders: Orders, keeper: Folder) -> None:
    """Else it would end by itself right behind the job that came meanwhile."""
    orders.keep_until(12.5)
    assert keeper.until() == 12.5
    orders.give(["train"], {})
    assert keeper.until() is None


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """What each job prints, and the log's lines: stdout and stderr of one job mixed as the engine may."""
    jobs, lines = [], []
    for order in ORDERS:
        streams = []
        for number in (1, 2):
            own = draw(st.lists(st.text("ab\x1e ", min_size=0, max_size=4), max_size=4))
            unended = draw(st.sampled_from(["", "tail"]))
            first = unended + mark(order, number)
            streams.append((own + ([unended] if unended else []), [*own, first, mark(order, number)]))
        mixed: list[str] = []
        rest = [list(stream[1]) for stream in streams]
        while any(rest):
            mixed.append(draw(st.sampled_from([r for r in rest if r])).pop(0))
        jobs.append(sorted(streams[0][0] + streams[1][0]))
        lines.append(mixed)
    return jobs, lines


@given(logs=logs(), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8), data=st.data())
def test_each_job_gets_its_own_lines_once(
    logs: tuple[list[list[str]], list[list[str]]], sizes: list[int], data: st.DataObject
) -> None:
    """However the log is cut into batches, and wherever reading is broken off and resumed."""
    jobs, per_job = logs
    lines = [line for job in per_job for line in job]

    def batches(cursor: str | None) -> Iterator[LogBatch]:
        position, turn = int(cursor or 0), 0
        while position < len(lines):
            size = sizes[turn % len(sizes)]
            texts = tuple(LogLine(0, text) for text in lines[position : position + size])
            position, turn = min(position + size, len(lines)), turn + 1
            yield LogBatch(texts, str(position))

    # A batch never spans two jobs: the second is ordered when the first one's log was read to its end.
    cuts = [sum(len(job) for job in per_job[: i + 1]) for i in range(len(per_job))]
    cursor: str | None = None
    for number, order in enumerate(ORDERS):
        read: list[str] = []
        whole = lines
        lines = whole[: cuts[number]]
        for _ in range(100):
            position, ended = log_marks.split_cursor(cursor, f"order {order}")
            if log_marks.is_complete(ended):
                break
            for batch in log_marks.own_lines(batches(position), f"order {order}", order, ended):
                read += [line.text for line in batch.lines]
                cursor = batch.cursor
                if data.draw(st.booleans()):
                    break  # the server is killed here
        lines = whole
        assert sorted(read) == jobs[number]
