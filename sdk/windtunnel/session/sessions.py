"""Where jobs run: the local backend (default) or AWS. Either way the same request over the same wire.

LocalSession      the backend on this machine, started when the first call needs it
AwsSession        real SageMaker, through a boto3.Session
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from windtunnel import settings
from windtunnel.errors import ConfigurationError, ServiceCallFailed
from windtunnel.local_paths import absolute, reading
from windtunnel.request.source_archive import packed
from windtunnel.request.training_request import PathUpload, SourceUpload, Target, TrainingRequest
from windtunnel.session.background_thread import in_background
from windtunnel.session.boto3_service import BotoService
from windtunnel.session.local_server import Backend, Credentials
from windtunnel.session.training_service import TrainingService

LOCAL_ROLE = "windtunnel-local"

# botocore's own variables, without those that lead to the user's profiles: one that is missing, or that has
# settings for S3 on AWS, must not keep the local backend from being asked. (name in a file, in the
# environment, default, conversion)
_NOTHING_OF_THE_USERS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


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

    service: TrainingService

    def pause_s(self, passed_s: float) -> float:
        """Until the next look at a job: a short one's end is not seen late, a long one costs few calls."""
        return min(self.log_poll_s, max(self.least_poll_s, passed_s / 100))

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

    @abstractmethod
    def describe_logs(self, job: str) -> str:
        """Where a person finds the whole log of a job."""

    def warm_up(self) -> None:
        """Get ready in the background, so that the first call is quick. Returns at once; idempotent."""
        return

    def target(self, role: str | None) -> Target:
        """What a request needs to know of this session. No side effects; on AWS it may ask STS and IAM."""
        return Target(self.region, self.default_bucket(), self.resolve_role(role), self.local)

    def _ours(self, buckets: frozenset[str]) -> frozenset[str]:
        """Those that are made if they are missing. Of the user's own buckets none is."""
        return buckets & {self.default_bucket()}

    def submit(self, request: TrainingRequest) -> None:
        """Do the uploads, then create the job. Blocks until both are done.

        Raises:
            ServiceCallFailed: what was refused, and why.
        """
        for bucket in sorted(self._ours(request.buckets())):
            self.service.ensure_bucket(bucket)
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
        upload = PathUpload(source, bucket or self.default_bucket(), key_prefix)
        if bucket is None:
            self.service.ensure_bucket(upload.bucket)
        self._put_path(upload)
        uri = f"s3://{upload.bucket}/{key_prefix}"
        return f"{uri}/{source.name}" if source.is_file() else uri

    def _put_path(self, upload: PathUpload) -> None:
        for name, path in _files_below(upload.path):
            with reading(path, ConfigurationError):
                file = path.open("rb")
            with file:
                self.service.put_file(upload.bucket, f"{upload.prefix}/{name}", file, None, encrypt=False)


class LocalSession(Session):
    """Jobs run in containers on this machine.

    Making one starts nothing. The first call finds the backend of ``home`` or starts it, waits up to 20 s for
    it, and raises `BackendError` with the end of its log if it does not come up.

    Args:
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        backend: how the backend is found and started.
        service: replaces boto3 (tests).
    """

    local = True
    log_poll_s = 0.1
    least_poll_s = 0.03
    describe_poll_s = 0.2
    settle_s = 0.0

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        backend: Backend | None = None,
        service: TrainingService | None = None,
    ) -> None:
        self.backend = backend or Backend(absolute(home) if home else settings.home())
        self._warming: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self.service: TrainingService = service or BotoService(self._connect, local=True)

    @property
    def home(self) -> Path:
        """The backend's state directory."""
        return self.backend.home

    @property
    def region(self) -> str:
        """The region the backend plays: us-east-1."""
        return self.backend.account_and_region()[1]

    def account_id(self) -> str:
        """The account the backend plays: 000000000000."""
        return self.backend.account_and_region()[0]

    def default_bucket(self) -> str:
        """``windtunnel-<region>-<account>``."""
        account, region = self.backend.account_and_region()
        return f"windtunnel-{region}-{account}"

    def resolve_role(self, role: str | None) -> str:
        """The ARN given, or one made from the name; no role at all is fine."""
        if role and role.startswith("arn:"):
            return role
        return f"arn:aws:iam::{self.account_id()}:role/{role or LOCAL_ROLE}"

    def _ours(self, buckets: frozenset[str]) -> frozenset[str]:
        """All: the user's buckets on AWS are not here, and a rehearsal takes their names as they are."""
        return buckets

    def describe_logs(self, job: str) -> str:
        """The command that prints them."""
        return f"windtunnel logs {job}   (backend's own log: {self.backend.log_path})"

    def endpoint(self) -> str:
        """URL of the backend, started if needed: for ``boto3.client(..., endpoint_url=...)``."""
        return self.backend.ensure().endpoint

    def warm_up(self) -> None:
        """Start the backend if needed and make the clients, in a thread (about 0.4 s of work, once)."""
        with self._lock:
            if self._warming is None and isinstance(self.service, BotoService):
                self._warming = in_background(self.service.warm_up)

    def _connect(self) -> tuple[Any, Mapping[str, Any]]:
        # The server starts while boto3 is imported and its first client is made.
        ensured = in_background(self.backend.ensure)
        import boto3
        import botocore.session
        from botocore.config import Config

        endpoint = ensured().endpoint
        credentials: Credentials = self.backend.credentials()
        session = boto3.Session(
            botocore_session=botocore.session.Session(session_vars=_NOTHING_OF_THE_USERS),
            aws_access_key_id=credentials.access_key_id,
            aws_secret_access_key=credentials.secret_access_key,
            region_name=credentials.region,
        )
        config = Config(
            connect_timeout=2,
            read_timeout=60,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            proxies={},
            max_pool_connections=4,
        )
        return session, {"endpoint_url": endpoint, "config": config}


