"""Splits a file into payloads: the bodies of requests, each with whole records."""

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
    """One request's body, and its records if the answer is joined or filtered. A stream is sent as it is read."""

    body: bytes | BinaryIO
    records: tuple[bytes, ...] = ()


@contextmanager
def reading() -> Iterator[None]:
    """Turn errors while reading a file into ``InputError`` with AWS's "ClientError": not as requested, or gone."""
    try:
        yield
    except InputError as error:
        raise InputError(f"ClientError: {error}") from error
    except (OSError, EOFError, zlib.error, ObjectError) as error:
        raise InputError(f"ClientError: it cannot be read: {error}") from error


def payloads(
    stream: BinaryIO, *, by_line: bool, several: bool, most_mb: int, processing: DataProcessing | None
) -> Iterator[Payload]:
    """The payloads of a file, in order. Lines keep their newlines.

    Args:
        stream: the file, decompressed.
        by_line: whether each line is a record; otherwise the whole file is one.
        several: whether a payload holds as many records as fit; otherwise one.
        most_mb: the largest payload in MiB; 0 means no limit, the file is streamed.
        processing: the filter for each record, or None.

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
        if processing:  # otherwise nobody needs the records, which may be many small objects
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
