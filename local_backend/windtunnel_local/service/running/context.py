"""The context that all steps of one job share while a thread of this server runs them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from windtunnel_local.service.ground.job import Job, SecondaryStatus
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.lifecycle import BegunAnew, Event
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.observed.live_usage import LiveUsage
from windtunnel_local.service.observed.metric_collector import MetricCollector
from windtunnel_local.service.running.host_follower import HostFollower, followed
from windtunnel_local.service.running.job_records import JobRecords, Overtaken
from windtunnel_local.service.running.limits import exceeded
from windtunnel_local.service.running.queue import Queue
from windtunnel_local.service.running.warm_pools import WarmPools


class Leaving(Exception):
    """The server shuts down; the job is left as it is, and the next server adopts it."""


class Run:
    """The context of one job and its thread. Nothing in it is stored: after a crash a new server rebuilds it."""

    def __init__(self, name: str, ports: Ports, records: JobRecords, queue: Queue, pools: WarmPools) -> None:
        """Starts nothing yet."""
        self.name = name
        self.ports = ports
        self.records = records
        self.queue = queue
        self.pools = pools
        self.begun = ports.clock.now()
        """When this server began to work on the job."""
        self._begun_s = ports.clock.monotonic()
        self.woken = threading.Event()
        """Set whenever the job's thread should check the record or the containers."""
        self.leaving = threading.Event()
        """Set when the server shuts down."""
        self.engine_away: datetime | None = None
        """When the engine was last found to be away; None: never."""
        self.followers: list[HostFollower] = []
        """The followers of the job's containers; empty if none is followed now."""
        self.usage = LiveUsage(ports.objects, ports.clock, ports.config)
        self._metrics: MetricCollector | None = None

    def now(self) -> datetime:
        """The job's time: `begun` plus monotonic seconds since then, which stand still while the machine is suspended.

        So a change of the wall clock affects neither the job's billed time nor its limits.
        """
        return self.begun + timedelta(seconds=self.ports.clock.monotonic() - self._begun_s)

    def check(self, secondary: str) -> None:
        """Check that the step may go on.

        Raises:
            Leaving: the server shuts down.
            Overtaken: the job's secondary status is no longer ``secondary``.
        """
        if self.leaving.is_set():
            raise Leaving
        if self.records.get(self.name).lifecycle.secondary != secondary:
            raise Overtaken

    def check_stop(self, job: Job) -> None:
        """`check`, and that no stop came since ``job`` was read. Reads the record only if the thread was woken.

        Raises:
            Leaving: the server shuts down.
            Overtaken: the job's status has changed, or it was stopped.
        """
        if not self.woken.is_set():
            return
        self.woken.clear()
        self.check(job.lifecycle.secondary)
        if self.records.get(self.name).lifecycle.stop_cause != job.lifecycle.stop_cause:
            raise Overtaken

    def check_time(self, secondary: SecondaryStatus) -> None:
        """`check`, and stop the job if it has reached a limit of its StoppingCondition.

        Raises:
            Leaving: the server shuts down.
            Overtaken: the job's status has changed, or this call has stopped the job.
        """
        self.check(secondary)
        event = exceeded(self.records.get(self.name), self.now())
        if event is not None:
            self.advance(event, secondary)
            raise Overtaken

    def advance(self, event: Event, expected: SecondaryStatus | None = None, **changes: Any) -> Job:
        """`JobRecords.advance` for this job."""
        return self.records.advance(self.name, event, expected, self.now(), **changes)

    def begin_anew(self, job: Job) -> None:
        """Set the start of the current step to now, if an earlier server began the step, perhaps days ago, or the
        engine has been away since its start.
        """
        if job.lifecycle.transitions[-1].start < max(self.begun, self.engine_away or self.begun):
            self.advance(BegunAnew(), job.lifecycle.secondary)

    def folders(self, job: Job) -> JobPaths:
        """The paths of the job's files on this machine."""
        return self.ports.config.paths(job.slot)

    def metrics(self, job: Job) -> MetricCollector:
        """The job's metric collector; the first call creates it, without starting it."""
        if self._metrics is None:
            self._metrics = MetricCollector(job, self.ports)
        return self._metrics

    def pause(self, ticks: int = 1) -> None:
        """Sleep for so many ticks (see `Pace.tick_s`), or until the thread is woken."""
        self.woken.wait(ticks * self.ports.config.pace.tick_s)
        self.woken.clear()

    def follow(self, job: Job, hosts: Sequence[str]) -> list[HostFollower]:
        """Start a follower for each of the hosts, unless they are followed already; return the followers."""
        if not self.followers:
            config = self.ports.config
            followers = [
                HostFollower(self.ports, followed(job, host, config), self.woken.set) for host in hosts
            ]
            for follower in followers:
                follower.start()
            self.followers = followers
        return self.followers

    def unwatched_end(self, job: Job) -> datetime | None:
        """When the last container had ended, if that was not seen at the time; None otherwise.

        It was not seen if there was no server or no engine then. (After `windtunnel down` jobs run on, and the
        hours between a job's end and the next server must not be billed.)
        """
        ends = [(f.exit.finished_at, f) for f in self.followers if f.exit and f.exit.finished_at]
        if not ends or len(ends) < len(self.followers):
            return None
        end, last = max(ends, key=lambda found: found[0])
        # If this server began the step, it saw the end; the engine's clock may have been set back and say otherwise.
        if job.lifecycle.transitions[-1].start < self.begun and end < self.begun:
            return end
        if not last.out_of_sight:
            return None
        now = self.now()
        seen = self.begun + timedelta(seconds=last.seen_s - self._begun_s)
        return min(max(now - (self.ports.clock.now() - end), seen), now)

    def unfollow(self) -> None:
        """Stop following the containers; once this returns, the followers store nothing more."""
        for follower in list(self.followers):
            follower.leave()
        self.followers = []
        if self._metrics is not None:
            self._metrics.leave()
            self._metrics = None
