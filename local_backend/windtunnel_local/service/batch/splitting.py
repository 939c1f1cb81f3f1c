"""A file's bytes as payloads: the bodies of requests, each of whole records."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from windtunnel_local.service.batch.data_processing import DataProcessing
from windtunnel_local.service.ground.errors import InputError, ObjectError

_MB = 1 << 20


@dataclass(frozen=True)
class Payload:
    """One request's body, and the records that are needed with the answer. A stream is sent as it is read."""

    body: bytes | BinaryIO
    records: tuple[bytes, ...] = ()


@contextmanager
def reading() -> Iterator[None]:
    """Around what reads a file. Raises ``InputError``, with AWS's word: it is not what the request says, or gone."""
    try:
        yield
    except InputError as error:
        raise InputError(f"ClientError: {error}") from error
    except (OSError, EOFError, zlib.error, ObjectError) as error:
        raise InputError(f"ClientError: it cannot be read: {error}") from error


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
    limit, count = most_mb * _MB, 0
    body, records = bytearray(), list[bytes]()
    for record in _records(stream, limit, by_line):
        question = processing.question(record) if processing else record
        if count and (len(body) + len(question) > limit or not several):
            yield Payload(bytes(body), tuple(records))
            body, records, count = bytearray(), [], 0
        body += question
        count += 1
        if processing:  # else they would be as many small objects, for nothing
            records.append(record)
    if count:
        yield Payload(bytes(body), tuple(records))


def _records(stream: BinaryIO, limit: int, by_line: bool) -> Iterator[bytes]:
    while record := stream.readline(limit + 1) if by_line else stream.read(limit + 1):
        if len(record) > limit:
            raise InputError(
                f"a record is larger than MaxPayloadInMB, {limit // _MB} MB. "
                + ("Raise it" if by_line else "Raise it, or split the file with SplitType Line")
            )
        yield record
