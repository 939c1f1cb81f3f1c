"""S3's operations on multipart uploads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from windtunnel_local.api import s3_checksums, s3_conditions, s3_headers, s3_ranges, s3_tags, xmlcodec
from windtunnel_local.api.body import CHECKSUM_HEADER, CHECKSUMS, MAX_BODY_BYTES, VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import Answer, Handler
from windtunnel_local.api.s3_body import read_document
from windtunnel_local.api.s3_routes import Call, copy_source, virtual_bucket
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.parts import StoredPart
from windtunnel_local.objects.uploads import MultipartUploads, Part, Upload


class MultipartOperations:
    """Create, upload part, copy part, complete, abort. ``handlers``: by the operation's name."""

    def __init__(self, uploads: MultipartUploads, objects: FileObjects) -> None:
        """Serve the uploads; ``objects``: the store that parts are copied from."""
        self._uploads = uploads
        self._objects = objects
        self.handlers: Mapping[str, Handler] = {
            "CreateMultipartUpload": self._create,
            "UploadPart": self._upload_part,
            "UploadPartCopy": self._upload_part_copy,
            "CompleteMultipartUpload": self._complete,
            "AbortMultipartUpload": self._abort,
        }

    def _create(self, call: Call, _body: VerifiedReader) -> Answer:
        bucket, key = call.params["Bucket"], call.params["Key"]
        metadata = s3_headers.kept(call.headers)
        algorithm, kind = s3_checksums.declared(call.headers) or (None, None)
        tags = s3_tags.from_header(call.headers)
        upload = self._uploads.create(bucket, key, metadata, tags=tags, algorithm=algorithm, kind=kind)
        output = {
            "Bucket": bucket,
            "Key": key,
            "UploadId": upload,
            "ChecksumAlgorithm": algorithm.upper() if algorithm else None,
            "ChecksumType": kind,
        }
        return Answer(output, s3_headers.encryption(metadata))

    def _upload_part(self, call: Call, body: VerifiedReader) -> Answer:
        upload = self._uploads.find(*_named(call))
        s3_checksums.check_part(upload.algorithm, body.algorithm)

        def checksum() -> tuple[str, str] | None:
            return next(((name, s3_checksums.as_hex(value)) for name, value in body.checksums.items()), None)

        part = self._uploads.put_part(
            *_named(call), call.params["PartNumber"], cast(BinaryIO, body), checksum
        )
        checksums = s3_checksums.members(s3_checksums.of_part(part), call.model.output_shape)
        return Answer({"ETag": f'"{part.etag}"', **checksums}, s3_headers.encryption(upload.metadata))

    def _upload_part_copy(self, call: Call, _body: VerifiedReader) -> Answer:
        upload = self._uploads.find(*_named(call))
        info, file = self._objects.open(*copy_source(call))
        with file:
            s3_conditions.check_source(info, call.headers)
            start, length = _source_range(call.params.get("CopySourceRange"), info.size)
            file.seek(start)
            data = _Limited(file, length, upload.algorithm)
            part = self._uploads.put_part(
                *_named(call), call.params["PartNumber"], cast(BinaryIO, data), data.checksum
            )
        shape = call.model.output_shape.members["CopyPartResult"]
        result = {"ETag": f'"{part.etag}"', "LastModified": info.modified}
        result.update(s3_checksums.members(s3_checksums.of_part(part), shape))
        return Answer({"CopyPartResult": result}, s3_headers.encryption(upload.metadata))

    def _complete(self, call: Call, body: VerifiedReader) -> Answer:
        shape = call.model.input_shape.members["MultipartUpload"]
        items = xmlcodec.parsed(shape, read_document(body)).get("Parts", [])
        if not items or any("PartNumber" not in item or "ETag" not in item for item in items):
            raise ApiError(
                "MalformedXML", "A completion lists at least one part, each with a PartNumber and an ETag."
            )

        named = _parts(items)

        def finish(upload: Upload, parts: Sequence[StoredPart]) -> Mapping[str, str]:
            _check_each_named(upload, named)
            return _finished(call, upload, parts)

        bucket, key, upload = _named(call)
        info = self._uploads.complete(
            bucket, key, upload, named, guard=s3_conditions.guard(call.headers), finish=finish
        )
        checksums = s3_checksums.of_object(info.metadata)
        output = {
            "Location": _url(call),
            "Bucket": bucket,
            "Key": key,
            "ETag": f'"{info.etag}"',
            **s3_checksums.members(checksums, call.model.output_shape),
        }
        return Answer(output, s3_headers.encryption(info.metadata))

    def _abort(self, call: Call, _body: VerifiedReader) -> Answer:
        self._uploads.abort(*_named(call))
        return Answer()


