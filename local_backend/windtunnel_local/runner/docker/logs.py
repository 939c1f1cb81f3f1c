"""Following a container's output through the engine."""

from __future__ import annotations

import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.types import CancellableStream
from urllib3.exceptions import HTTPError

from windtunnel_local.runner.docker.client import engine_errors
from windtunnel_local.runner.docker.log_cursor import Cursor, LineAssembler, split_timestamp
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.errors import RunnerError

_FLUSH_S = 0.05
"""Seconds: lines that follow each other within this time share a batch."""
_IDLE_CHECK_S = 2.0
"""Seconds without output after which the container is looked at: engines have forgotten to end a stream."""
_MAX_BATCH_LINES = 2000
_MAX_BATCH_CHARACTERS = 8 << 20
"""A line may have a megabyte."""
_QUEUE_MESSAGES = 8192

_Message = tuple[int, bytes]


def follow(
    client: docker.DockerClient, container: str, cursor: str | None, running: Callable[[], bool]
) -> Iterator[LogBatch]:
    """Lines of ``container`` behind ``cursor`` until it has exited and all is read.

    Args:
        client: the engine.
        container: id or name; one that is gone ends the log.
        cursor: of the last batch that was kept, or None.
        running: whether the container can still print; asked when the engine ends the stream.

    Raises:
        RunnerUnavailable: the engine went away; resume with the last cursor.
    """
    position = Cursor.parse(cursor)
    pause_s = 0.05
    while running():
        before = position
        position = _trusted(client, container, position)
        for batch, behind in _attach(client, container, position, running):
            if batch.lines:
                yield batch
            position = behind
        # Where the container still runs, the engine closed the stream on its own: go on behind it.
        pause_s = 0.05 if position != before else min(2 * pause_s, 0.25)
        if running():
            time.sleep(pause_s)
    yield from _rest(client, container, _trusted(client, container, position))


def _trusted(client: docker.DockerClient, container: str, position: Cursor) -> Cursor:
    """``position``, or the same by number of lines if the log's last message is older than it. Then the clock was set
    back, and the engine, asked by time, would leave out the lines since.
    """
    if not position.since_ns:
        return position
    try:
        response = _request(client, container, Cursor(), follow=False, tail=1)
    except NotFound:
        return position
    with engine_errors("read a container's log"), closing(response):
        for _, message in _messages(response):
            if split_timestamp(message)[0] < position.since_ns:
                return Cursor.counted(position.total)
    return position


def _attach(
    client: docker.DockerClient, container: str, position: Cursor, running: Callable[[], bool]
) -> Iterator[tuple[LogBatch, Cursor]]:
    """One following connection: batches with the cursor behind each. It ends early if times tell nothing."""
    assembler = LineAssembler(position)
    messages = _FollowedStream(client, container, position)
    with closing(messages):
        lines = _Lines()
        flushed = 0.0
        while True:
            wait_s = max(0.0, flushed + _FLUSH_S - time.monotonic()) if lines else _IDLE_CHECK_S
            message = messages.get(wait_s) if wait_s else None
            if message is not None and message is not _END:
                line = assembler.feed(*message)
                if line is not None:
                    lines.add(line)
                many = lines.are_many or time.monotonic() >= flushed + _FLUSH_S
                if not assembler.mistimed and not (lines and many):
                    continue
            if lines or assembler.mistimed:
                behind = assembler.cursor()
                yield LogBatch(tuple(lines), str(behind)), behind
                lines, flushed = _Lines(), time.monotonic()
            elif message is None and (not running() or _trusted(client, container, position) != position):
                return
            if message is _END or assembler.mistimed:
                return


