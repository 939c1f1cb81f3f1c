"""Promises of the streaming bodies: nothing unverified is called complete."""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.chunks import ChunkedReader, ChunkSigner
from windtunnel_local.api.errors import ApiError, AuthFailure
from windtunnel_local.api.s3_body import payload_mode, verified
from windtunnel_local.api.sigv4 import EMPTY_SHA256, UNSIGNED, Claim, Verifier

VERIFIER = Verifier("AK", "secret", lambda: datetime.now(timezone.utc))
CLAIM = Claim("AK", "20260101", "us-east-1", "s3", ("host",), "0" * 64, "20260101T000000Z")


def crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def framed(chunks: list[bytes], trailers: str = "") -> bytes:
    parts = [f"{len(c):x}\r\n".encode() + c + b"\r\n" for c in chunks if c]
    return b"".join(parts) + b"0\r\n" + trailers.encode() + b"\r\n"


def sign(previous: str, data: bytes) -> str:
    rest = f"{previous}\n{EMPTY_SHA256}\n{hashlib.sha256(data).hexdigest()}"
    return VERIFIER.sign(CLAIM, f"AWS4-HMAC-SHA256-PAYLOAD\n{CLAIM.timestamp}\n{CLAIM.scope}\n{rest}")


def signed_frames(chunks: list[bytes], trailer: str = "") -> bytes:
    result, previous = b"", CLAIM.signature
    for chunk in [*chunks, b""]:
        previous = sign(previous, chunk)
        result += (
            f"{len(chunk):x};chunk-signature={previous}\r\n".encode() + chunk + (b"\r\n" if chunk else b"")
        )
    if trailer:
        digest = hashlib.sha256(f"{trailer}\n".encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256-TRAILER\n{CLAIM.timestamp}\n{CLAIM.scope}\n{previous}\n{digest}"
        result += f"{trailer}\r\nx-amz-trailer-signature:{VERIFIER.sign(CLAIM, text)}\r\n".encode()
    return result + b"\r\n"


class Trickle:
    """A body that comes in small pieces."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(self._step if size < 0 else min(size, self._step))


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.integers(1, 17), st.integers(1, 50))
def test_chunks_are_joined_however_they_arrive(chunks: list[bytes], step: int, size: int) -> None:
    """Signed or not, cut anywhere, read in any size."""
    for data, signer in ((framed(chunks), None), (signed_frames(chunks), ChunkSigner(VERIFIER, CLAIM))):
        reader = ChunkedReader(Trickle(data, step), signer)
        assert b"".join(iter(lambda r=reader: r.read(size), b"")) == b"".join(chunks)  # type: ignore[misc]


@pytest.mark.parametrize(
    "broken", [b"zz\r\n", b"5\r\nabc", b"3\r\nabcdef\r\n", b"-1\r\n", b"", b"x" * 9000, b"3"]
)
def test_broken_framing_is_refused(broken: bytes) -> None:
    """With an error of ours, whatever comes."""
    with pytest.raises(ApiError):
        ChunkedReader(io.BytesIO(broken), None).read()


def test_signed_chunks_cannot_be_changed_dropped_or_swapped() -> None:
    """Each signature covers the one before."""
    good = signed_frames([b"one", b"two"])
    first, second = (good.index(b"3;"), good.index(b"3;", 5))
    end = good.index(b"0;")
    for bad in (
        good.replace(b"one", b"0ne"),
        good[:first] + good[second:],
        good[second:end] + good[first:second] + good[end:],
        framed([b"one"]),
    ):
        with pytest.raises(AuthFailure):
            ChunkedReader(io.BytesIO(bad), ChunkSigner(VERIFIER, CLAIM)).read()


def test_a_trailing_checksum_is_verified_and_its_signature_too() -> None:
    """A trailer says what the data was; with signed chunks it is signed itself."""
    mode = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
    headers = {"x-amz-decoded-content-length": "4", "x-amz-trailer": "x-amz-checksum-crc32"}
    good = signed_frames([b"data"], f"x-amz-checksum-crc32:{crc32(b'data')}")

    def read(raw: bytes, chosen: str = mode) -> bytes:
        return verified(io.BytesIO(raw), headers, chosen, CLAIM, VERIFIER, has_body=True).read()

    assert read(good) == b"data"
    with pytest.raises(AuthFailure):
        read(good.replace(crc32(b"data").encode(), crc32(b"dada").encode()))
    unsigned = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    assert read(framed([b"da", b"ta"], f"x-amz-checksum-crc32:{crc32(b'data')}\r\n"), unsigned) == b"data"
    with pytest.raises(ApiError, match="CRC32"):
        read(framed([b"dada"], f"x-amz-checksum-crc32:{crc32(b'data')}\r\n"), unsigned)
    with pytest.raises(ApiError, match="did not come"):
        read(framed([b"data"]), unsigned)
    with pytest.raises(ApiError, match="4 announced"):
        read(framed([b"dat"], f"x-amz-checksum-crc32:{crc32(b'dat')}\r\n"), unsigned)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-amz-checksum-crc32": crc32(b"other")}, "BadDigest"),
        ({"x-amz-checksum-sha256": "x"}, "BadDigest"),
        ({"content-md5": "x"}, "InvalidDigest"),
        ({"content-length": "5"}, "IncompleteBody"),
        ({"content-length": "3"}, "IncompleteBody"),
        ({"content-length": "four"}, "InvalidArgument"),
        ({"x-amz-checksum-crc64nvme": "x"}, "BadDigest"),
        ({"x-amz-checksum-xxhash3": "x"}, "InvalidRequest"),
        ({"x-amz-trailer": "x-amz-checksum-xxhash64"}, "InvalidRequest"),
        ({"x-amz-trailer": "x-amz-checksum-crc32c"}, "MalformedTrailerError"),
        ({"content-length": str((5 << 30) + 1)}, "EntityTooLarge"),
    ],
)
def test_what_does_not_fit_is_an_error_by_the_end(headers: dict[str, str], code: str) -> None:
    """Before the reader reports the end, and what cannot be verified is refused."""
    with pytest.raises(ApiError) as error:
        verified(io.BytesIO(b"data"), headers, UNSIGNED, CLAIM, VERIFIER, has_body=True).read()
    assert error.value.code == code


def test_what_fits_is_read_and_its_checksum_known() -> None:
    """All at once."""
    sha = hashlib.sha256(b"data")
    headers = {
        "content-length": "4",
        "content-md5": base64.b64encode(hashlib.md5(b"data", usedforsecurity=False).digest()).decode(),
        "x-amz-checksum-crc32": crc32(b"data"),
    }
    reader = verified(io.BytesIO(b"data"), headers, sha.hexdigest(), CLAIM, VERIFIER, has_body=True)
    assert reader.read() == b"data"
    assert reader.checksums == {"crc32": crc32(b"data")}
    with pytest.raises(ApiError) as error:
        verified(io.BytesIO(b"dada"), {}, sha.hexdigest(), CLAIM, VERIFIER, has_body=True).read()
    assert error.value.code == "XAmzContentSHA256Mismatch"


def test_the_payload_mode_must_be_one_that_is_served() -> None:
    """A missing or invented mode is refused."""
    for headers in ({}, {"x-amz-content-sha256": "STREAMING-MAGIC"}, {"x-amz-content-sha256": "A" * 64}):
        with pytest.raises(ApiError):
            payload_mode(headers, CLAIM, None)


def test_the_end_is_checked_once() -> None:
    """Reading on at the end is harmless."""
    reader = VerifiedReader(io.BytesIO(b"x"), length=1)
    assert (reader.read(), reader.read(), reader.read(5)) == (b"x", b"", b"")
