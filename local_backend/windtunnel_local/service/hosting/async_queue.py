"""The queue of one endpoint's asynchronous invocations: each gets one answer, also if server or container is killed.

An invocation is recorded before InvokeEndpointAsync answers, and removed once its answer is in S3, so that the next
server goes on with the rest. If a container ends during an invocation, it is sent again.
"""

from __future__ import annotations

import http.client
import io
import logging
import threading
import time

from windtunnel_local.service.ground.errors import NoSuchBucket, StoreUnavailable, is_full_disk
from windtunnel_local.service.ground.hosting import Invocation
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.hosting import async_call
from windtunnel_local.service.hosting.meter import Meter
from windtunnel_local.service.hosting.router import Router

_log = logging.getLogger(__name__)

_MOST_AT_ONCE = 64
"""Most threads of one endpoint, however large its MaxConcurrentInvocationsPerInstance."""
_PAGE = 50
_PAUSE_S = 0.05
_TRIES = 3
"""After so many connections that broke off, an invocation fails."""


class AsyncQueue:
    """Sends the invocations to containers, in as many threads as needed. Thread-safe."""

    def __init__(self, endpoint: str, ports: Ports, router: Router, meter: Meter) -> None:
        """Sends nothing until `serve`."""
        self._endpoint = endpoint
        self._ports = ports
        self._router = router
        self._meter = meter
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._found: list[Invocation] = []
        self._put_back: list[Invocation] = []
        """Invocations to send again: their answers could not be stored, or an unexpected error came."""
        self._last = 0
        self._threads = 0
        self._idle = 0
        self._most = 0

    def serve(self, at_once: int) -> None:
        """Send so many invocations at once, at most."""
        most = min(at_once, _MOST_AT_ONCE)
        with self._changed:
            if most == self._most:
                return
            self._most = most
        self.wake()

    def wake(self) -> None:
        """Start or wake a thread for a new invocation."""
        with self._changed:
            if self._idle:
                self._changed.notify()
            elif self._threads < self._most:
                self._threads += 1
                name = f"endpoint {self._endpoint} asks {self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()

    def leave(self) -> None:
        """Send no more. The next server may repeat invocations that are under way. Does not block."""
        self._leaving.set()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        while not self._leaving.is_set():
            invocation = None
            try:
                if (invocation := self._next()) is not None:
                    self._answer(invocation)
            except (StoreUnavailable, OSError) as error:  # mostly the disk is full
                _log.warning("Endpoint %s waits: %s", self._endpoint, error)
                self._put_off(invocation)
            except Exception as error:  # noqa: BLE001 - without its thread, invocations would stay unanswered
                if not self._leaving.is_set():  # at shutdown the store may be closed already
                    _log.error("Endpoint %s, an invocation", self._endpoint, exc_info=error)
                self._put_off(invocation)

    def _put_off(self, invocation: Invocation | None) -> None:
        """Queue an invocation again, after all new ones, and wait `Pace.retry_s`. Its RequestTTLSeconds run on."""
        if invocation is not None:
            with self._changed:
                self._put_back.append(invocation)
        self._leaving.wait(self._ports.config.pace.retry_s)

    def _next(self) -> Invocation | None:
        with self._changed:
            if not self._found:
                page = self._ports.store.invocations(self._endpoint, self._last, _PAGE)
                self._found = [invocation for _, invocation in page]
                self._last = page[-1][0] if page else self._last
                if not page:  # repeat failed ones last: their error need not concern the new ones
                    self._found, self._put_back = self._put_back, []
            if self._found:
                found = self._found.pop(0)
                more = bool(self._found)
            else:
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
                return None
        if more:
            self.wake()
        return found

    def _answer(self, invocation: Invocation) -> None:
        """Send the invocation until it is answered, has failed, or has expired."""
        tries = 0
        if async_call.is_answered(invocation, self._ports.objects):
            return self._ports.store.remove_invocation(invocation.id)
        while not self._leaving.is_set():
            try:
                if self._ports.now_ms() > invocation.accepted_ms + invocation.ttl_s * 1000:
                    raise async_call.InvocationFailedError(
                        f"The request has expired: it waited for longer than its RequestTTLSeconds, {invocation.ttl_s}."
                    )
                if self._send(invocation):
                    return self._ports.store.remove_invocation(invocation.id)
            except async_call.InvocationFailedError as error:
                return self._fail(invocation, str(error))
            except (OSError, http.client.HTTPException) as error:
                if is_full_disk(error):  # the answer cannot be stored: the connection is not at fault
                    raise
                tries += 1
                if tries >= _TRIES:
                    return self._fail(
                        invocation,
                        f"The container's connection broke off {_TRIES} times before it had answered: {error}.",
                    )
            self._leaving.wait(_PAUSE_S)
        return None

    def _send(self, invocation: Invocation) -> bool:
        """Send the invocation to a free instance; return whether one was free and has answered."""
        with self._router.taken() as target:
            if target is None:
                return False
            begun, status = time.monotonic(), 0
            try:
                async_call.ask(invocation, target.variant, target.address, self._ports.objects)
                status = http.HTTPStatus.OK
            except async_call.NotReachedError:
                return False
            except async_call.InvocationFailedError as error:
                status = error.status
                raise
            except NoSuchBucket:
                raise async_call.InvocationFailedError(
                    f"The answer cannot be stored at {invocation.output}: the bucket is gone."
                ) from None
            finally:
                if status:
                    self._meter.add(self._endpoint, target.variant, status, time.monotonic() - begun)
            return True

    def _fail(self, invocation: Invocation, words: str) -> None:
        _log.warning("Endpoint %s, invocation %s: %s", self._endpoint, invocation.id, words)
        if invocation.failure is not None:
            try:
                self._ports.objects.put(
                    *parse_s3(invocation.failure), io.BytesIO(words.encode()), {"content-type": "text/plain"}
                )
            except NoSuchBucket:
                _log.warning("%s has no bucket", invocation.failure)
        self._ports.store.remove_invocation(invocation.id)
