"""A request's body as blocking readers that verify the bytes as they stream; it is never in memory as a whole.

`BodyPipe` gets bytes from the event loop; `chunks.ChunkedReader` removes aws-chunked framing, if any;
`VerifiedReader` counts and hashes, and raises at the end if length, hash or checksum is wrong. So
callers must not commit anything before the reader has returned ``b""``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import anyio.from_thread

from windtunnel_local.api.crc import CRC32C, CRC64NVME, CrcDigest
from windtunnel_local.api.errors import ApiError

PULL_BYTES = 1 << 20


class Reader(Protocol):
    """Reads up to ``size`` bytes; ``b""`` only at the end."""

    def read(self, size: int = -1, /) -> bytes:
        """Block until there is something to return."""


class BodyPipe:
    """The body of an ASGI request, read from a worker thread. Holds at most about 1 MiB."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._buffer = b""
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes (negative: all). Call it only in a worker thread of the event loop."""
        if size < 0:
            return b"".join(iter(lambda: self.read(PULL_BYTES), b""))
        if not self._buffer and not self._ended:
            self._buffer = anyio.from_thread.run(self.pull)
        chunk, self._buffer = self._buffer[:size], self._buffer[size:]
        return chunk

    async def pull(self) -> bytes:
        """The next bytes, about 1 MiB at a time: to switch threads for each packet would take longer."""
        parts: list[bytes] = []
        length = 0
        async for part in self._stream:
            parts.append(part)
            length += len(part)
            if length >= PULL_BYTES:
                return b"".join(parts)
        self._ended = True
        return b"".join(parts)


class Digest(Protocol):
    """The interface of hashlib's objects."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def digest(self) -> bytes:
        """The checksum of all bytes so far."""


CHECKSUMS: Mapping[str, Callable[[], Digest]] = {
    "crc32": lambda: CrcDigest(zlib.crc32, 4),
    "crc32c": lambda: CrcDigest(CRC32C.update, CRC32C.size),
    "crc64nvme": lambda: CrcDigest(CRC64NVME.update, CRC64NVME.size),
    "sha1": lambda: hashlib.sha1(usedforsecurity=False),
    "sha256": hashlib.sha256,
    "sha512": hashlib.sha512,
    "md5": lambda: hashlib.md5(usedforsecurity=False),
}
_MD5 = re.compile(r"[A-Za-z0-9+/]{22}==")
CHECKSUM_HEADER = "x-amz-checksum-"
MAX_BODY_BYTES = 5 << 30  # of one PUT; larger objects go in parts


class VerifiedReader(io.BufferedIOBase):
    """Reads from ``inner``, hashes the bytes, and compares length and hashes at the end.

    ``expected``: algorithm (a key of `CHECKSUMS`) -> base64 digest, or a callable that gives it
    at the end (a trailer). ``sha256``: the hex digest that the signature covers.
    """

    def __init__(
        self,
        inner: Reader,
        *,
        length: int | None,
        sha256: str | None = None,
        content_md5: str | None = None,
        expected: Mapping[str, str | Callable[[], str]] | None = None,
    ) -> None:
        super().__init__()
        self._inner = inner
        self._length = length
        self._sha256 = sha256
        self._md5 = content_md5
        self._expected = dict(expected or {})
        self._seen = 0
        self._digests = {name: CHECKSUMS[name]() for name in self._expected}
        self._payload = hashlib.sha256() if sha256 is not None else None
        self._content = hashlib.md5(usedforsecurity=False) if content_md5 is not None else None
        self._checked = False
        self.checksums: dict[str, str] = {}
        if content_md5 is not None and not _MD5.fullmatch(content_md5):
            raise ApiError("InvalidDigest", "The Content-MD5 you specified is not valid: 16 bytes in base64.")
        if length is not None and length > MAX_BODY_BYTES:
            raise _too_large()

    @property
    def algorithm(self) -> str | None:
        """The checksum that will be verified, known before the body is read."""
        return next(iter(self._digests), None)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes.

        Raises:
            ApiError: the body is too long; or, at its end, length, hash or checksum is wrong.
        """
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(PULL_BYTES), b""))
        if size == 0:
            return b""
        chunk = self._inner.read(size)
        self._seen += len(chunk)
        if self._length is not None and self._seen > self._length:
            raise _incomplete(self._length, self._seen)
        if self._seen > MAX_BODY_BYTES:
            raise _too_large()
        for digest in (self._payload, self._content, *self._digests.values()):
            if digest is not None:
                digest.update(chunk)
        if not chunk and not self._checked:
            self._check()
            self._checked = True
        return chunk

    def _check(self) -> None:
        if self._length is not None and self._seen != self._length:
            raise _incomplete(self._length, self._seen)
        if self._payload is not None and not hmac.compare_digest(
            self._payload.hexdigest(), self._sha256 or ""
        ):
            raise ApiError(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
        if self._content is not None and _base64(self._content) != self._md5:
            raise ApiError("BadDigest", "The Content-MD5 you specified did not match what we received.")
        for name, digest in self._digests.items():
            wanted = self._expected[name]
            given = wanted if isinstance(wanted, str) else wanted()
            if _base64(digest) != given:
                raise ApiError(
                    "BadDigest", f"The {name.upper()} you specified did not match the calculated checksum."
                )
            self.checksums[name] = given


def _base64(digest: Digest) -> str:
    return base64.b64encode(digest.digest()).decode()


def _too_large() -> ApiError:
    details = {"MaxSizeAllowed": str(MAX_BODY_BYTES)}
    return ApiError(
        "EntityTooLarge",
        "Your proposed upload exceeds the maximum allowed size: more than 5 GiB goes by multipart upload, "
        "in parts of at most 5 GiB (boto3: upload_file).",
        details=details,
    )


def _incomplete(length: int, seen: int) -> ApiError:
    return ApiError(
        "IncompleteBody",
        f"You did not provide the number of bytes specified by the length header: {length} announced, "
        f"{'more' if seen > length else seen} received.",
    )
