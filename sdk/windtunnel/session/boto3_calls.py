"""What all ports share over boto3: clients, a call that raises our errors, pages of lists, log streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from windtunnel.errors import BackendError, ServiceCallFailed
from windtunnel.session.training_service import LogLine

_FAILURE_KEPT_S = 0.5
_RUNTIME = "sagemaker-runtime"
_RUNTIME_READ_TIMEOUT_S = 80
"""A model may take 60 s for an answer (API reference, InvokeEndpoint); SDK v2 waits 80 s, too."""
RUNTIME_CONNECTIONS = 50
"""Requests to endpoints at the same time."""


class BotoCalls:
    """boto3 clients, each made once, when first needed or by `warm_up`.

    Args:
        connect: gives the keyword arguments of every client (endpoint_url, config, ...) and the boto3
            session. Called again after the connection was lost.
        local: whether the calls go to the local backend.
    """

    def __init__(self, connect: Callable[[], tuple[Any, Mapping[str, Any]]], *, local: bool) -> None:
        self._connect = connect
        self.local = local
        self._lock = threading.RLock()
        self._clients: dict[str, Any] = {}
        self._connection: tuple[Any, Mapping[str, Any]] | None = None
        self._failed: tuple[float, Exception] | None = None

    def client(self, service: str) -> Any:
        """The boto3 client of a service. Takes 0.02 to 0.2 s the first time; thread-safe."""
        with self._lock:
            if service not in self._clients:
                if self._connection is None:
                    self._connection = self._connected()
                session, keywords = self._connection
                if service == _RUNTIME:
                    keywords = _for_invocations(keywords)
                client = session.client(service, **keywords)
                if service == _RUNTIME:
                    client.meta.events.register_first(f"needs-retry.{_RUNTIME}", _not_if_it_may_have_arrived)
                self._clients[service] = client
            return self._clients[service]

    def _connected(self) -> tuple[Any, Mapping[str, Any]]:
        # A caller that waited for the warm-up thread gets that thread's error, and does not repeat the failed start.
        if self._failed is not None and time.monotonic() - self._failed[0] < _FAILURE_KEPT_S:
            raise self._failed[1]
        try:
            return self._connect()
        except BackendError as error:
            self._failed = (time.monotonic(), error)
            raise

    def forget_connection(self) -> None:
        """Close all clients; the next call connects anew. For a backend that now listens elsewhere."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._connection = None

    close = forget_connection

    def warm_up(self) -> None:
        """Make the clients that every job needs before their first use."""
        for service in ("sagemaker", "s3", "logs"):
            self.client(service)

    def pages(
        self, service: str, method: str, members: Mapping[str, Any], token: str, sent: str | None = None
    ) -> Iterator[Any]:
        """All pages of a listing. ``token``: the response's member that continues the listing; ``sent``: the request's,
        if that has another name.
        """
        more: dict[str, str] = {}
        while True:
            page = self.call(service, method, {**members, **more})
            yield page
            if not page.get(token):
                return
            more = {sent or token: page[token]}

    def streams(self, group: str, prefix: str | None) -> list[str]:
        """DescribeLogStreams: sorted names of a group's streams that begin with ``prefix``; empty without the group."""
        members = {"logGroupName": group, **({"logStreamNamePrefix": prefix} if prefix else {})}
        try:
            pages = list(self.pages("logs", "describe_log_streams", members, "nextToken"))
        except ServiceCallFailed as error:
            if error.code == "ResourceNotFoundException":  # the group appears with its first stream
                return []
            raise
        return sorted(stream["logStreamName"] for page in pages for stream in page["logStreams"])

    def events(self, group: str, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """GetLogEvents: one page of a stream's lines from ``token`` (None: the start), and the next page's token."""
        members = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
        if token is not None:
            members["nextToken"] = token
        page = self.call("logs", "get_log_events", members)
        lines = [LogLine(event["timestamp"], event["message"]) for event in page["events"]]
        return lines, page.get("nextForwardToken", token)

    def call(self, service: str, method: str, members: Mapping[str, Any], *, repeat: bool = True) -> Any:
        """Make one call. If the local backend has gone, start it again and repeat the call once.

        ``repeat=False``: the call changes something, so it is repeated only if it certainly never arrived.

        Raises:
            ServiceCallFailed: the call was refused or did not arrive.
            BackendError: the local backend does not answer.
        """
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionClosedError,
            EndpointConnectionError,
            ReadTimeoutError,
        )

        def attempt() -> Any:
            return getattr(self.client(service), method)(**members)

        lost: tuple[type[Exception], ...] = (EndpointConnectionError,)
        if repeat:
            lost = (EndpointConnectionError, ConnectionClosedError, ReadTimeoutError)
        try:
            try:
                return attempt()
            except lost:
                if not self.local:
                    raise
                self.forget_connection()
                _rewind(members)
                return attempt()
        except ClientError as error:
            said = error.response.get("Error", {})
            raise ServiceCallFailed(
                error.operation_name, str(said.get("Code", "Unknown")), str(said.get("Message", error))
            ) from error
        except BotoCoreError as error:
            if self.local and isinstance(error, (EndpointConnectionError, ConnectionClosedError)):
                raise BackendError(f"The local backend does not answer: {error}") from error
            raise ServiceCallFailed(method, type(error).__name__, str(error)) from error


def _for_invocations(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """Client arguments for requests to models: a long read timeout, and connections for many threads."""
    from botocore.config import Config

    own = Config(read_timeout=_RUNTIME_READ_TIMEOUT_S, max_pool_connections=RUNTIME_CONNECTIONS)
    given = keywords.get("config")
    return {**keywords, "config": own if given is None else given.merge(own)}


def _not_if_it_may_have_arrived(caught_exception: Exception | None = None, **_: Any) -> None:
    """Keep botocore from repeating a request whose answer was lost: the model may have run, with effects."""
    from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

    if isinstance(caught_exception, (ConnectionClosedError, ReadTimeoutError)):
        raise caught_exception


def _rewind(members: Mapping[str, Any]) -> None:
    body = members.get("Body")
    if body is not None and hasattr(body, "seek"):
        body.seek(0)
