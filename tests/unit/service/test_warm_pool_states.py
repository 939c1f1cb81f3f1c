"""The life of a warm pool as a pure state machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.fakes.clock import START
from tests.unit.service.samples import job, request
from windtunnel_local.service.ground import lifecycle, warm_pool_states
from windtunnel_local.service.ground.job import Job

NEXT = {
    "InUse": {"InUse", "Available", "Terminated"},
    "Available": {"Available", "Reused", "Terminated"},
    "Reused": {"Reused"},
    "Terminated": {"Terminated"},
}


def asked(keep_s: int, name: str = "one") -> Job:
    """A job that asks for its containers to be kept."""
    resources = {
        "InstanceType": "ml.trn1.2xlarge",
        "InstanceCount": 1,
        "VolumeSizeInGB": 30,
        "KeepAlivePeriodInSeconds": keep_s,
    }
    made = job(Path("/home"), request(name, ResourceConfig=resources))
    return replace(made, warm_pool=warm_pool_states.begin(made))


def after(made: Job, *events: lifecycle.Event, now: datetime = START) -> Job:
    """The job after its events, as the backend records it."""
    for event in events:
        life = lifecycle.advance(made.lifecycle, event, now)
        made = warm_pool_states.at_end(replace(made, lifecycle=life), now)
    return made


TRAINED = (lifecycle.DownloadStarted(), lifecycle.TrainingStarted())


class PoolMachine(RuleBasedStateMachine):
    """Any order of what can happen to a job's pool, with a clock that only goes forward."""

    def __init__(self) -> None:
        """One job that trains."""
        super().__init__()
        self.now = START
        self.job = after(asked(100), *TRAINED, now=self.now)
        self.seen = "InUse"
        self.bill: int | None = None

    @property
    def status(self) -> str:
        """Of the pool."""
        assert self.job.warm_pool is not None
        return self.job.warm_pool.status

    @rule(seconds=st.integers(0, 200))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    @precondition(lambda self: not self.job.lifecycle.finished)
    @rule(reason=st.sampled_from([None, "AlgorithmError: x", "ClientError: x", "InternalServerError: x"]))
    def end(self, reason: str | None) -> None:
        """The job ends, well or not."""
        last = lifecycle.Succeeded() if reason is None else lifecycle.Failed(reason)
        self.job = after(self.job, lifecycle.UploadStarted(reason), last, now=self.now)
        own = reason is None or not reason.startswith("Internal")
        assert self.status == ("Available" if own and self.job.keep_alive_s else "Terminated")

    @rule(seconds=st.integers(0, 300))
    def update(self, seconds: int) -> None:
        """The user changes the period."""
        self.job = replace(self.job, updates={"ResourceConfig": {"KeepAlivePeriodInSeconds": seconds}})

    @rule()
    def take(self) -> None:
        """Another job takes it over, if it still can."""
        before = self.status
        self.job = warm_pool_states.reused(self.job, "two", self.now)
        assert self.status == ("Reused" if before == "Available" else before)

    @rule()
    def terminate(self) -> None:
        """It is ended, if it still can be."""
        before = self.status
        self.job = warm_pool_states.terminated(self.job, self.now)
        assert self.status == ("Terminated" if before == "Available" else before)

    @invariant()
    def holds(self) -> None:
        """Only AWS's transitions; billed once, for the time kept, within the period."""
        pool = self.job.warm_pool
        assert pool is not None
        assert pool.status in NEXT[self.seen]
        self.seen = pool.status
        assert (pool.retained_billable_s is not None) == (pool.status in ("Reused", "Terminated"))
        assert (pool.reused_by is not None) == (pool.status == "Reused")
        assert self.bill in (None, pool.retained_billable_s)
        self.bill = pool.retained_billable_s
        if self.bill is not None:
            assert 0 <= self.bill <= 300


TestPoolMachine = PoolMachine.TestCase


@pytest.mark.parametrize("started", [False, True])
def test_a_stopped_job_leaves_a_pool_once_its_cluster_was_there(started: bool) -> None:
    """As AWS says: a job that was stopped before it had one has nothing to leave."""
    made = after(asked(100), *(TRAINED if started else ()), lifecycle.StopRequested())
    made = after(made, *([lifecycle.UploadStarted()] if started else []), lifecycle.Stopped())
    assert made.warm_pool is not None
    assert made.warm_pool.status == ("Available" if started else "Terminated")


def test_no_pool_is_older_than_28_days() -> None:
    """However often it is taken over."""
    made = after(asked(3600), *TRAINED)
    assert made.warm_pool is not None
    first = after(made, lifecycle.UploadStarted(), lifecycle.Succeeded())
    assert first.warm_pool is not None
    old = replace(asked(3600, "two"), warm_pool=warm_pool_states.took_over(first.warm_pool, {}))
    for days, status in ((27, "Available"), (28, "Terminated")):
        now = START + timedelta(days=days)
        ended = after(old, *TRAINED, lifecycle.UploadStarted(), lifecycle.Succeeded(), now=now)
        assert ended.warm_pool is not None
        assert ended.warm_pool.status == status
    almost = START + timedelta(days=28) - timedelta(seconds=10)
    ended = after(old, *TRAINED, lifecycle.UploadStarted(), lifecycle.Succeeded(), now=almost)
    assert warm_pool_states.until(ended) == START + timedelta(days=28)
