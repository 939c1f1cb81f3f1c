"""What every session does: make the uploads, then create the job. Subclasses in `local` and `aws` say where."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from windtunnel.errors import ConfigurationError, ServiceCallFailed
from windtunnel.local_paths import absolute, reading
from windtunnel.request.source_archive import packed
from windtunnel.request.training_request import PathUpload, SourceUpload, Target, TrainingRequest
from windtunnel.session.endpoint_service import EndpointService
from windtunnel.session.training_service import TrainingService
from windtunnel.session.transform_service import TransformService


class Session(ABC):
    """Where jobs run. Made once and shared by estimators and jobs; thread-safe."""

    local: bool
    """Whether jobs run on this machine."""
    log_poll_s: float
    """Longest pause between two polls of a job's log, in seconds."""
    least_poll_s: float
    """Shortest pause between two polls, in seconds: see `pause_s`."""
    describe_poll_s: float
    """Longest pause between two polls of a job's status, in seconds."""
    settle_s: float
    """Seconds by which the log may lag behind a terminal status."""

    own_log: Path | None = None
    """The local backend's own log; None on AWS."""

    service: TrainingService
    endpoints: EndpointService
    transforms: TransformService

    @property
    def place(self) -> str:
        """The option that sends a command to this session's place, for messages: ``" --aws"`` or nothing."""
        return "" if self.local else " --aws"

    def pause_s(self, passed_s: float) -> float:
        """Seconds until a job's next poll: short at first, so that a short job's end is seen soon, then longer."""
        return min(self.log_poll_s, max(self.least_poll_s, passed_s / 50))

    @property
    @abstractmethod
    def region(self) -> str:
        """The AWS region, also of the local backend."""

    @property
    def boto_region_name(self) -> str:
        """The region, under SDK v2's name."""
        return self.region

    @abstractmethod
    def account_id(self) -> str:
        """The account's id. On AWS the first call asks STS."""

    @abstractmethod
    def default_bucket(self) -> str:
        """Name of the bucket for code and results. Does not create the bucket."""

    @abstractmethod
    def resolve_role(self, role: str | None) -> str:
        """The role's ARN."""

    def place_of_log(self, command: str, group: str, prefix: str = "") -> str:
        """Where a person finds the whole log: here by a command, on AWS in the streams of a log group."""
        if self.own_log is not None:
            return f"{command}   (backend's own log: {self.own_log})"
        return f"CloudWatch Logs, group {group}{f', streams {prefix}' if prefix else ''} ({self.region})"

    def warm_up(self) -> None:
        """Get ready in the background, so that the first call is quick. Returns at once; idempotent."""
        return

    def target(self, role: str | None) -> Target:
        """What a request needs to know about this session. Changes nothing; on AWS it may ask STS and IAM."""
        return Target(self.region, self.default_bucket(), self.resolve_role(role), self.local)

    def ensure_buckets(self, buckets: frozenset[str]) -> None:
        """Create the missing buckets. Blocks.

        On AWS only the default bucket, never one of the user's own. Here all: a rehearsal uses the names that the
        user's buckets have on AWS.
        """
        for bucket in sorted(buckets if self.local else buckets & {self.default_bucket()}):
            self.service.ensure_bucket(bucket)

    def refuse_taken(self, job: str) -> None:
        """Refuse the name of an existing job before the uploads, which would replace that job's code and data.

        Raises:
            ServiceCallFailed: a job of this name exists.
        """
        try:
            self.service.describe_job(job)
        except ServiceCallFailed:  # no such job; a missing permission shows when the job is created
            return
        raise ServiceCallFailed(
            "CreateTrainingJob",
            "ResourceInUse",
            f"There is a training job {job} already; nothing was uploaded. Give another job_name=, or leave it out.",
        )

    def submit(self, request: TrainingRequest) -> None:
        """Make the uploads, then create the job. Blocks until both are done.

        Raises:
            ServiceCallFailed: an upload or the job was refused.
        """
        self.ensure_buckets(request.buckets())
        for upload in request.uploads:
            if isinstance(upload, SourceUpload):
                with packed(upload.tree) as file:
                    self.service.put_file(upload.bucket, upload.key, file, upload.kms_key_id, encrypt=True)
            else:
                self._put_path(upload)
        self.service.create_job(request.to_dict())

    def upload_data(self, path: str, bucket: str | None = None, key_prefix: str = "data") -> str:
        """Store a file or a directory; returns its ``s3://`` URI. Arguments as SDK v2's Session. Blocks."""
        source = absolute(path)
        if not source.exists():
            raise ConfigurationError(f"upload_data: {source} does not exist.")
        # As in SDK v2: else the prefix "data/" would give keys with an empty part, "data//file".
        prefix = "/".join(filter(None, key_prefix.split("/")))
        upload = PathUpload(source, bucket or self.default_bucket(), prefix)
        self.ensure_buckets(frozenset({upload.bucket}))
        self._put_path(upload)
        uri = "/".join(filter(None, (f"s3://{upload.bucket}", prefix)))
        return f"{uri}/{source.name}" if source.is_file() else uri

    def _put_path(self, upload: PathUpload) -> None:
        for name, path in _files_below(upload.path):
            with reading(path, ConfigurationError):
                file = path.open("rb")
            with file:
                key = f"{upload.prefix}/{name}" if upload.prefix else name
                self.service.put_file(upload.bucket, key, file, None, encrypt=False)


def _files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """Relative name and path of a file, or of every file below a directory, sorted."""
    if path.is_file():
        yield path.name, path
        return
    for found in sorted(path.rglob("*")):
        if found.is_file():
            yield found.relative_to(path).as_posix(), found
