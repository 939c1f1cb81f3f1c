"""A file's bytes as payloads: the bodies of requests, each of whole records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from windtunnel_local.service.batch.data_processing import DataProcessing
from windtunnel_local.service.ground.errors import InputError

_MB = 1 << 20


@dataclass(frozen=True)
class Payload:
    """One request's body, and the records that it is made of. A body that is a stream is sent as it is read."""

    body: bytes | BinaryIO
    records: tuple[bytes, ...] = ()


def payloads(
    stream: BinaryIO, *, by_line: bool, several: bool, most_mb: int, processing: DataProcessing | None
) -> Iterator[Payload]:
    """The payloads of a file, in order. A line keeps its newline.

    Args:
        stream: the file, not compressed.
        by_line: whether a line is a record; else the whole file is.
        several: whether a payload has as many records as fit.
        most_mb: limit of a payload, 0 for none.
        processing: what becomes of each record first.

    Raises:
        InputError: a record is too large, or is not what ``processing`` expects.
    """
    if not most_mb:
        yield Payload(stream)
        return
    limit, waiting, size = most_mb * _MB, list[tuple[bytes, bytes]](), 0
    for record in _records(stream, limit, by_line):
        body = processing.question(record) if processing else record
        if waiting and (size + len(body) > limit or not several):
            yield _payload(waiting, processing)
            waiting, size = [], 0
        waiting.append((record, body))
        size += len(body)
    if waiting:
        yield _payload(waiting, processing)


def _payload(waiting: list[tuple[bytes, bytes]], processing: DataProcessing | None) -> Payload:
    records = tuple(record for record, _ in waiting) if processing else ()
    return Payload(b"".join(body for _, body in waiting), records)


def _records(stream: BinaryIO, limit: int, by_line: bool) -> Iterator[bytes]:
    while record := stream.readline(limit + 1) if by_line else stream.read(limit + 1):
        if len(record) > limit:
            raise InputError(
                f"a record is larger than MaxPayloadInMB, {limit // _MB} MB. "
                + ("Raise it" if by_line else "Raise it, or split the file with SplitType Line")
            )
        yield record
