"""S3's multipart uploads on the wire."""

from __future__ import annotations

from typing import BinaryIO, cast

from windtunnel_local.api import s3_headers, xmlcodec
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import Answer
from windtunnel_local.api.s3_body import checksum_members, read_document
from windtunnel_local.api.s3_routes import Call, copy_source
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.uploads import MultipartUploads, Part


class MultipartOperations:
    """Create, upload part, copy part, complete, abort."""

    def __init__(self, uploads: MultipartUploads, objects: FileObjects) -> None:
        """Serve the uploads; ``objects``: what parts are copied from."""
        self._uploads = uploads
        self._objects = objects

    def create(self, call: Call, _body: VerifiedReader) -> Answer:
        """CreateMultipartUpload."""
        bucket, key = call.params["Bucket"], call.params["Key"]
        metadata = s3_headers.kept(call.headers)
        upload = self._uploads.create(bucket, key, metadata)
        output = {"Bucket": bucket, "Key": key, "UploadId": upload}
        return Answer(output, s3_headers.encryption(metadata))

    def upload_part(self, call: Call, body: VerifiedReader) -> Answer:
        """UploadPart."""
        etag = self._uploads.put_part(*_named(call), call.params["PartNumber"], cast(BinaryIO, body))
        return Answer({"ETag": f'"{etag}"', **checksum_members(body.checksums, call.model.output_shape)})

    def upload_part_copy(self, call: Call, _body: VerifiedReader) -> Answer:
        """UploadPartCopy."""
        info, file = self._objects.open(*copy_source(call))
        with file:
            s3_headers.check_source(info, call.headers)
            span = s3_headers.byte_range(call.params.get("CopySourceRange"), info.size) or (0, info.size)
            file.seek(span[0])
            part = cast(BinaryIO, _Limited(file, span[1]))
            etag = self._uploads.put_part(*_named(call), call.params["PartNumber"], part)
        return Answer({"CopyPartResult": {"ETag": f'"{etag}"', "LastModified": info.modified}})

    def complete(self, call: Call, body: VerifiedReader) -> Answer:
        """CompleteMultipartUpload."""
        shape = call.model.input_shape.members["MultipartUpload"]
        items = xmlcodec.parsed(shape, read_document(body)).get("Parts", [])
        if any("PartNumber" not in item or "ETag" not in item for item in items):
            raise ApiError("MalformedXML", "Each part of a completion has a PartNumber and an ETag.")
        parts = [Part(item["PartNumber"], item["ETag"].strip().strip('"')) for item in items]
        if_absent = s3_headers.if_absent(call.headers)
        info = self._uploads.complete(*_named(call), parts, if_absent=if_absent)
        bucket, key, _ = _named(call)
        output = {"Location": f"/{bucket}/{key}", "Bucket": bucket, "Key": key, "ETag": f'"{info.etag}"'}
        return Answer(output, s3_headers.encryption(info.metadata))

    def abort(self, call: Call, _body: VerifiedReader) -> Answer:
        """AbortMultipartUpload."""
        self._uploads.abort(*_named(call))
        return Answer()


class _Limited:
    """The next ``left`` bytes of a file."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file = file
        self._left = left

    def read(self, size: int) -> bytes:
        chunk = self._file.read(min(size, self._left))
        self._left -= len(chunk)
        return chunk


def _named(call: Call) -> tuple[str, str, str]:
    return call.params["Bucket"], call.params["Key"], call.params["UploadId"]
