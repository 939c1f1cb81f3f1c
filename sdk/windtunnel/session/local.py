"""The session of this machine: the local server, started when the first call needs it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from windtunnel import settings
from windtunnel.local_paths import absolute
from windtunnel.session.boto3_endpoints import BotoEndpoints
from windtunnel.session.boto3_training import BotoService
from windtunnel.session.boto3_transforms import BotoTransforms
from windtunnel.session.endpoint_service import EndpointService
from windtunnel.session.local_server import Backend, Credentials
from windtunnel.session.session import Session as AnySession
from windtunnel.session.training_service import TrainingService
from windtunnel.session.transform_service import TransformService

LOCAL_ROLE = "windtunnel-local"
_T = TypeVar("_T")

# Settings that keep botocore from reading the user's profiles: a missing profile, or one with settings for S3 on AWS,
# must not break calls to the local backend. Each: name in a config file, environment variable, default, conversion.
_NOTHING_OF_THE_USERS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class LocalSession(AnySession):
    """Jobs run in containers on this machine.

    Making one starts nothing. The first call finds the backend of ``home`` or starts it, waits up to 60 s for
    it, and raises `BackendError` with the end of its log if it does not come up.

    Args:
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        default_bucket: replaces the default bucket ``windtunnel-<region>-<account>``.
        backend: finds and starts the server; default: that of ``home``.
        service, endpoints, transforms: replace boto3 (tests).
    """

    local = True
    log_poll_s = 0.25  # each poll costs client and server 8 ms of a processor that the job could use
    least_poll_s = 0.03
    describe_poll_s = 0.5
    settle_s = 0.0

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        default_bucket: str | None = None,
        backend: Backend | None = None,
        service: TrainingService | None = None,
        endpoints: EndpointService | None = None,
        transforms: TransformService | None = None,
    ) -> None:
        self.backend = backend or Backend(absolute(home) if home else settings.home())
        self.own_log = self.backend.log_path
        self._bucket = default_bucket
        self._warming: Callable[[], None] | None = None
        self._lock = threading.Lock()
        calls = BotoService(self._connect, local=True)
        self.service: TrainingService = service or calls
        self.endpoints: EndpointService = endpoints or BotoEndpoints(calls)
        self.transforms: TransformService = transforms or BotoTransforms(calls)

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
        """``windtunnel-<region>-<account>``, or the bucket given."""
        if self._bucket:
            return self._bucket
        account, region = self.backend.account_and_region()
        return f"windtunnel-{region}-{account}"

    def resolve_role(self, role: str | None) -> str:
        """The role's ARN: as given, or made from the name. Without a role: that of `LOCAL_ROLE`."""
        if role and role.startswith("arn:"):
            return role
        return f"arn:aws:iam::{self.account_id()}:role/{role or LOCAL_ROLE}"

    def endpoint(self) -> str:
        """URL of the backend, for ``boto3.client(..., endpoint_url=...)``. Starts the backend if needed."""
        return self.backend.ensure().endpoint

    def warm_up(self) -> None:
        """In a thread, start the backend if needed and make the clients (about 0.4 s, once). Returns at once."""
        with self._lock:
            if self._warming is None and isinstance(self.service, BotoService):
                self._warming = _in_background(self.service.warm_up)

    def _connect(self) -> tuple[Any, Mapping[str, Any]]:
        # The server starts while boto3 is imported and its first client is made.
        ensured = _in_background(self.backend.ensure)
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


Session = LocalSession
"""`LocalSession` under SDK v2's name."""


def _in_background(work: Callable[[], _T]) -> Callable[[], _T]:
    """Start ``work`` in a thread; the returned function waits for its result or raises its error."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that asks for the result
            future.set_exception(error)

    # Not an executor's thread: Python would wait for it at exit.
    threading.Thread(target=run, name="windtunnel-background", daemon=True).start()
    return future.result
