"""Checksums of S3's objects: those in a request, and that of an object that was uploaded in parts.

A checksum is of the whole object (FULL_OBJECT), or, after a multipart upload, of the parts' concatenated
checksums (COMPOSITE, followed by a hyphen and the number of parts).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Literal

from windtunnel_local.api.body import CHECKSUM_HEADER, CHECKSUMS
from windtunnel_local.api.crc import CRC32, CRC32C, CRC64NVME
from windtunnel_local.api.errors import ApiError
from windtunnel_local.objects.parts import StoredPart

Kind = Literal["COMPOSITE", "FULL_OBJECT"]
TYPE_HEADER = f"{CHECKSUM_HEADER}type"
_NOT_DIGESTS = frozenset({"type", "algorithm", "mode"})
_CRCS = {"crc32": CRC32, "crc32c": CRC32C, "crc64nvme": CRC64NVME}


def served(algorithm: str) -> str:
    """The algorithm in lower case. Raises ``ApiError`` when it cannot be computed here."""
    name = algorithm.strip().lower()
    if name not in CHECKSUMS:
        raise ApiError(
            "InvalidRequest",
            f"Windtunnel's S3 cannot verify {algorithm.upper()[:50]} checksums. Use one of "
            f"{', '.join(sorted(name.upper() for name in CHECKSUMS))} (boto3: ChecksumAlgorithm='CRC32').",
        )
    return name


def given(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The checksum in the headers, by its algorithm in lower case; empty if there is none.

    Raises:
        ApiError: there are several, or the algorithm is not served.
    """
    found = {
        served(name.removeprefix(CHECKSUM_HEADER)): value.strip()
        for name, value in headers.items()
        if name.startswith(CHECKSUM_HEADER) and name.removeprefix(CHECKSUM_HEADER) not in _NOT_DIGESTS
    }
    if len(found) > 1:
        raise ApiError(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    return found


def declared(headers: Mapping[str, str]) -> tuple[str, Kind] | None:
    """Algorithm and kind of the checksum that a new multipart upload declares, if any. Raises ``ApiError``."""
    algorithm, kind = headers.get("x-amz-checksum-algorithm"), headers.get(TYPE_HEADER)
    if algorithm is None:
        if kind is not None:
            raise ApiError(
                "InvalidRequest",
                "The x-amz-checksum-type header can only be used with x-amz-checksum-algorithm.",
            )
        return None
    name = served(algorithm)
    usual: Kind = "FULL_OBJECT" if name == "crc64nvme" else "COMPOSITE"
    chosen = (kind or usual).upper()
    if chosen == "FULL_OBJECT" and name in _CRCS:
        return name, "FULL_OBJECT"
    if chosen == "COMPOSITE" and name != "crc64nvme":
        return name, "COMPOSITE"
    raise ApiError(
        "InvalidRequest",
        f"The {chosen[:20]} checksum type cannot be used with the {name} checksum algorithm: FULL_OBJECT is for "
        "CRC32, CRC32C and CRC64NVME, COMPOSITE for all but CRC64NVME.",
    )


def check_part(algorithm: str | None, kind_of_part: str | None) -> None:
    """A part of an upload that declared a checksum must carry it. Raises ``ApiError``."""
    if algorithm is not None and algorithm != kind_of_part:
        raise ApiError(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {algorithm}, "
            f"actual checksum Type: {str(kind_of_part).lower()}",
        )


def joined(algorithm: str, kind: str, parts: Sequence[StoredPart]) -> Mapping[str, str]:
    """The checksum headers of an object made of parts, all of which have the algorithm's checksum."""
    digests = [bytes.fromhex(part.digest or "") for part in parts]
    if kind == "COMPOSITE":
        total = CHECKSUMS[algorithm]()
        total.update(b"".join(digests))
        value = f"{as_base64(total.digest())}-{len(parts)}"
    else:
        crc = _CRCS[algorithm]
        pieces = [(int.from_bytes(d, "big"), part.size) for d, part in zip(digests, parts, strict=True)]
        whole = reduce(lambda done, piece: (crc.combine(done[0], *piece), 0), pieces[1:], pieces[0])[0]
        value = as_base64(whole.to_bytes(crc.size, "big"))
    return {CHECKSUM_HEADER + algorithm: value, TYPE_HEADER: kind}


def whole(checksums: Mapping[str, str]) -> dict[str, str]:
    """The checksum headers to store with an object that was uploaded in one piece."""
    headers = {CHECKSUM_HEADER + name: value for name, value in checksums.items()}
    return {**headers, TYPE_HEADER: "FULL_OBJECT"} if headers else {}


def of_object(metadata: Mapping[str, str]) -> dict[str, str]:
    """The checksum headers stored with an object, and the type, which earlier versions did not store."""
    found = {name: value for name, value in metadata.items() if name.startswith(CHECKSUM_HEADER)}
    return {TYPE_HEADER: "FULL_OBJECT", **found} if found else {}


def algorithm_of(headers: Mapping[str, str]) -> str | None:
    """The algorithm of stored checksum headers; None if there are none."""
    names = (name.removeprefix(CHECKSUM_HEADER) for name in headers if name != TYPE_HEADER)
    return next(names, None)


def members(headers: Mapping[str, str], shape: Any) -> dict[str, str]:
    """Checksum headers as an output's members: ``x-amz-checksum-crc32`` becomes ``ChecksumCRC32``."""
    named = {}
    for name, value in headers.items():
        algorithm = name.removeprefix(CHECKSUM_HEADER)
        named["ChecksumType" if algorithm == "type" else f"Checksum{algorithm.upper()}"] = value
    return {name: value for name, value in named.items() if name in shape.members}


def of_part(part: StoredPart) -> dict[str, str]:
    """The checksum header of one part."""
    if part.algorithm is None:
        return {}
    return {CHECKSUM_HEADER + part.algorithm: as_base64(bytes.fromhex(part.digest or ""))}


def as_hex(value: str) -> str:
    """A base64 checksum in hexadecimal; ``?``, which equals no checksum, if it is not base64."""
    try:
        return base64.b64decode(value, validate=True).hex()
    except (binascii.Error, ValueError):
        return "?"


def as_base64(digest: bytes) -> str:
    """A digest in base64, as requests and answers have it."""
    return base64.b64encode(digest).decode()
