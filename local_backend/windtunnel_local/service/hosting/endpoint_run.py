"""Runs one endpoint: starts its instances, replaces those that end, and removes them."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.hosting import (
    LIMIT_TAG,
    LOG_GROUPS,
    EndpointState,
    Fleet,
    Instance,
    Resource,
    stored_stream,
)
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting import accepted
from windtunnel_local.service.hosting.async_queue import AsyncQueue
from windtunnel_local.service.hosting.instances import Instances
from windtunnel_local.service.hosting.meter import Meter
from windtunnel_local.service.hosting.record_thread import RecordThread
from windtunnel_local.service.hosting.records import Records, decoded
from windtunnel_local.service.hosting.router import Router
from windtunnel_local.service.hosting.serving_plan import HOST

_log = logging.getLogger(__name__)

MAX_FAILURE_CHARACTERS = 1024
_DRAIN_S = 60.0
"""Seconds that an instance which is to be removed has to answer the requests it got before."""


class EndpointRun(RecordThread):
    """A thread that brings an endpoint to the state its record asks for. `gone` is set when it is deleted."""

    def __init__(self, name: str, ports: Ports, records: Records, meter: Meter) -> None:
        """Starts the thread, which goes on from the record's state."""
        super().__init__(f"endpoint {name}", ports)
        self.router = Router()
        self.async_queue = AsyncQueue(name, ports, self.router, meter)
        self._name = name
        self._records = records
        self._meter = meter
        self._instances = Instances(ports, self._woken.set)
        self._draining: dict[int, float] = {}
        """By number of an instance to be removed: its deadline, in monotonic seconds."""
        self.begin()

    @property
    def is_running(self) -> bool:
        """Whether it has instances."""
        return bool(self._instances.runs) and not self.gone.is_set()

    def leave(self) -> None:
        """Stop watching the endpoint; its containers run on. Does not block."""
        super().leave()
        self.async_queue.leave()
        self._instances.leave()

    def _step(self) -> bool:
        """Compare the record with the instances once, and act on it; return whether the endpoint is deleted."""
        self._meter.flush()
        endpoint = self._within_its_limit(self._records.get("endpoint", self._name))
        state = decoded(endpoint.record)
        if endpoint.status in ("Deleting", "Failed"):
            self.router.serve((), {})
            self._instances.remove(state.instances)
            if endpoint.status == "Deleting":
                self.async_queue.leave()
                self._meter.flush(all_of_it=True)  # if there is no other endpoint, no later step would do it
                self._ports.store.remove_invocations(self._name)
                self.gone.set()  # before the name is free, so that a new endpoint of this name gets its own thread
                return self._ports.store.delete_resource("endpoint", self._name)
            if state.instances:
                self._records.set(self._name, lambda now: replace(now, instances=()))
            return False
        state = self._staffed(state, str(endpoint.created))
        for instance in state.instances:
            variant = state.variant(instance)
            if variant is not None:
                self._instances.watch(instance, variant)
        state = self._settled(endpoint.status or "", state)
        self._serve(state)
        self._remove_unwanted(state)
        return False

    def _within_its_limit(self, endpoint: Resource) -> Resource:
        """The endpoint, made Deleting if the time in its `LIMIT_TAG` has passed; its log then says so."""
        limit_s, now = accepted.lifetime_s(endpoint.tags), self._ports.clock.now()
        if limit_s is None or endpoint.status == "Deleting":
            return endpoint
        if (now - endpoint.created).total_seconds() < limit_s:
            return endpoint
        words = (
            f"Endpoint {self._name} is deleted: it was created {limit_s} s ago, its limit (tag {LIMIT_TAG})."
        )
        _log.warning("%s", words)
        stream = stored_stream(LOG_GROUPS + self._name, "windtunnel")
        now_ms = self._ports.now_ms()
        self._ports.store.open_log_stream(None, HOST, stream, now_ms)
        self._ports.store.append_log(stream, LogBatch((LogLine(now_ms, words),), ""), now_ms)
        return self._records.amend("endpoint", self._name, lambda now: replace(now, status="Deleting"))

    def _staffed(self, state: EndpointState, created: str) -> EndpointState:
        """The state, with new instances recorded where a variant has too few."""
        missing = [
            (fleet, variant)
            for fleet in state.fleets
            for variant in fleet.variants
            for _ in range(variant.count - len(state.of(fleet, variant.name)))
        ]
        if not missing or not self._instances.may_add:
            return state

        def added(now: EndpointState) -> EndpointState:
            new = tuple(
                Instance(self._name, created, now.made + i, variant.name, fleet.generation)
                for i, (fleet, variant) in enumerate(missing, 1)
            )
            return replace(now, instances=now.instances + new, made=now.made + len(new))

        return self._records.set(self._name, added)

    def _settled(self, status: str, state: EndpointState) -> EndpointState:
        """The state after checking the instances: replaces failed ones, and goes InService once all are ready."""
        latest, watched = state.fleets[-1], self._instances.runs
        runs = [watched[i.number] for i in state.instances if i.number in watched]
        failed = [run for run in runs if run.error is not None]
        lost_new = [run for run in failed if run.instance.generation == latest.generation]
        if status != "InService" and lost_new and not lost_new[0].instance.ready:
            return self._failed(status, lost_new[0].error or "")
        if failed:
            self._instances.replace(failed)
            state = self._records.set(
                self._name, lambda now: now.without([r.instance.number for r in failed])
            )
        ready = {run.instance.number for run in runs if run.target is not None}
        new = [i.number for i in state.instances if i.number in ready and not i.ready]
        is_complete = all(
            sum(i.number in ready for i in state.of(latest, variant.name)) >= variant.count
            for variant in latest.variants
        )
        becomes_ready = status in ("Creating", "Updating") and is_complete
        if not new and not becomes_ready:
            return state

        def changed(now: EndpointState) -> EndpointState:
            instances = tuple(replace(i, ready=i.ready or i.number in new) for i in now.instances)
            if not becomes_ready or now.fleets[-1] != latest:
                return replace(now, instances=instances)
            return replace(now, fleet=latest, following=None, instances=instances, failure_reason=None)

        for number in new:
            watched[number].instance = replace(watched[number].instance, ready=True)
        return self._records.set(self._name, changed, "InService" if becomes_ready else None)

    def _failed(self, status: str, reason: str) -> EndpointState:
        """Record a failed start: an endpoint in Creating becomes Failed; one in Updating keeps its old fleet."""
        reason = reason[:MAX_FAILURE_CHARACTERS]
        _log.warning("Endpoint %s: %s", self._name, reason)
        return self._records.set(
            self._name,
            lambda now: replace(now, following=None, failure_reason=reason),
            "Failed" if status == "Creating" else "InService",
        )

    def _serve(self, state: EndpointState) -> None:
        """Route requests to the ready instances of the current fleet."""
        fleet: Fleet = state.fleet
        watched = self._instances.runs
        runs = [watched[i.number] for i in state.of(fleet) if i.number in watched]
        targets = [run.target for run in runs if run.target is not None]
        weights = {variant.name: variant.weight for variant in fleet.variants}
        at_once = None if fleet.asynchronous is None else fleet.asynchronous.at_once
        self.router.serve(targets, weights, at_once)
        if at_once is not None:
            self.async_queue.serve(at_once * len(targets))

    def _remove_unwanted(self, state: EndpointState) -> None:
        """Remove instances of a replaced fleet, or above a variant's count, once they have answered their requests."""
        wanted = {
            i.number
            for fleet in state.fleets
            for variant in fleet.variants
            for i in state.of(fleet, variant.name)[: variant.count]
        }
        now = time.monotonic()
        unwanted = [i for i in state.instances if i.number not in wanted]
        for instance in unwanted:
            self._draining.setdefault(instance.number, now + _DRAIN_S)
        idle = [
            i for i in unwanted if not self.router.busy(i.slot) or now > self._draining.get(i.number, now)
        ]
        if idle:
            self._instances.remove(idle)
            for instance in idle:
                self._draining.pop(instance.number, None)
            self._records.set(self._name, lambda before: before.without([i.number for i in idle]))
