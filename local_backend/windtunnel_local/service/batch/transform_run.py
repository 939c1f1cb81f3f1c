"""Runs one transform job: starts its instances, sends them its files, replaces those that end, and removes them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from windtunnel_local.service.batch.feeder import Feeder
from windtunnel_local.service.batch.transform_request import TransformRequest, accepted
from windtunnel_local.service.batch.work import Work
from windtunnel_local.service.data.listing import Item, list_all
from windtunnel_local.service.ground.errors import InputError, NoSuchBucket, RunnerError
from windtunnel_local.service.ground.hosting import Instance, Resource, TransformState, TransformStatus
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.hosting.endpoint_run import MAX_FAILURE_CHARACTERS
from windtunnel_local.service.hosting.instance_run import InstanceRun
from windtunnel_local.service.hosting.instances import Instances
from windtunnel_local.service.hosting.record_thread import RecordThread
from windtunnel_local.service.hosting.records import Records, decoded_transform, encoded
from windtunnel_local.service.hosting.serving_plan import HOST

_log = logging.getLogger(__name__)

ACTIVE: tuple[TransformStatus, ...] = ("InProgress", "Stopping")
_KIND: Literal["transform-job"] = "transform-job"
_MOST_ENDS = 5
"""If more containers for each instance end, and no file is done in between, the job fails."""
_DRAIN_S = 5.0
_LOOK_S = 0.05
_MARK = "x-amz-meta-windtunnel-transform-job"

Change = Callable[[TransformState], TransformState]


class TransformRun(RecordThread):
    """A thread that runs a job to its end. Results stored already, known by their metadata, are not repeated."""

    def __init__(self, name: str, ports: Ports, records: Records) -> None:
        """Starts the thread, which goes on from the record's state."""
        super().__init__(f"transform job {name}", ports)
        self._name = name
        self._records = records
        self._instances = Instances(ports, self._woken.set)
        self._feeders: dict[int, Feeder] = {}
        self._work: Work | None = None
        self._ends = self._seen = 0
        self.begin()

    def leave(self) -> None:
        """Stop watching the job; its containers run on. Does not block."""
        super().leave()
        for feeder in list(self._feeders.values()):
            feeder.leave()
        self._instances.leave()

    def join(self) -> None:
        """Wait for the threads, some seconds at most."""
        super().join()
        for feeder in self._feeders.values():
            feeder.join()

    def _step(self) -> bool:
        job = self._records.get(_KIND, self._name)
        state = decoded_transform(job.record)
        if job.status not in ACTIVE:
            self._instances.remove(state.instances)
            self._change(lambda now: replace(now, instances=()))
            self.gone.set()
            return True
        request = accepted(job.request)
        if job.status == "Stopping":
            self._end(job, request, "Stopped")
            return False
        try:
            self._work = self._work or Work(self._files(job, request), request.retries)
        except InputError as error:
            self._end(job, request, "Failed", str(error))
            return False
        if self._work.is_done:
            reason = self._work.failure_reason
            self._end(job, request, "Failed" if reason else "Completed", reason)
            return False
        state = self._staffed(state, str(job.created))
        for instance in state.instances:
            self._instances.watch(instance, state.variant)
        if reason := self._settled(job, state, request, self._work):
            self._end(job, request, "Failed", reason)
        return False

    # --- files ---

    def _files(self, job: Resource, request: TransformRequest) -> Iterator[Item]:
        """The input files whose result is not stored yet, without the job's own results. Raises ``InputError``."""
        objects = self._ports.objects
        bucket, _ = request.target("")
        if not objects.has_bucket(bucket):
            raise InputError(
                f"ClientError: the bucket {bucket} of S3OutputPath does not exist. Create it, or correct S3OutputPath."
            )
        uris: dict[str, str] = {}
        for item in request.files(objects):
            if item.uri.startswith("s3://") and self._is_result(job, *parse_s3(item.uri)):
                continue
            target = request.target(item.place)
            if (other := uris.setdefault(item.place, item.uri)) != item.uri:
                raise InputError(
                    f"ClientError: the results of {other} and {item.uri} would have the same place,"
                    f" s3://{'/'.join(target)}. Rename one, or end the prefix of the input with a slash."
                )
            if not self._is_result(job, *target):
                yield item

    def _is_result(self, job: Resource, bucket: str, key: str) -> bool:
        found = self._ports.objects.head(bucket, key)
        return found is not None and found.metadata.get(_MARK) == _mark(job)[_MARK]

    # --- instances ---

    def _staffed(self, state: TransformState, created: str) -> TransformState:
        """The state, with new instances recorded if there are too few."""
        missing = state.variant.count - len(state.instances)
        if not missing or not self._instances.may_add:
            return state

        def added(now: TransformState) -> TransformState:
            new = tuple(
                Instance(self._name, created, now.made + i, self._name, 1, kind=_KIND)
                for i in range(1, missing + 1)
            )
            return replace(now, instances=now.instances + new, made=now.made + missing)

        return self._change(added)

    def _settled(
        self, job: Resource, state: TransformState, request: TransformRequest, work: Work
    ) -> str | None:
        """Check the instances: replace failed ones, feed new ones; return why the job has failed, or None."""
        runs = self._instances.runs
        failed = [run for run in runs.values() if run.error is not None]
        for run in failed:
            if feeder := self._feeders.pop(run.instance.number, None):
                feeder.leave(lost=True)
        self._ends = len(failed) + (self._ends if work.finished == self._seen else 0)
        self._seen = work.finished
        if failed and (state.started is None or self._ends > _MOST_ENDS * state.variant.count):
            return failed[0].error
        if failed:
            self._instances.replace(failed)
            gone = {run.instance.number for run in failed}
            self._change(
                lambda now: replace(now, instances=tuple(i for i in now.instances if i.number not in gone))
            )
        new = [run for number, run in runs.items() if run.target is not None and number not in self._feeders]
        if new:
            self._change(lambda now: self._with_ready(now, new))
        for run in new:
            instance = run.instance = replace(run.instance, ready=True)
            if (target := run.target) is not None and not self._leaving.is_set():
                self._feeders[instance.number] = Feeder(
                    self._ports, instance, target, request, work, _mark(job)
                )
        return None

    def _with_ready(self, state: TransformState, new: list[InstanceRun]) -> TransformState:
        numbers = {run.instance.number for run in new}
        instances = tuple(replace(i, ready=i.ready or i.number in numbers) for i in state.instances)
        return replace(state, instances=instances, started=state.started or self._now())

    # --- the end ---

    def _end(
        self, job: Resource, request: TransformRequest, status: TransformStatus, reason: str | None = None
    ) -> None:
        """Stop sending, store the containers' last output, and record how the job has ended."""
        for feeder in self._feeders.values():
            feeder.leave()
        self._drain()
        for feeder in self._feeders.values():
            feeder.join()
        self._feeders.clear()
        if status == "Stopped":  # as on AWS, a stopped job leaves no output
            self._remove_results(job, request)
        if reason:
            _log.warning("Transform job %s: %s", self._name, reason)
        text = reason[:MAX_FAILURE_CHARACTERS] if reason else None
        self._change(lambda now: replace(now, ended=self._now(), failure_reason=text), status)
        self._woken.set()

    def _remove_results(self, job: Resource, request: TransformRequest) -> None:
        """Remove the job's results, found by their metadata: the input files may be gone."""
        objects, (bucket, prefix) = self._ports.objects, parse_s3(request.output)
        with suppress(NoSuchBucket):
            for found in list_all(objects, bucket, prefix.rstrip("/")):
                if found.metadata.get(_MARK) == _mark(job)[_MARK]:
                    objects.delete(bucket, found.key)

    def _drain(self) -> None:
        """End the containers and wait for their last lines, so that the log is complete when the job has ended."""
        runs = list(self._instances.runs.values())
        with suppress(RunnerError):
            for run in runs:
                self._ports.runner.terminate(run.instance.slot, HOST)
        deadline = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline and not all(run.drained for run in runs):
            if self._leaving.wait(_LOOK_S):
                return

    # --- the record ---

    def _now(self) -> str:
        return self._ports.clock.now().isoformat()

    def _change(self, change: Change, status: TransformStatus | None = None) -> TransformState:
        def changed(job: Resource) -> Resource:
            record = encoded(change(decoded_transform(job.record)))
            return replace(job, record=record, status=status or job.status)

        return decoded_transform(self._records.amend(_KIND, self._name, changed).record)


def _mark(job: Resource) -> Mapping[str, str]:
    """The metadata of a job's results: differs between two jobs of the same name."""
    return {_MARK: f"{job.name} {job.created.isoformat()}"}
