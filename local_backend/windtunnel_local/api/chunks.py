"""The aws-chunked content encoding: framing, chunk signatures, trailers.

    <hex size>[;chunk-signature=<sig>]CRLF <bytes> CRLF ... 0[;...]CRLF [name:value CRLF ...] CRLF

Each chunk's signature covers that of the chunk before, so that no chunk can be changed, left out or moved.
"""

from __future__ import annotations

import hashlib
import hmac

from windtunnel_local.api.body import PULL_BYTES, Reader
from windtunnel_local.api.errors import ApiError, AuthFailure
from windtunnel_local.api.sigv4 import EMPTY_SHA256, Claim, Verifier

STREAMING_MODES = frozenset(
    {
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    }
)
_MAX_LINE = 8192
_MAX_TRAILERS = 16


class ChunkSigner:
    """Checks the chain of chunk signatures, which starts with the request's own signature."""

    def __init__(self, verifier: Verifier, claim: Claim) -> None:
        self._verifier = verifier
        self._claim = claim
        self._previous = claim.signature

    def check_chunk(self, given: str, data_sha256: str) -> None:
        """Check the next chunk's signature. Raises ``AuthFailure``."""
        self._check(given, "AWS4-HMAC-SHA256-PAYLOAD", f"{EMPTY_SHA256}\n{data_sha256}")

    def check_trailer(self, given: str, trailer: bytes) -> None:
        """Check the trailer's signature; ``trailer``: the lines ``name:value``. Raises ``AuthFailure``."""
        self._check(given, "AWS4-HMAC-SHA256-TRAILER", hashlib.sha256(trailer).hexdigest())

    def _check(self, given: str, kind: str, rest: str) -> None:
        claim = self._claim
        text = f"{kind}\n{claim.timestamp}\n{claim.scope}\n{self._previous}\n{rest}"
        signature = self._verifier.sign(claim, text)
        if not hmac.compare_digest(signature.encode(), given.encode()):
            raise AuthFailure("mismatch", "A chunk's signature does not match the one we calculated.")
        self._previous = signature


class ChunkedReader:
    """Reads the payload of an aws-chunked body. ``trailers`` is complete when ``read`` has returned ``b""``."""

    def __init__(self, inner: Reader, signer: ChunkSigner | None) -> None:
        """Read framed bytes from ``inner``; ``signer`` None: chunks are not signed."""
        self._inner = inner
        self._signer = signer
        self._buffer = bytearray()
        self._left = 0
        self._signature = ""
        self._hash = hashlib.sha256()
        self._started = False
        self._ended = False
        self.trailers: dict[str, str] = {}

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes of payload.

        Raises:
            ApiError: the framing is broken.
            AuthFailure: a signature is wrong.
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(PULL_BYTES), b""))
        if self._left == 0 and not self._ended:
            self._next_chunk()
        if self._ended:
            return b""
        if not self._buffer:
            self._fill()
        data = bytes(self._buffer[: min(size, self._left)])
        del self._buffer[: len(data)]
        self._left -= len(data)
        if self._signer:
            self._hash.update(data)
        return data

    def _next_chunk(self) -> None:
        if self._started:
            self._end_chunk()
        self._started = True
        head, _, extension = self._line().partition(b";")
        if not 0 < len(head) <= 16 or head.strip(b"0123456789abcdefABCDEF"):
            raise _broken("a chunk starts with its size in hexadecimal")
        self._left = int(head, 16)
        self._signature = extension.partition(b"chunk-signature=")[2].strip().decode("latin-1")
        self._hash = hashlib.sha256()
        if self._left == 0:
            if self._signer:
                self._signer.check_chunk(self._signature, EMPTY_SHA256)
            self._read_trailers()
            self._ended = True

    def _end_chunk(self) -> None:
        if self._line() != b"":
            raise _broken("a chunk is longer than it says")
        if self._signer:
            self._signer.check_chunk(self._signature, self._hash.hexdigest())

    def _read_trailers(self) -> None:
        signed = bytearray()
        signature = ""
        for _ in range(_MAX_TRAILERS):
            line = self._line(at_end=True)
            if not line:
                break
            name, _, value = line.decode("latin-1").partition(":")
            name, value = name.strip().lower(), value.strip()
            if name == "x-amz-trailer-signature":
                signature = value
            else:
                self.trailers[name] = value
                signed += f"{name}:{value}\n".encode("latin-1")
        if self._signer and signed:
            self._signer.check_trailer(signature, bytes(signed))

    def _line(self, *, at_end: bool = False) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_LINE:
                raise _broken("a line is too long")
            if not self._fill(at_end=at_end):
                line = bytes(self._buffer)
                self._buffer.clear()
                return line
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _fill(self, *, at_end: bool = False) -> bool:
        more = self._inner.read(PULL_BYTES)
        if not more and not at_end:
            raise ApiError("IncompleteBody", "The body ended in the middle of a chunk.")
        self._buffer += more
        return bool(more)


def _broken(why: str) -> ApiError:
    return ApiError("InvalidRequest", f"The aws-chunked body is malformed: {why}.")