def _rest(client: docker.DockerClient, container: str, position: Cursor) -> Iterator[LogBatch]:
    """Read what an exited container printed behind ``position``, to the end, without following."""
    assembler = LineAssembler(position)
    lines = _Lines()
    try:
        response = _request(client, container, position, follow=False)
    except NotFound:
        return
    with engine_errors("read a container's log"), closing(response):
        for message in _messages(response):
            line = assembler.feed(*message)
            if line is not None:
                lines.add(line)
            if assembler.mistimed:
                break
            if lines.are_many:
                yield LogBatch(tuple(lines), str(assembler.cursor()))
                lines = _Lines()
    if not assembler.mistimed:
        lines += assembler.finish()
    if lines:
        yield LogBatch(tuple(lines), str(assembler.cursor()))
    if assembler.mistimed:
        yield from _rest(client, container, assembler.cursor())


class _Lines(list[LogLine]):
    """The lines of one batch."""

    def __init__(self) -> None:
        super().__init__()
        self._characters = 0

    def add(self, line: LogLine) -> None:
        self.append(line)
        self._characters += len(line.text)

    @property
    def are_many(self) -> bool:
        return len(self) >= _MAX_BATCH_LINES or self._characters >= _MAX_BATCH_CHARACTERS


_END: _Message = (0, b"")


class _FollowedStream:
    """A log stream read by a thread of its own, because a read of the engine's socket cannot time out."""

    def __init__(self, client: docker.DockerClient, container: str, position: Cursor) -> None:
        self._messages: queue.Queue[_Message] = queue.Queue(_QUEUE_MESSAGES)
        self._closed = threading.Event()
        try:
            self._response: requests.Response | None = _request(client, container, position, follow=True)
        except NotFound:
            self._response = None
            self._put(_END)
            return
        self._stream = CancellableStream(_messages(self._response), self._response)
        self._thread = threading.Thread(target=self._read, name=f"log {container[:40]}", daemon=True)
        self._thread.start()

    def get(self, timeout_s: float) -> _Message | None:
        """The next message, `_END` behind the last, or None after ``timeout_s`` without any."""
        try:
            return self._messages.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the connection and its thread. Idempotent."""
        self._closed.set()
        if self._response is not None:
            self._stream.close()
            self._thread.join()
            self._response.close()
            self._response = None

    def _read(self) -> None:
        try:
            for message in self._stream:
                if not self._put(message):
                    return
        except (OSError, ValueError, requests.RequestException, HTTPError, DockerException, RunnerError):
            pass  # the follower asks for the container's state, and that says what is wrong
        self._put(_END)

    def _put(self, message: _Message) -> bool:
        while not self._closed.is_set():
            try:
                self._messages.put(message, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False


def _request(
    client: docker.DockerClient, container: str, position: Cursor, *, follow: bool, tail: int | None = None
) -> requests.Response:
    """The raw answer: docker-py's `logs` hides which stream a message is of, and rounds `since`."""
    api = client.api
    parameters: dict[str, str | int] = {"stdout": 1, "stderr": 1, "timestamps": 1, "follow": int(follow)}
    if position.since_ns:
        parameters["since"] = position.since
    if tail is not None:
        parameters["tail"] = tail
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/logs"
    with engine_errors("read a container's log"):
        response = api.get(url, params=parameters, stream=True, timeout=None)
    if response.status_code in (404, 409):  # gone, or just being removed
        response.close()
        raise NotFound("the container is gone")
    with engine_errors("read a container's log"):
        try:
            response.raise_for_status()
        except requests.HTTPError as error:
            raise APIError(str(error), response=response) from error
    return response


def _messages(response: requests.Response) -> Iterator[_Message]:
    """Split the engine's multiplexed stream: one frame is one message of its log."""
    read = response.raw.read
    while True:
        header = read(8)
        if len(header) < 8:
            return
        stream, length = struct.unpack(">BxxxL", header)
        data = read(length)
        if len(data) < length:
            return
        if stream == 3:  # the engine's own trouble
            raise RunnerError(f"Docker could not read a container's log: {data.decode('utf-8', 'replace')}")
        yield stream, data