class AwsSession(Session):
    """Jobs run on SageMaker itself and cost money.

    Args:
        boto_session: a ``boto3.Session``; default: AWS's usual chain of credentials.
        bucket: replaces the default bucket ``sagemaker-<region>-<account>``.
        service: replaces boto3 (tests).
    """

    local = False
    log_poll_s = 2.0
    least_poll_s = 2.0  # AWS counts the calls
    describe_poll_s = 5.0
    settle_s = 4.0

    def __init__(
        self, boto_session: Any = None, *, bucket: str | None = None, service: TrainingService | None = None
    ) -> None:
        self._boto_session = boto_session
        self._bucket = bucket
        self._account: str | None = None
        self.service: TrainingService = service or BotoService(self._connect, local=False)

    @property
    def boto_session(self) -> Any:
        """The boto3.Session; imports boto3 on first use."""
        if self._boto_session is None:
            import boto3

            self._boto_session = boto3.Session()
        return self._boto_session

    @property
    def region(self) -> str:
        """The session's region."""
        region = self.boto_session.region_name
        if not region:
            raise ConfigurationError(
                "The AWS session has no region. Set AWS_DEFAULT_REGION or boto3.Session(region_name=...)."
            )
        return str(region)

    def account_id(self) -> str:
        """The caller's account, asked of STS once."""
        if self._account is None:
            self._account = self.service.account_id()
        return self._account

    def default_bucket(self) -> str:
        """``sagemaker-<region>-<account>``, or the bucket given."""
        if self._bucket:
            return self._bucket
        try:
            return f"sagemaker-{self.region}-{self.account_id()}"
        except ServiceCallFailed as error:
            raise ServiceCallFailed(
                error.operation,
                error.code,
                f"{error.service_message}. (The account is asked for to name the default bucket: "
                "AwsSession(bucket=...) names one, and a dry run then needs no network.)",
            ) from error

    def resolve_role(self, role: str | None) -> str:
        """The ARN given, or that of the role named."""
        if not role:
            raise ConfigurationError(
                "role= is required on AWS: the name or ARN of an IAM role that SageMaker may assume."
            )
        return role if "/" in role else self.service.role_arn(role)

    def describe_logs(self, job: str) -> str:
        """The CloudWatch group and prefix."""
        return f"CloudWatch Logs, group /aws/sagemaker/TrainingJobs, streams {job}/ ({self.region})"

    def _connect(self) -> tuple[Any, Mapping[str, Any]]:
        from botocore.config import Config

        return self.boto_session, {"config": Config(connect_timeout=5, retries={"mode": "standard"})}


def _files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """Relative name and path of a file, or of every file below a directory, sorted."""
    if path.is_file():
        yield path.name, path
        return
    for found in sorted(path.rglob("*")):
        if found.is_file():
            yield found.relative_to(path).as_posix(), found


_shared: dict[Path, LocalSession] = {}
_shared_lock = threading.Lock()


def shared_local_session() -> LocalSession:
    """The session of the default home: one a process, so that its clients are made once."""
    home = settings.home()
    with _shared_lock:
        return _shared.setdefault(home, LocalSession(home))


def resolve_session(session: Any = None, sagemaker_session: Any = None) -> Session:
    """The session an estimator or job uses, from either of its two argument names.

    Raises:
        ConfigurationError: both were given, or something that is no session.
    """
    if session is not None and sagemaker_session is not None and session is not sagemaker_session:
        raise ConfigurationError("session= and sagemaker_session= are the same argument. Give one.")
    given = session if session is not None else sagemaker_session
    if given is None:
        return shared_local_session()
    if isinstance(given, Session):
        return given
    is_boto3 = callable(getattr(given, "client", None)) and hasattr(given, "region_name")
    if is_boto3 and sagemaker_session is None:
        return AwsSession(given)
    raise ConfigurationError(
        f"session: cannot use {type(given).__module__}.{type(given).__qualname__}. Leave it out to rehearse "
        "here, or name AWS explicitly with session=AwsSession(boto3.Session()): that run is billed."
    )


def get_execution_role(session: Session | None = None) -> str:
    """A role for ``role=``, under SDK v2's name: the local backend's. On AWS, name your own role."""
    return resolve_session(session).resolve_role(None)
