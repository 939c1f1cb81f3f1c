"""What every session does: the uploads, then the job. `local` and `aws` say where it runs."""

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
    """Seconds between two looks at a job's log, at most."""
    least_poll_s: float
    """And at least: see `pause_s`."""
    describe_poll_s: float
    """Seconds between two looks at a job's status, at most."""
    settle_s: float
    """Seconds by which the log may lag behind a terminal status."""

    own_log: Path | None = None
    """The local backend's own log."""

    service: TrainingService
    endpoints: EndpointService
    transforms: TransformService

    @property
    def place(self) -> str:
        """For messages: the option of commands that ask there, ``" --aws"`` or nothing."""
        return "" if self.local else " --aws"

    def pause_s(self, passed_s: float) -> float:
        """Seconds until the next look at a job: few at first, so that a short job's end is seen soon; then more."""
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
        """The account. On AWS a call to STS, once."""

    @abstractmethod
    def default_bucket(self) -> str:
        """Name of the bucket for code and results. Does not create it."""

    @abstractmethod
    def resolve_role(self, role: str | None) -> str:
        """The role's ARN."""

    def place_of_log(self, command: str, group: str, prefix: str = "") -> str:
        """Where a person finds a whole log: by a command here, on AWS in the streams of a group."""
        if self.own_log is not None:
            return f"{command}   (backend's own log: {self.own_log})"
        return f"CloudWatch Logs, group {group}{f', streams {prefix}' if prefix else ''} ({self.region})"

    def warm_up(self) -> None:
        """Get ready in the background, so that the first call is quick. Returns at once; idempotent."""
        return

    def target(self, role: str | None) -> Target:
        """What a request needs to know of this session. No side effects; on AWS it may ask STS and IAM."""
        return Target(self.region, self.default_bucket(), self.resolve_role(role), self.local)

    def ensure_buckets(self, buckets: frozenset[str]) -> None:
        """Make those that are missing. Blocks.

        On AWS the default one alone, none of the user's own; here all: a rehearsal uses the names of AWS's.
        """
        for bucket in sorted(buckets if self.local else buckets & {self.default_bucket()}):
            self.service.ensure_bucket(bucket)

    def refuse_taken(self, job: str) -> None:
        """Refuse a name before its uploads, which would replace the code and data of the job that has it.

        Raises:
            ServiceCallFailed: there is such a job.
        """
        try:
            self.service.describe_job(job)
        except ServiceCallFailed:  # there is none; who may not ask hears it when the job is created
            return
        raise ServiceCallFailed(
            "CreateTrainingJob",
            "ResourceInUse",
            f"There is a training job {job} already; nothing was uploaded. Give another job_name=, or leave it out.",
        )

    def submit(self, request: TrainingRequest) -> None:
        """Do the uploads, then create the job. Blocks until both are done.

        Raises:
            ServiceCallFailed: what was refused, and why.
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
        # As SDK v2: else "data/" would put the files below a folder without a name.
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