def _url(call: Call) -> str:
    """The object's URL, at the request's host. The bucket stands in the path, which works for every bucket name."""
    host = call.headers.get("host", "")
    if bucket := virtual_bucket(host.lower()):
        host = host[len(bucket) + 1 :]
    return f"http://{host}/{call.params['Bucket']}/{quote(call.params['Key'], safe='/~')}"


def _parts(items: Sequence[Mapping[str, Any]]) -> Sequence[Part]:
    """The parts that a completion names, each with its checksum if it has one."""
    parts = []
    for item in items:
        checksums = {
            s3_checksums.served(name.removeprefix("Checksum")): value
            for name, value in item.items()
            if name.startswith("Checksum")
        }
        checksum = next(((name, s3_checksums.as_hex(value)) for name, value in checksums.items()), None)
        parts.append(Part(item["PartNumber"], item["ETag"].strip().strip('"'), checksum))
    return parts


def _check_each_named(upload: Upload, parts: Sequence[Part]) -> None:
    """Check that a completion names each part's checksum, if the upload's checksum is COMPOSITE.

    Raises:
        ApiError: a part is named without its checksum.
    """
    missing = next((part.number for part in parts if part.checksum is None), None)
    if upload.kind == "COMPOSITE" and missing is not None:
        raise ApiError(
            "InvalidRequest",
            f"The upload was created using a {upload.algorithm} checksum. The complete request must include the "
            f"checksum for each part. It was missing for part {missing} in the request.",
        )


def _finished(call: Call, upload: Upload, parts: Sequence[StoredPart]) -> Mapping[str, str]:
    """The checksum headers of a completed object, compared with what the client expects.

    Raises:
        ApiError: size or checksum differs from what the client gives.
    """
    expected_size = call.params.get("MpuObjectSize")
    size = sum(part.size for part in parts)
    if expected_size is not None and int(expected_size) != size:
        raise ApiError(
            "InvalidRequest",
            f"The provided 'x-amz-mp-object-size' header value {expected_size} does not match what was computed: "
            f"{size}",
        )
    given = s3_checksums.given(call.headers)
    if upload.algorithm is None or upload.kind is None:
        if given:
            raise ApiError(
                "InvalidRequest",
                f"The upload was created without a checksum algorithm; {next(iter(given)).upper()} was given.",
            )
        return {}
    headers = s3_checksums.joined(upload.algorithm, upload.kind, parts)
    kind = call.headers.get(s3_checksums.TYPE_HEADER, upload.kind)
    if kind != upload.kind:
        raise ApiError(
            "InvalidRequest",
            f"The upload was created using the {upload.kind} checksum mode, not {kind[:20]}.",
        )
    for name, value in given.items():
        if headers.get(CHECKSUM_HEADER + name) not in (value, f"{value}-{len(parts)}"):
            raise ApiError(
                "BadDigest", f"The {name.upper()} you specified did not match the calculated checksum."
            )
    return headers


class _Limited:
    """Reads the next ``left`` bytes of a file, and computes their checksum if ``algorithm`` is given."""

    def __init__(self, file: BinaryIO, left: int, algorithm: str | None) -> None:
        self._file = file
        self._left = left
        self._algorithm = algorithm
        self._digest = CHECKSUMS[algorithm]() if algorithm else None

    def read(self, size: int) -> bytes:
        chunk = self._file.read(min(size, self._left))
        self._left -= len(chunk)
        if self._digest:
            self._digest.update(chunk)
        return chunk

    def checksum(self) -> tuple[str, str] | None:
        """The algorithm, and the checksum of all bytes read, in hexadecimal; None without an algorithm."""
        return (self._algorithm, self._digest.digest().hex()) if self._algorithm and self._digest else None


def _source_range(header: str | None, size: int) -> tuple[int, int]:
    """First byte and length of the range to copy. Raises ``ApiError``."""
    span = s3_ranges.byte_range(header, size)
    if header is not None and (span is None or int(header.rpartition("-")[2] or size) >= size):
        raise ApiError(
            "InvalidArgument",
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the "
            f"zero-based offsets of the first and last bytes to copy, of an object of {size} bytes.",
        )
    start, length = span or (0, size)
    if length > MAX_BODY_BYTES:
        raise ApiError(
            "InvalidRequest",
            f"The specified copy range exceeds the maximum allowable size for a copy source: {MAX_BODY_BYTES}",
        )
    return start, length


def _named(call: Call) -> tuple[str, str, str]:
    return call.params["Bucket"], call.params["Key"], call.params["UploadId"]
