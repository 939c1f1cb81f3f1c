"""SageMaker's operations on training jobs, without HTTP.

Answers are dicts in the shape of AWS's responses, with `datetime` for timestamps.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, TypeAlias

from windtunnel_local.service import answers
from windtunnel_local.service.data import outputs
from windtunnel_local.service.ground import lifecycle, warm_pool_states
from windtunnel_local.service.ground.errors import (
    IllegalTransition,
    JobInUse,
    JobNotFound,
    OutOfThreads,
    ValidationFailed,
)
from windtunnel_local.service.ground.job import Job, JobQuery
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.ground.search_query import SearchQuery, contains_count
from windtunnel_local.service.request import updates, validation
from windtunnel_local.service.request.keep_alive import check_keep_alive
from windtunnel_local.service.running import spot
from windtunnel_local.service.running.job_records import JobRecords
from windtunnel_local.service.supervisor import Supervisor

TagList: TypeAlias = list[dict[str, str]]
"""Tags as the API sends them: a list of Key and Value."""


class TrainingJobService:
    """Create, describe, list, stop, delete and tag training jobs. Thread-safe.

    No call waits for a job, except `delete`: it may wait until the job's containers are removed, in general a second.
    """

    def __init__(self, ports: Ports) -> None:
        """Starts nothing; `resume` and `create` do."""
        self._ports = ports
        self._records = JobRecords(ports.store, ports.clock)
        self._supervisor = Supervisor(self._ports, self._records)
        self._tagging = threading.Lock()

    # --- the server's life ---

    def resume(self) -> None:
        """Adopt the jobs that an earlier server left unfinished. Call once, before serving."""
        self._supervisor.resume()

    def busy(self) -> bool:
        """Whether any job runs."""
        return self._supervisor.busy()

    def shutdown(self) -> None:
        """Stop watching all jobs, within seconds; they run on, and the next server adopts them. Idempotent."""
        self._supervisor.shutdown()

    # --- jobs ---

    def create(self, request: Mapping[str, Any]) -> str:
        """Accept a CreateTrainingJob request and start the job; returns its ARN.

        Raises:
            ValidationFailed: the request is not valid.
            JobExists: the name is taken.
            OutOfThreads: the job's thread could not be started; the job is not recorded.
        """
        validation.validate(request)
        check_keep_alive(request, self._ports.runner, self._ports.config)
        name = request["TrainingJobName"]
        members = {member: value for member, value in request.items() if member != "Tags"}
        begun = lifecycle.begin(self._ports.clock.now())
        terms = spot.terms(request, self._ports.config)
        slot = self._supervisor.new_slot(name)
        job = Job(name, self._ports.config.arn("training-job", name), members, begun, slot=slot, spot=terms)
        job = replace(job, warm_pool=warm_pool_states.begin(job))
        self._ports.store.insert_job(job, {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())})
        try:
            self._supervisor.start(job)
        except OutOfThreads:  # a job that was refused must not stay InProgress
            self._ports.store.delete_job(name)
            raise
        return job.arn

    def describe(self, name: str) -> dict[str, Any]:
        """DescribeTrainingJob's answer; raises ``JobNotFound``."""
        return answers.described(self._records.get(name))

    def goes_on(self, identity: str) -> bool:
        """Whether the job with this `Job.identity` exists and has not ended."""
        job = self._ports.store.get_job(identity.partition("/")[0])
        return job is not None and job.identity == identity and not job.lifecycle.finished

    def list(self, query: JobQuery) -> dict[str, Any]:
        """ListTrainingJobs' answer: TrainingJobSummaries, and NextToken if there is more.

        Raises:
            ValidationFailed: the token is not valid for this query.
        """
        jobs, token = self._ports.store.list_jobs(query)
        answer: dict[str, Any] = {"TrainingJobSummaries": [answers.summary(job) for job in jobs]}
        return answer if token is None else {**answer, "NextToken": token}

    def search(self, query: SearchQuery) -> dict[str, Any]:
        """Search's answer: Results, each a TrainingJob, and NextToken if there is more. May take seconds.

        Raises:
            ValidationFailed: the token is not valid for this query, or there is more than one Contains.
        """
        if contains_count(query.where) > 1:
            raise ValidationFailed("'CONTAINS' operator usage limit of 1 exceeded.")
        jobs, token = self._ports.store.search_jobs(query)
        answer: dict[str, Any] = {
            "Results": [{"TrainingJob": answers.found(job, tags)} for job, tags in jobs]
        }
        return answer if token is None else {**answer, "NextToken": token}

    def update(self, request: Mapping[str, Any]) -> str:
        """Apply an UpdateTrainingJob request; returns the job's ARN.

        Raises:
            JobNotFound: no such job.
            ValidationFailed: the job does not allow this change.
        """
        job = self._records.amend(request["TrainingJobName"], lambda job: updates.updated(job, request))
        self._supervisor.updated(job.name)
        return job.arn

    def stop(self, name: str) -> None:
        """Ask a job to stop; a job that is stopping already stays so.

        Raises:
            JobNotFound: no such job.
            ValidationFailed: the job has ended.
        """
        try:
            self._supervisor.stop(name)
        except IllegalTransition:
            status = self._records.get(name).lifecycle.status
            raise ValidationFailed(
                f"The request was rejected because the training job is in status {status}."
            ) from None

    def delete(self, name: str) -> None:
        """Delete a finished job's record, tags, logs and metrics; what the job stored in S3 stays.

        Raises:
            JobNotFound: no such job.
            JobInUse: the job has not ended, or its containers are kept in a warm pool or cannot be removed yet.
        """
        job = self._records.get(name)
        _require_over(job)
        if not self._supervisor.await_clean_up(name):
            raise JobInUse(
                f"The containers of the training job {name} are not removed yet. Look at the engine (windtunnel"
                " doctor), then try again."
            )

        def check(now: Job) -> None:
            if now.lifecycle.created != job.lifecycle.created:
                raise JobNotFound  # deleted by another call; a new job has its name
            _require_over(now)

        self._records.forget(name, check)

    def event_files(self, name: str) -> Iterator[tuple[str, BinaryIO]]:
        """A running job's TensorBoard event files: name and open file, each open until the next one is asked for.

        Yields nothing for a job that has ended: its event files are in S3.

        Raises:
            JobNotFound: no such job.
            OSError: the folder changed while it was read.
        """
        job = self._records.get(name)
        for found in outputs.event_files(job, self._ports.config.paths(job.slot)):
            # After the job's end, a warm pool's next job may use the same folder.
            if not self.goes_on(job.identity):
                return
            yield found

    # --- tags ---

    def add_tags(self, arn: str, tags: Sequence[Mapping[str, str]]) -> TagList:
        """Add or overwrite tags; returns all tags of the job.

        Raises:
            JobNotFound: no job has this ARN.
            ValidationFailed: too many tags, a key given twice, or a key that begins with "aws:".
        """
        self._require(arn)
        validation.tags(tags)
        added = {tag["Key"]: tag["Value"] for tag in tags}
        with self._tagging:
            merged = {**self._ports.store.tags(arn), **added}
            validation.tags(answers.tag_list(merged))
            self._ports.store.set_tags(arn, added)
        return answers.tag_list(merged)

    def list_tags(self, arn: str) -> TagList:
        """The tags of a job, sorted by key; raises ``JobNotFound``."""
        self._require(arn)
        return answers.tag_list(self._ports.store.tags(arn))

    def delete_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error. Raises ``JobNotFound``."""
        self._require(arn)
        self._ports.store.remove_tags(arn, keys)

    def _require(self, arn: str) -> None:
        name = arn.rpartition("/")[2]
        job = self._ports.store.get_job(name)
        if job is None or job.arn != arn:
            raise JobNotFound


def _require_over(job: Job) -> None:
    """Raise ``JobInUse`` if the job's record cannot be deleted yet."""
    if not job.lifecycle.finished:
        raise JobInUse(
            f"The training job {job.name} is in status {job.lifecycle.status}. Only a job that is Completed,"
            " Failed or Stopped can be deleted; stop it first (StopTrainingJob)."
        )
    if job.warm_pool is not None and job.warm_pool.status == "Available":
        raise JobInUse(
            f"The training job {job.name} retains an Available warm pool. End it first: UpdateTrainingJob with"
            " ResourceConfig KeepAlivePeriodInSeconds 0, or wait until it is Terminated or Reused."
        )
