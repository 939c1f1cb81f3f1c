"""What the steps of one job share while a thread of this server takes them."""

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
    """The server goes down; the job is left as it is, for the next server to adopt."""


class Run:
    """One job while one thread works on it. Nothing here is stored: after a crash it is found again."""

    def __init__(self, name: str, ports: Ports, records: JobRecords, queue: Queue, pools: WarmPools) -> None:
        """Nothing happens yet."""
        self.name = name
        self.ports = ports
        self.records = records
        self.queue = queue
        self.pools = pools
        self.begun = ports.clock.now()
        """When this server took the job."""
        self._begun_s = ports.clock.monotonic()
        self.woken = threading.Event()
        """Set whenever there may be something to see."""
        self.leaving = threading.Event()
        """Set when the server goes down."""
        self.engine_away: datetime | None = None
        """When the engine was last found to be away."""
        self.followers: list[HostFollower] = []
        """Of the containers that are followed now."""
        self.usage = LiveUsage(ports.objects, ports.clock, ports.config)
        self._metrics: MetricCollector | None = None

    def now(self) -> datetime:
        """The job's time: from when this server took it, by a clock that nobody sets and that stands in a suspend.

        What the job is billed, and its limits, do not see the wall clock being set meanwhile.
        """
        return self.begun + timedelta(seconds=self.ports.clock.monotonic() - self._begun_s)

    def check(self, secondary: str) -> None:
        """Raise if the server leaves or the job is no longer where the step believes it is.

        Raises:
            Leaving, Overtaken: so.
        """
        if self.leaving.is_set():
            raise Leaving
        if self.records.get(self.name).lifecycle.secondary != secondary:
            raise Overtaken

    def check_stop(self, job: Job) -> None:
        """Raise if the server leaves or the job was stopped since ``job`` was read. Costs nothing until then.

        Raises:
            Leaving, Overtaken: so.
        """
        if not self.woken.is_set():
            return
        self.woken.clear()
        self.check(job.lifecycle.secondary)
        if self.records.get(self.name).lifecycle.stop_cause != job.lifecycle.stop_cause:
            raise Overtaken

    def check_time(self, secondary: SecondaryStatus) -> None:
        """`check`, and stop the job if it has waited or run for longer than it may.

        Raises:
            Leaving, Overtaken: so.
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
        """Let the time of the job's step begin now, if an earlier server began it, which may have left days ago, or
        the engine has been away since.
        """
        if job.lifecycle.transitions[-1].start < max(self.begun, self.engine_away or self.begun):
            self.advance(BegunAnew(), job.lifecycle.secondary)

    def folders(self, job: Job) -> JobPaths:
        """Where the job's files are on this machine."""
        return self.ports.config.paths(job.slot)

    def metrics(self, job: Job) -> MetricCollector:
        """What collects the job's metrics; not started yet when it is first asked for."""
        if self._metrics is None:
            self._metrics = MetricCollector(job, self.ports)
        return self._metrics

    def pause(self, ticks: int = 1) -> None:
        """Sleep for so many ticks, or until something happens."""
        self.woken.wait(ticks * self.ports.config.pace.tick_s)
        self.woken.clear()

    def follow(self, job: Job, hosts: Sequence[str]) -> list[HostFollower]:
        """Follow the hosts that have a container. Idempotent."""
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
        """When the last container had ended, if nobody could see that; None otherwise.

        No server: `windtunnel down` lets jobs go on, and one that ends over night must not cost the night. Or
        no engine.
        """
        ends = [(f.exit.finished_at, f) for f in self.followers if f.exit and f.exit.finished_at]
        if not ends or len(ends) < len(self.followers):
            return None
        end, last = max(ends, key=lambda found: found[0])
        # A job that this server began was seen by it, whatever the engine's clock says, which may have been set back.
        if job.lifecycle.transitions[-1].start < self.begun and end < self.begun:
            return end
        if not last.out_of_sight:
            return None
        now = self.now()
        seen = self.begun + timedelta(seconds=last.seen_s - self._begun_s)
        return min(max(now - (self.ports.clock.now() - end), seen), now)

    def unfollow(self) -> None:
        """Let the followers go; once this returns, they store nothing more."""
        for follower in list(self.followers):
            follower.leave()
        self.followers = []
        if self._metrics is not None:
            self._metrics.leave()
            self._metrics = None
