"""The body of an S3 write: framing is removed, and hash, length and checksums are verified, as it streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windtunnel_local.api import s3_checksums
from windtunnel_local.api.body import CHECKSUM_HEADER, Reader, VerifiedReader
from windtunnel_local.api.chunks import STREAMING_MODES, ChunkedReader, ChunkSigner
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.sigv4 import UNSIGNED, Claim, Verifier

_HEX64 = 64
MAX_DOCUMENT_BYTES = 4 << 20


def payload_mode(headers: Mapping[str, str], claim: Claim, query_mode: str | None) -> str:
    """The payload hash that the signature covers: a SHA-256, or one of AWS's words for "not hashed".

    Raises:
        ApiError: the header is missing, or has a form that is not served.
    """
    mode = headers.get("x-amz-content-sha256")
    if claim.presigned:
        mode = mode or query_mode or UNSIGNED
    if mode is None:
        raise ApiError("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    hashed = len(mode) == _HEX64 and not mode.strip("0123456789abcdef")
    if not (hashed or mode == UNSIGNED or mode in STREAMING_MODES):
        raise ApiError(
            "InvalidArgument",
            f"x-amz-content-sha256 must be a SHA-256 in lower-case hexadecimal, {UNSIGNED} or one of "
            f"{', '.join(sorted(STREAMING_MODES))}; {mode[:100]!r} was given.",
        )
    return mode


def verified(
    raw: Reader,
    headers: Mapping[str, str],
    mode: str,
    claim: Claim,
    verifier: Verifier,
    *,
    has_body: bool,
    checksums: bool = True,
) -> VerifiedReader:
    """A reader that verifies the payload.

    ``checksums`` False: the checksum headers do not describe the body.

    Raises:
        ApiError: the checksum algorithm is not served, or the length is not a number.
    """
    framed = mode in STREAMING_MODES
    inner: Reader = raw
    chunks: ChunkedReader | None = None
    if framed:
        signer = ChunkSigner(verifier, claim) if "AWS4-HMAC" in mode else None
        inner = chunks = ChunkedReader(raw, signer)
    length = headers.get("x-amz-decoded-content-length" if framed else "content-length")
    if length is None and framed:
        raise ApiError("MissingContentLength", "An aws-chunked body needs x-amz-decoded-content-length.", 411)
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 19):
        raise ApiError(
            "InvalidArgument", f"The body's length must be a number of bytes, not {length[:50]!r}."
        )
    hashed = mode not in STREAMING_MODES and mode != UNSIGNED
    return VerifiedReader(
        inner,
        length=int(length) if length is not None else None if has_body else 0,
        sha256=mode if hashed else None,
        content_md5=headers.get("content-md5"),
        expected=_expected(headers, chunks) if checksums else {},
    )


def _expected(headers: Mapping[str, str], chunks: ChunkedReader | None) -> dict[str, str | Callable[[], str]]:
    expected: dict[str, str | Callable[[], str]] = dict(s3_checksums.given(headers))
    for name in filter(None, (n.strip().lower() for n in headers.get("x-amz-trailer", "").split(","))):
        if name.startswith(CHECKSUM_HEADER):
            expected[s3_checksums.served(name.removeprefix(CHECKSUM_HEADER))] = _trailer(chunks, name)
    return expected


def _trailer(chunks: ChunkedReader | None, name: str) -> Callable[[], str]:
    def value() -> str:
        found = chunks.trailers.get(name) if chunks else None
        if found is None:
            raise ApiError("MalformedTrailerError", f"The announced trailer {name} did not come.")
        return found

    return value


def read_document(body: VerifiedReader) -> bytes:
    """Read a small body as a whole.

    Raises:
        ApiError: MaxMessageLengthExceeded, or an error of the verification.
    """
    parts: list[bytes] = []
    length = 0
    while chunk := body.read(MAX_DOCUMENT_BYTES):
        parts.append(chunk)
        length += len(chunk)
        if length > MAX_DOCUMENT_BYTES:
            raise ApiError("MaxMessageLengthExceeded", f"The body is larger than {MAX_DOCUMENT_BYTES} bytes.")
    return b"".join(parts)
