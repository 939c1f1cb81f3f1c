"""Promises of the checksums that the standard library does not have, and of those of joined parts."""

from __future__ import annotations

import base64
import zlib
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.api import s3_checksums
from windtunnel_local.api.body import CHECKSUMS
from windtunnel_local.api.crc import CRC32, CRC32C, CRC64NVME, Crc
from windtunnel_local.api.errors import ApiError
from windtunnel_local.objects.parts import StoredPart

ALL = pytest.mark.parametrize("crc", [CRC32, CRC32C, CRC64NVME], ids=["crc32", "crc32c", "crc64nvme"])


@pytest.mark.parametrize(
    ("crc", "check"), [(CRC32, 0xCBF43926), (CRC32C, 0xE3069283), (CRC64NVME, 0xAE8B14860A799888)]
)
def test_the_published_check_values(crc: Crc, check: int) -> None:
    """Of the catalogue of CRCs: the checksum of the digits 1 to 9."""
    assert crc.update(b"123456789") == check


def plain(crc: Crc, data: bytes) -> int:
    """Bit by bit, as the definition has it."""
    reflected = int(f"{crc.polynomial:0{crc.bits}b}"[::-1], 2)
    register = (1 << crc.bits) - 1
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (reflected if register & 1 else 0)
    return register ^ ((1 << crc.bits) - 1)


@ALL
@given(st.integers(0, 6000), st.randoms(use_true_random=False))
def test_folding_changes_nothing(crc: Crc, length: int, random: object) -> None:
    """Long data, which are folded, have the checksum that the definition gives."""
    data = getattr(random, "randbytes")(length)  # noqa: B009  hypothesis types it as its base class
    assert crc.update(data) == plain(crc, data)


def test_folding_agrees_with_zlib_on_a_chunk_of_a_body() -> None:
    """At the size that bodies have."""
    data = bytes(range(256)) * 4096
    assert CRC32.update(data, CRC32.update(b"before")) == zlib.crc32(data, zlib.crc32(b"before"))


@ALL
@given(st.lists(st.binary(max_size=2000), max_size=6))
def test_pieces_joined(crc: Crc, pieces: list[bytes]) -> None:
    """Continued from piece to piece, or combined afterwards: the checksum of the whole."""
    whole = crc.update(b"".join(pieces))
    assert reduce(lambda value, piece: crc.update(piece, value), pieces, 0) == whole
    combined = reduce(lambda value, piece: crc.combine(value, crc.update(piece), len(piece)), pieces, 0)
    assert combined == whole


def stored(algorithm: str, number: int, data: bytes) -> StoredPart:
    digest = CHECKSUMS[algorithm]()
    digest.update(data)
    return StoredPart(number, len(data), "0" * 32, algorithm, digest.digest().hex())


@pytest.mark.parametrize("algorithm", ["crc32", "crc32c", "crc64nvme"])
def test_a_full_object_checksum_of_parts_is_that_of_the_bytes(algorithm: str) -> None:
    """Without reading them again."""
    pieces = [b"a" * 10_000, b"b" * 7, b"c" * 300]
    parts = [stored(algorithm, number, data) for number, data in enumerate(pieces, 1)]
    headers = s3_checksums.joined(algorithm, "FULL_OBJECT", parts)
    whole = CHECKSUMS[algorithm]()
    whole.update(b"".join(pieces))
    assert headers[f"x-amz-checksum-{algorithm}"] == base64.b64encode(whole.digest()).decode()


def test_a_composite_checksum_is_of_the_checksums() -> None:
    """With the number of parts behind it."""
    parts = [stored("sha256", 1, b"a"), stored("sha256", 2, b"b")]
    whole = CHECKSUMS["sha256"]()
    whole.update(b"".join(bytes.fromhex(part.digest or "") for part in parts))
    headers = s3_checksums.joined("sha256", "COMPOSITE", parts)
    assert headers["x-amz-checksum-sha256"] == base64.b64encode(whole.digest()).decode() + "-2"


@pytest.mark.parametrize(
    ("algorithm", "kind", "expected"),
    [
        ("CRC32", None, ("crc32", "COMPOSITE")),
        ("CRC64NVME", None, ("crc64nvme", "FULL_OBJECT")),
        ("CRC32C", "FULL_OBJECT", ("crc32c", "FULL_OBJECT")),
        ("SHA256", "FULL_OBJECT", None),
        ("CRC64NVME", "COMPOSITE", None),
        ("SHA1", "HALF", None),
        ("XXHASH3", None, None),
        (None, "COMPOSITE", None),
    ],
)
def test_what_an_upload_may_declare(
    algorithm: str | None, kind: str | None, expected: tuple[str, str] | None
) -> None:
    """S3's table of algorithms and types; the rest is refused."""
    given_headers = {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}
    headers = {name: value for name, value in given_headers.items() if value}
    if expected:
        assert s3_checksums.declared(headers) == expected
    else:
        with pytest.raises(ApiError):
            s3_checksums.declared(headers)


def test_one_checksum_a_request() -> None:
    """Two are refused: S3 keeps one."""
    with pytest.raises(ApiError, match="single"):
        s3_checksums.given({"x-amz-checksum-crc32": "a", "x-amz-checksum-sha1": "b"})
    assert s3_checksums.given({"x-amz-checksum-mode": "ENABLED"}) == {}
