"""The line in which jobs wait for room."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.clock import START
from tests.unit.service.samples import config, job, request
from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.lifecycle import begin
from windtunnel_local.service.running.queue import NOTHING, Need, Queue, need_of

HOME = Path("/home")
CONFIG = config(HOME, max_cores=8, max_memory_bytes=20 * GIB)
LIMIT = Need(8, 20 * GIB)
SIZES = st.tuples(st.integers(1, 4), st.integers(1, 10))
"""Hosts, and cores of each: needs of 1 to 40 cores and 2.5 to 28 GiB."""


def sized(name: str, cores: int, hosts: int = 1, *, after_s: int = 0) -> Job:
    """A job of that many hosts, and cores of each, that was created so long after the first."""
    asked = request(
        name,
        ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": hosts},
        Environment={"WINDTUNNEL_LOCAL_CORES": str(cores)},
    )
    return replace(job(HOME, asked), lifecycle=begin(START + timedelta(seconds=after_s)))


def nothing() -> None:
    """Nobody waits to be woken."""


@given(st.lists(SIZES, min_size=1, max_size=12), st.data())
def test_first_come_first_served_and_never_too_much(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Whoever asks and ends in whatever order: jobs are let in as they came, and fit together."""
    queue = Queue(CONFIG)
    jobs = [
        sized(f"job-{number}", cores, hosts, after_s=number) for number, (hosts, cores) in enumerate(sizes)
    ]
    needs = [need_of(each, CONFIG) for each in jobs]
    for each in jobs:
        queue.enter(each, nothing)
    running: list[int] = []
    entered: list[int] = []
    waiting = list(range(len(needs)))
    while running or waiting:
        for number in data.draw(st.permutations(waiting)):
            if queue.admit(f"job-{number}") is None:
                running.append(number)
                entered.append(number)
        waiting = [number for number in waiting if number not in entered]
        together = NOTHING
        for number in running:
            together += needs[number].clipped(LIMIT)
        assert together.within(LIMIT)
        if not waiting or data.draw(st.booleans()):
            if running:
                queue.leave(f"job-{running.pop(data.draw(st.integers(0, len(running) - 1)))}")
        elif not running:
            assert queue.admit(f"job-{waiting[0]}") is None, "one job always fits"
            entered.append(waiting[0])
            running.append(waiting.pop(0))
    assert entered == sorted(entered)


def test_the_next_is_woken() -> None:
    """When there is room, and when a place before it is given up; a small one does not overtake."""
    woken: list[int] = []
    queue = Queue(CONFIG)
    for number, cores in enumerate((6, 6, 1)):
        queue.enter(sized(f"{number}", cores, after_s=number), partial(woken.append, number))
    assert queue.admit("0") is None
    said = queue.admit("1")
    assert said is not None
    assert "needs 6 cores and 5 GiB" in said
    assert "running: 1 (0), waiting before it: 0" in said
    assert "waiting before it: 1" in str(queue.admit("2"))
    woken.clear()
    queue.leave("1")
    assert woken == [2]
    assert queue.admit("2") is None


def test_kept_containers_end_before_a_job_waits_for_them() -> None:
    """Oldest first, and no more of them than their room is needed."""
    ended: list[str] = []
    queue = Queue(CONFIG)

    def ends(slot: str) -> None:
        ended.append(slot)
        queue.unpark(slot)

    for slot in ("old", "new"):
        queue.park(sized(slot, 3), partial(ends, slot))
    queue.enter(sized("job", 4), nothing)
    assert queue.admit("job") is None
    assert ended == ["old"]


def test_adopted_jobs_keep_their_room() -> None:
    """A server that starts knows who runs before it lets anybody in."""
    queue = Queue(CONFIG)
    queue.hold(sized("runs", 8))
    queue.enter(sized("waits", 1), nothing)
    assert queue.admit("waits") is not None
    queue.leave("runs")
    queue.leave("runs")
    assert queue.admit("waits") is None
    assert queue.admit("unknown") is None, "who is not in line is not held up"


def test_what_a_job_needs(tmp_path: Path) -> None:
    """A process a simulated core, on every host; never more memory than the container may take."""
    small = job(tmp_path, request())
    assert need_of(small, config(tmp_path)) == Need(2, 3 * GIB)
    wide = job(
        tmp_path, request(hosts=2, ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2})
    )
    assert need_of(wide, config(tmp_path)) == Need(64, 36 * GIB)
    limited = config(tmp_path, memory_cap_bytes=GIB)
    one = job(tmp_path, request(Environment={"WINDTUNNEL_LOCAL_CORES": "1"}))
    assert need_of(one, limited) == Need(1, GIB)
    nonsense = job(tmp_path, request(Environment={"WINDTUNNEL_LOCAL_CORES": "many"}))
    assert need_of(nonsense, limited) == Need(2, GIB)
