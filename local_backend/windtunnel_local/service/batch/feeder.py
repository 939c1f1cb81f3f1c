"""Sends one instance its share of the files, in several threads, and stores the results."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from windtunnel_local.service.batch.invoking import Invoker, Lost, execution_parameters
from windtunnel_local.service.batch.open_file import OpenFile
from windtunnel_local.service.batch.splitting import Payload
from windtunnel_local.service.batch.transform_request import Limits, TransformRequest
from windtunnel_local.service.batch.work import Work
from windtunnel_local.service.data.listing import Item
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.errors import InputError, ObjectError, StoreUnavailable
from windtunnel_local.service.ground.hosting import Instance, stored_stream
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting.instance_run import pings
from windtunnel_local.service.hosting.router import Target

_log = logging.getLogger(__name__)

_LOOK_S = 0.1
_PATIENCE_S = 5.0

Unit = tuple[OpenFile, int, Payload]


class Feeder:
    """Has one thread for each request that the instance takes at once. A file goes to one instance only, as on AWS."""

    def __init__(
        self,
        ports: Ports,
        instance: Instance,
        target: Target,
        request: TransformRequest,
        work: Work,
        mark: Mapping[str, str],
    ) -> None:
        """Starts at once. ``mark``: metadata of the objects that it stores, which mark them as this job's."""
        self._ports = ports
        self._address = target.address
        self._request = request
        self._invoker = Invoker(target.address, request.headers, request.timeout_s, request.retries)
        self._work = work
        self._mark = mark
        self._log_stream = stored_stream(instance.group, f"{instance.stream}/data-log")
        self._over = threading.Event()
        self._changed = threading.Condition()
        self._away = False
        """Whether the container does not answer at present, and may come back at this address."""
        self._open: list[OpenFile] = []
        self._limits = Limits(1, 1, several=False)
        self._threads = [
            threading.Thread(target=self._begin, name=f"{instance.owned_by} feeder", daemon=True)
        ]
        self._threads[0].start()

    def leave(self, *, lost: bool = False) -> None:
        """Send nothing more, and give back unfinished files. ``lost``: the container has ended. Idempotent."""
        with self._changed:
            self._over.set()
            self._invoker.abort()
            for file in list(self._open):
                self._give_back(file, counted=lost)
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the threads, some seconds at most."""
        deadline = time.monotonic() + _PATIENCE_S
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _begin(self) -> None:
        self._limits = self._request.limits(execution_parameters(self._address))
        if not self._over.is_set():
            self._say(str(self._limits))
        for number in range(1, self._limits.concurrent):
            name = f"{self._threads[0].name} {number}"
            self._threads.append(threading.Thread(target=self._feed, name=name, daemon=True))
            self._threads[-1].start()
        self._feed()

    def _feed(self) -> None:
        """One thread: send payload after payload, until all files of the job are done or the feeder has to leave."""
        while not self._over.is_set():
            unit = self._next()
            if unit is not None:
                self._send(*unit)
            elif self._work.is_done:
                return
            else:
                with self._changed:
                    self._changed.wait(_LOOK_S)

    def _next(self) -> Unit | None:
        """The next payload, of an open file or of a new one; None if there is none now."""
        with self._changed:
            for file in list(self._open):
                if (unit := self._unit(file)) is not None:
                    return unit
            while not (self._over.is_set() or self._away) and (item := self._work.take()) is not None:
                try:
                    file = OpenFile(item, self._request, self._limits, self._ports.config.jobs)
                except Exception as error:  # noqa: BLE001 - a file that neither ends nor fails would block the job
                    self._fail(item, _reason(error))
                    continue
                self._open.append(file)
                if (unit := self._unit(file)) is not None:
                    return unit
        return None

    def _unit(self, file: OpenFile) -> Unit | None:
        try:
            found = file.next()
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(file, error)
            return None
        if found is not None:
            return (file, *found)
        self._finish(file)
        return None

    def _send(self, file: OpenFile, number: int, payload: Payload) -> None:
        try:
            answer = self._invoker.ask(payload.body)
        except Lost as lost:
            self._await_container(file, lost)
            return
        except Exception as error:  # noqa: BLE001 - as above
            with self._changed:
                self._give_up(file, error)
            return
        with self._changed:
            if file not in self._open:  # another payload of the file has failed meanwhile
                return
            try:
                file.answered(number, payload, answer)
            except Exception as error:  # noqa: BLE001 - as above
                self._give_up(file, error)
                return
            self._finish(file)
            self._changed.notify_all()

    def _await_container(self, file: OpenFile, lost: Lost) -> None:
        """Open no new file until the container answers again; otherwise each would count as one that has ended it."""
        with self._changed:
            self._give_back(file, counted=lost.begun)
            if self._away:
                return
            self._away = True
        while not self._over.wait(_LOOK_S) and not pings(self._address):
            pass
        self._away = False

    def _finish(self, file: OpenFile) -> None:
        """Store the file's result if it is complete: in one step, marked as this job's."""
        if not file.is_whole or self._over.is_set():
            return
        file.result.seek(0)
        try:
            self._ports.objects.put(*self._request.target(file.item.place), file.result, self._mark)
        except ObjectError as error:
            self._give_up(file, InputError(f"ClientError: the result cannot be stored: {error}"))
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(file, error)
        else:
            self._close(file)
            self._work.done()

    def _give_up(self, file: OpenFile, error: Exception) -> None:
        if self._close(file):
            self._fail(file.item, _reason(error))

    def _give_back(self, file: OpenFile, *, counted: bool) -> None:
        if self._close(file):
            self._work.give_back(file.item, counted=counted)

    def _close(self, file: OpenFile) -> bool:
        """Close a file; returns whether it was open."""
        if file not in self._open:
            return False
        self._open.remove(file)
        file.close()
        return True

    def _fail(self, item: Item, reason: str) -> None:
        self._say(f"{item.uri.removeprefix('s3://')}: {reason}")
        self._work.fail(item, reason)

    def _say(self, text: str) -> None:
        """Write a line into the job's data log, in AWS's form."""
        now = self._ports.clock.now()
        stamp = now.isoformat(timespec="milliseconds").partition("+")[0]
        line = LogLine(self._ports.now_ms(), f"{stamp}:[sagemaker logs]: {text}")
        try:
            self._ports.store.open_log_stream(None, "data-log", self._log_stream, line.timestamp_ms)
            self._ports.store.append_log(self._log_stream, LogBatch((line,), ""), line.timestamp_ms)
        except StoreUnavailable as error:
            _log.warning("A line of the log is lost (%s): %s", error, line.text)


def _reason(error: Exception) -> str:
    """The reason of a failed file: AWS's error code, a colon, and the message."""
    if isinstance(error, InputError):
        return str(error)
    _log.error("A file cannot be transformed", exc_info=error)
    return f"InternalServerError: {error}"
