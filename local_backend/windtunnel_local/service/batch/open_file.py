"""One file that is being transformed: hands out its payloads in order, and puts the answers together in order."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

from windtunnel_local.service.batch.splitting import Payload, payloads, reading
from windtunnel_local.service.batch.transform_request import Limits, TransformRequest
from windtunnel_local.service.data.listing import Item
from windtunnel_local.service.ground.errors import InputError


class OpenFile:
    """One input file and its result. Not thread-safe: its feeder has a lock."""

    def __init__(self, item: Item, request: TransformRequest, limits: Limits, scratch: Path) -> None:
        """``scratch``: the folder of the result's temporary file, which has no name, so that a crash leaves nothing.

        Raises:
            InputError: the input file does not exist.
        """
        self.item = item
        self._request = request
        self._most_waiting = 2 * limits.concurrent
        self._handed = self._written = 0
        self._exhausted = False
        self._answers: dict[int, bytes] = {}
        with ExitStack() as opened:
            with reading():
                stream: BinaryIO = opened.enter_context(item.original().open("rb"))
            if request.gzipped:
                stream = cast("BinaryIO", opened.enter_context(gzip.open(stream)))
            self.result = opened.enter_context(tempfile.TemporaryFile(dir=scratch))
            self._payloads: Iterator[Payload] = payloads(
                stream,
                by_line=request.by_line,
                several=limits.several,
                most_mb=limits.most_mb,
                processing=request.processing,
            )
            self._opened = opened.pop_all()

    @property
    def is_whole(self) -> bool:
        """Whether the answers to all payloads are in the result."""
        return self._exhausted and self._written == self._handed

    def next(self) -> tuple[int, Payload] | None:
        """The next payload and its number; None if there is none, or if too many answers are outstanding.

        Raises:
            InputError: the file's content does not match the request.
        """
        if self._exhausted or self._handed - self._written >= self._most_waiting:
            return None
        with reading():
            payload = next(self._payloads, None)
        if payload is None:
            self._exhausted = True
            return None
        self._handed += 1
        return self._handed - 1, payload

    def answered(self, number: int, payload: Payload, answer: bytes) -> None:
        """Add the answer to a payload. Raises ``InputError`` if it cannot be joined or filtered."""
        if self._request.processing is not None:
            try:
                answer = self._request.processing.result(payload.records, answer)
            except InputError as error:
                raise InputError(f"AlgorithmError: {error}") from error
        self._answers[number] = answer
        while (data := self._answers.pop(self._written, None)) is not None:
            self.result.write(data)
            if self._request.assembles_lines and not data.endswith(b"\n"):
                self.result.write(b"\n")
            self._written += 1

    def close(self) -> None:
        """Close the input and delete the result's temporary file. Idempotent."""
        self._opened.close()
