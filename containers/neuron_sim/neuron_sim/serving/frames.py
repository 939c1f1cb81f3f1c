"""The messages between the server and its workers over a socket: a head as JSON, then the body as it is."""

from __future__ import annotations

import asyncio
import json
import struct
from dataclasses import asdict, dataclass, field
from io import BufferedRWPair

_SIZES = struct.Struct("!IQ")

Body = bytes | bytearray


@dataclass
class Head:
    """The head of a request or an answer. ``status`` is used in answers only."""

    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


def packed(head: Head, body: Body) -> tuple[bytes, Body]:
    """A message in two parts, so that a large body is not copied."""
    words = json.dumps(asdict(head)).encode()
    return _SIZES.pack(len(words), len(body)) + words, body


def send(stream: BufferedRWPair, head: Head, body: Body) -> None:
    """Write one message. Blocks."""
    stream.writelines(packed(head, body))
    stream.flush()


def receive(stream: BufferedRWPair) -> tuple[Head, bytearray] | None:
    """The next message, or None when the other side is gone. Blocks."""
    sizes = stream.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    words, length = _SIZES.unpack(sizes)
    head, body = Head(**json.loads(stream.read(words))), bytearray(length)
    return (head, body) if stream.readinto(body) == length else None


async def next_message(reader: asyncio.StreamReader) -> tuple[Head, bytes]:
    """The next message. Raises `asyncio.IncompleteReadError` when the other side is gone."""
    words, length = _SIZES.unpack(await reader.readexactly(_SIZES.size))
    return Head(**json.loads(await reader.readexactly(words))), await reader.readexactly(length)


def failure(status: int, why: str) -> tuple[Head, bytes]:
    """The answer for an error outside of the handlers, in TorchServe's form."""
    error = {"code": status, "type": "InternalServerException", "message": why}
    return Head({"content-type": "application/json"}, status), json.dumps(error, indent=2).encode()
