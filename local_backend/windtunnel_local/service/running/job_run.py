"""One job from wherever it stands to its end.

Every secondary status has one step. A step can be repeated from its beginning whatever an
earlier attempt left behind: a side effect that must not happen twice is looked for before
it is caused, and the record changes only when the step is done. That is all there is to
adopting a job after a crash: take the step of its status.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path

from windtunnel_local.service import lifecycle
from windtunnel_local.service.data import inputs, outputs
from windtunnel_local.service.data.compile_cache import fetch_cache, store_cache
from windtunnel_local.service.data.paths import ML, TENSORBOARD
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.data.uris import parse_s3
from windtunnel_local.service.errors import InputError, ObjectError, RunnerError, StoreUnavailable
from windtunnel_local.service.model import Job
from windtunnel_local.service.observed import metering, metrics
from windtunnel_local.service.observed.live_usage import LiveUsage
from windtunnel_local.service.ports import ContainerState
from windtunnel_local.service.request import plan, requests
from windtunnel_local.service.running.backend import Backend, Leaving, Overtaken
from windtunnel_local.service.running.failure import failure_reason, internal_reason
from windtunnel_local.service.running.hosts import HostFollower, raise_errors

_log = logging.getLogger(__name__)

_PROGRESS_INTERVAL_S = 0.2
_PEER_GRACE_S = 30.0
_KILL_PATIENCE_S = 60.0
_DRAIN_PATIENCE_S = 60.0
_LONGEST_REASON = 1024
_RETRY_S = 0.5
_LONGEST_RETRY_S = 10.0
_NOT_STARTED = {"absent", "created"}
_LATE = datetime.max.replace(tzinfo=timezone.utc)


class JobRun:
    """Runs one job; `run` blocks until the job has ended or the server leaves."""

    def __init__(self, name: str, backend: Backend) -> None:
        """Nothing happens yet."""
        self._name = name
        self._backend = backend
        self._folders = backend.config.paths(name)
        self._wake = threading.Event()
        self._leave = threading.Event()
        self._followers: list[HostFollower] = []
        self._usage = LiveUsage(backend.objects, backend.clock, self._folders)

    def wake(self) -> None:
        """Look at the record now: it has changed."""
        self._wake.set()

    def leave(self) -> None:
        """Return from `run` soon and leave the job as it is."""
        self._leave.set()
        self._wake.set()
        for follower in list(self._followers):
            follower.leave()

    def run(self) -> None:
        """Take step after step. Blocks. Nothing is raised: what goes wrong fails the job."""
        pause_s = _RETRY_S
        try:
            while not self._take_steps():
                # In most cases the disk is full. A job whose thread gave up would never end.
                self._leave.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
            self._clean_up()
        except Leaving:
            _log.info("Job %s is left as it is; the next server adopts it.", self._name)
        finally:
            for follower in self._followers:
                follower.leave()

    def _take_steps(self) -> bool:
        """Step after step to the end; False: the job's record cannot be read or written now."""
        try:
            while not (job := self._backend.job(self._name)).lifecycle.finished:
                self._take_step(job)
        except Leaving:
            raise
        except Exception as error:
            if self._leave.is_set():  # a store that is closed while leaving is no news
                raise Leaving from error
            known = isinstance(error, StoreUnavailable)
            _log.warning("Job %s waits: %s", self._name, error, exc_info=None if known else error)
            return False
        return True

    def _take_step(self, job: Job) -> None:
        secondary = job.lifecycle.secondary
        steps: dict[str, Callable[[Job], None]] = {
            "Starting": self._provision,
            "Downloading": self._download,
            "Training": self._train,
            "Stopping": self._stop,
            "Uploading": self._upload,
        }
        try:
            self._check(secondary)
            steps[secondary](job)
        except (Leaving, Overtaken) as word:
            if isinstance(word, Leaving):
                raise
        except StoreUnavailable:
            raise  # no step has failed: it is taken again when there is room for its result
        except Exception as error:
            if self._leave.is_set():
                raise Leaving from error
            if self._backend.job(self._name).lifecycle.secondary != secondary:
                return  # a stop cut the step short; what it broke does not matter any more
            expected = isinstance(error, (RunnerError, InputError))
            if not expected:
                _log.exception("Job %s failed while %s.", self._name, secondary)
            self._fail(job, str(error) if expected else internal_reason(error))

    def _check(self, secondary: str) -> None:
        """Raise if the server leaves or the job is no longer where the step believes it is."""
        if self._leave.is_set():
            raise Leaving
        if self._backend.job(self._name).lifecycle.secondary != secondary:
            raise Overtaken

    # --- Starting ---

    def _provision(self, job: Job) -> None:
        """Make sure of the image; the builder's progress is the Starting transition's message."""
        clock = self._backend.clock
        last_s: float | None = None

        def progress(line: str) -> None:
            nonlocal last_s
            self._check("Starting")
            if last_s is None or clock.monotonic() - last_s >= _PROGRESS_INTERVAL_S:
                self._backend.advance(self._name, lifecycle.ProvisioningProgress(line), "Starting")
                last_s = clock.monotonic()

        image = plan.local_image(job.request["AlgorithmSpecification"]["TrainingImage"], self._backend.config)
        self._backend.runner.ensure_image(image, progress)
        if last_s is not None:
            usual = lifecycle.ProvisioningProgress(lifecycle.MESSAGES["Starting"])
            self._backend.advance(self._name, usual, "Starting")
        self._backend.advance(self._name, lifecycle.DownloadStarted(), "Starting")

    # --- Downloading ---

    def _download(self, job: Job) -> None:
        """Fill the job's folder and start its containers, unless an earlier attempt got that far."""
        states = [self._backend.runner.state(self._name, host).status for host in job.hosts]
        if not set(states) <= {"running", "exited"}:
            if set(states) != {"absent"}:
                self._backend.runner.remove(self._name)
            self._prepare(job)
        self._backend.advance(self._name, lifecycle.TrainingStarted(), "Downloading")

    def _prepare(self, job: Job) -> None:
        def check() -> None:
            self._check("Downloading")

        objects, folders = self._backend.objects, self._folders
        outputs.require_output_bucket(job, objects)
        remove_tree(folders.root)
        for host in job.hosts:
            for folder in folders.folders(host):
                folder.mkdir(parents=True, exist_ok=True)
            self._make_mount_point(job, host)
            for name, content in plan.config_files(job, host).items():
                (folders.config(host) / name).write_text(json.dumps(content, indent=2))
        inputs.provide_source(job, folders, objects)
        mounts = inputs.provide_channels(job, folders, objects, check)
        outputs.fetch_checkpoints(job, folders, objects, check)
        fetch_cache(job, folders, objects, check)
        check()
        self._backend.runner.start(plan.plan_job(job, self._backend.config, mounts))

    def _make_mount_point(self, job: Job, host: str) -> None:
        """What is mounted must exist on both sides, or the engine makes it as root."""
        if requests.tensorboard_path(job) != TENSORBOARD:
            self._folders.tensorboard(host).mkdir(parents=True, exist_ok=True)
        for target in (requests.checkpoint_path(job), requests.tensorboard_path(job)):
            if target.startswith(f"{ML}/"):
                (self._folders.ml(host) / Path(target).relative_to(ML)).mkdir(parents=True, exist_ok=True)

    # --- Training ---

    def _train(self, job: Job) -> None:
        """Watch until all hosts have ended, one has failed, or the time is over."""
        followers = self._follow(job, job.hosts)
        begun = job.lifecycle.training_start or job.lifecycle.created
        while True:
            self._check("Training")
            raise_errors(followers)
            first = _first_failure(followers)
            if first is not None:
                self._bring_down(followers, self._backend.clock.now(), self._peer_grace_s(), "Training")
                self._backend.advance(
                    self._name, lifecycle.UploadStarted(self._reason(job, *first)), "Training"
                )
                return
            if all(f.exit is not None for f in followers):
                self._drain(followers)
                self._backend.advance(self._name, lifecycle.UploadStarted(), "Training")
                return
            if (self._backend.clock.now() - begun).total_seconds() >= requests.max_runtime_s(job):
                self._backend.advance(self._name, lifecycle.MaxRuntimeReached(), "Training")
                return
            self._usage.publish(job)
            self._pause()

    def _reason(self, job: Job, host: str, state: ContainerState) -> str:
        now = self._backend.runner.state(self._name, host)
        if now.status == "absent":  # `docker rm -f` kills first: that was no lack of memory
            state = now
        limit = plan.memory_limit_bytes(job, self._backend.config)
        return failure_reason(host, state, self._folders, limit)

    def _peer_grace_s(self) -> float:
        return min(_PEER_GRACE_S, self._backend.config.stop_grace_s)

    # --- Stopping ---

    def _stop(self, job: Job) -> None:
        """SIGTERM, the grace period from the moment of the stop, SIGKILL."""
        hosts = [h for h in job.hosts if self._backend.runner.state(self._name, h).status not in _NOT_STARTED]
        if not hosts:
            event = lifecycle.UploadStarted() if _has_trained(job) else lifecycle.Stopped()
            self._backend.advance(self._name, event, "Stopping")
            return
        since = job.lifecycle.transitions[-1].start
        self._bring_down(self._follow(job, hosts), since, self._backend.config.stop_grace_s, "Stopping")
        self._backend.advance(self._name, lifecycle.UploadStarted(), "Stopping")

    def _bring_down(
        self, followers: list[HostFollower], since: datetime, grace_s: float, secondary: str
    ) -> None:
        """End all containers that still run, then wait until every line is stored."""
        runner, clock = self._backend.runner, self._backend.clock
        for follower in followers:
            if follower.exit is None:
                runner.terminate(self._name, follower.host)
        killed_at: float | None = None
        while any(follower.exit is None for follower in followers):
            self._check(secondary)
            raise_errors(followers)
            if killed_at is None and (clock.now() - since).total_seconds() >= grace_s:
                for follower in followers:
                    if follower.exit is None:
                        runner.kill(self._name, follower.host)
                killed_at = clock.monotonic()
            elif killed_at is not None and clock.monotonic() - killed_at > _KILL_PATIENCE_S:
                raise RunnerError(
                    "InternalServerError: the containers did not end within"
                    f" {_KILL_PATIENCE_S:g} s of SIGKILL; look at the engine (docker ps)."
                )
            self._pause()
        self._drain(followers)

    # --- Uploading ---

    def _upload(self, job: Job) -> None:
        """Store what the job made; the terminal status comes last, with all logs readable."""
        self._usage.forget(job)
        try:
            model = outputs.store_artifacts(job, self._folders, self._backend.objects)
            outputs.store_checkpoints(job, self._folders, self._backend.objects)
            store_cache(job, self._folders, self._backend.objects)
            self._store_counters(job)
        except (ObjectError, OSError) as error:
            _log.exception("Job %s: the upload failed.", self._name)
            text = f"ClientError: Artifact upload failed: {type(error).__name__}: {error}"[:_LONGEST_REASON]
            if job.lifecycle.failure_reason is not None:
                text = f"{job.lifecycle.failure_reason}\n{text}"
            self._backend.advance(self._name, lifecycle.Failed(text), "Uploading")
            return
        found = metrics.metrics_of(job, self._backend)
        event: lifecycle.Event = lifecycle.Succeeded()
        if job.lifecycle.failure_reason is not None:
            event = lifecycle.Failed(job.lifecycle.failure_reason)
        elif job.lifecycle.stop_cause is not None:
            event = lifecycle.Stopped()
        self._backend.advance(self._name, event, "Uploading", model_artifact=model, final_metrics=found)

    def _store_counters(self, job: Job) -> None:
        """Counters come out of the container: what is wrong with them must not fail the job."""
        try:
            ranks = [
                rank for host in job.hosts for rank in metering.read_counters(self._folders.counters(host))
            ]
            document = metering.measure(job, ranks, self._container_times(job), self._backend.clock.now())
            data = json.dumps(document, indent=2).encode()
        except (ValueError, TypeError, KeyError, AttributeError):
            _log.exception("Job %s: the counters cannot be read; the job has no report.", self._name)
            return
        bucket, key = parse_s3(outputs.output_uri(job, "windtunnel", "counters.json"))
        self._backend.objects.put(bucket, key, BytesIO(data))

    def _container_times(self, job: Job) -> metering.ContainerTimes:
        try:
            states = [self._backend.runner.state(self._name, host) for host in job.hosts]
        except RunnerError:
            return metering.ContainerTimes()
        return metering.ContainerTimes(
            min((s.started_at for s in states if s.started_at), default=None),
            max((s.finished_at for s in states if s.finished_at), default=None),
        )

    # --- the end ---

    def _fail(self, job: Job, reason: str) -> None:
        """End the containers without ceremony, keep what they printed, and record why."""
        with suppress(RunnerError):
            for host in job.hosts:
                self._backend.runner.kill(self._name, host)
            if self._followers:
                self._drain(self._followers)
        failed = lifecycle.Failed(reason)
        try:
            self._backend.advance(self._name, failed)
        except StoreUnavailable:
            if job.lifecycle.secondary != "Downloading":
                raise
            self._clean_up()  # in most cases it is what was fetched that fills the disk
            self._backend.advance(self._name, failed)

    def _clean_up(self) -> None:
        """Remove containers and folder. The record is final already, so nothing here may fail the job."""
        try:
            self._backend.runner.remove(self._name)
        except RunnerError as error:
            _log.warning("Job %s: its containers are not removed yet: %s", self._name, error)
        remove_tree(self._folders.root)

    # --- following ---

    def _follow(self, job: Job, hosts: Sequence[str]) -> list[HostFollower]:
        """Follow the hosts that have a container. Idempotent."""
        if not self._followers:
            followers = [HostFollower(self._backend, job, host, self._wake.set) for host in hosts]
            for follower in followers:
                follower.start()
            self._followers = followers
        return self._followers

    def _drain(self, followers: list[HostFollower]) -> None:
        """Wait until every line of every host is stored, for as long as lines keep coming."""
        clock = self._backend.clock
        seen, since = -1, clock.monotonic()
        while not all(follower.drained for follower in followers):
            if self._leave.is_set():
                raise Leaving
            raise_errors(followers)
            batches = sum(follower.batches for follower in followers)
            if batches != seen or any(follower.stalled for follower in followers):
                seen, since = batches, clock.monotonic()
            elif clock.monotonic() - since > _DRAIN_PATIENCE_S:
                silent = ", ".join(follower.host for follower in followers if not follower.drained)
                raise RunnerError(
                    f"InternalServerError: the log of {silent} did not end within {_DRAIN_PATIENCE_S:g} s of"
                    " its container."
                )
            self._pause()

    def _pause(self) -> None:
        self._wake.wait(self._backend.tick_s)
        self._wake.clear()


def _first_failure(followers: list[HostFollower]) -> tuple[str, ContainerState] | None:
    """The host that failed before the others: they fail because of it."""
    failed = [
        (follower.host, follower.exit)
        for follower in followers
        if follower.exit is not None and (follower.exit.status == "absent" or follower.exit.exit_code != 0)
    ]
    return min(failed, key=lambda f: f[1].finished_at or _LATE, default=None)


def _has_trained(job: Job) -> bool:
    return any(transition.status == "Training" for transition in job.lifecycle.transitions)
