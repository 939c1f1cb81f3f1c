"""S3's operations on single objects."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from windtunnel_local.api import s3_checksums, s3_conditions, s3_headers, s3_tags, xmlcodec
from windtunnel_local.api.body import CHECKSUM_HEADER, CHECKSUMS, MAX_BODY_BYTES, VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.respond import OBJECT_ERRORS
from windtunnel_local.api.s3_answer import Answer, Handler
from windtunnel_local.api.s3_body import read_document
from windtunnel_local.api.s3_reading import get_attributes, get_object, head_object, steady
from windtunnel_local.api.s3_routes import Call, copy_source
from windtunnel_local.objects.errors import ConditionFailed, InvalidKey
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.records import Guard, Record
from windtunnel_local.service.ground.errors import NoSuchKey

_MAX_DELETES = 1000
_CHANGES = {"x-amz-storage-class", "x-amz-server-side-encryption"}
"""Headers with which an object may be copied to itself, because they change it."""


class ObjectOperations:
    """Operations on objects. ``handlers``: by the operation's name."""

    def __init__(self, objects: FileObjects) -> None:
        self._objects = objects
        self.handlers: Mapping[str, Handler] = {
            "PutObject": self._put,
            "GetObject": lambda call, _: get_object(objects, call),
            "HeadObject": lambda call, _: head_object(objects, call),
            "GetObjectAttributes": lambda call, _: get_attributes(objects, call),
            "DeleteObject": self._delete,
            "DeleteObjects": self._delete_many,
            "CopyObject": self._copy,
            "PutObjectTagging": self._put_tags,
            "GetObjectTagging": self._get_tags,
            "DeleteObjectTagging": self._delete_tags,
        }

    def _put(self, call: Call, body: VerifiedReader) -> Answer:
        metadata = s3_headers.kept(call.headers)
        data = cast(BinaryIO, _WithChecksums(body, metadata))
        info = self._objects.put(
            *_named(call),
            data,
            metadata,
            guard=s3_conditions.guard(call.headers),
            tags=s3_tags.from_header(call.headers),
        )
        checksums = s3_checksums.members(s3_checksums.whole(body.checksums), call.model.output_shape)
        return Answer({"ETag": f'"{info.etag}"', **checksums}, s3_headers.encryption(metadata))

    def _delete(self, call: Call, _body: VerifiedReader) -> Answer:
        guard = s3_conditions.guard(call.headers)
        self._objects.delete(*_named(call), guard)
        return Answer()

    def _delete_many(self, call: Call, body: VerifiedReader) -> Answer:
        bucket = call.params["Bucket"]
        self._objects.folder(bucket)
        request = xmlcodec.parsed(call.model.input_shape.members["Delete"], read_document(body))
        items = request.get("Objects", [])
        if not 1 <= len(items) <= _MAX_DELETES or any("Key" not in item for item in items):
            raise ApiError(
                "MalformedXML", f"A Delete document names 1 to {_MAX_DELETES} objects, each with its Key."
            )
        deleted, errors = [], []
        for item in items:
            error = self._delete_one(bucket, item)
            if error:
                errors.append({"Key": item["Key"], "Code": error[0], "Message": error[1]})
            else:
                deleted.append({"Key": item["Key"]})
        return Answer({"Deleted": [] if request.get("Quiet") else deleted, "Errors": errors})

    def _delete_one(self, bucket: str, item: Mapping[str, Any]) -> tuple[str, str] | None:
        if item.get("VersionId", "null") != "null":
            return "NotImplemented", "Windtunnel's S3 keeps no versions: leave VersionId out."
        if "LastModifiedTime" in item or "Size" in item:
            return "NotImplemented", "Of an object's conditions Windtunnel's S3 serves ETag only."
        etag = item.get("ETag")
        try:
            self._objects.delete(bucket, item["Key"], Guard(etag=etag.strip('"') if etag else None))
        except (ConditionFailed, NoSuchKey, InvalidKey) as error:
            return OBJECT_ERRORS[type(error)][0], str(error)
        return None

    @steady
    def _copy(self, call: Call, _body: VerifiedReader) -> Answer:
        source, target = copy_source(call), _named(call)
        found = self._objects.existing(*source)
        s3_conditions.check_source(found.info, call.headers)
        if found.size > MAX_BODY_BYTES:
            raise ApiError(
                "InvalidRequest",
                "The specified copy source is larger than the maximum allowable size for a copy source: "
                f"{MAX_BODY_BYTES}. Copy it in parts, by UploadPartCopy (boto3: client.copy).",
            )
        replace = _directive(call, "MetadataDirective")
        if source == target and not (replace or _CHANGES & call.headers.keys()):
            raise ApiError(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself without changing its "
                "metadata, storage class or encryption: set MetadataDirective='REPLACE'.",
            )
        kept, etag = self._digests(source, found, call.headers.get("x-amz-checksum-algorithm"))
        metadata = (
            s3_headers.kept(call.headers) if replace else s3_headers.recrypted(found.metadata, call.headers)
        )
        info = self._objects.copy_record(
            (source[0], found),
            target,
            {**metadata, **kept},
            tags=s3_tags.from_header(call.headers) if _directive(call, "TaggingDirective") else None,
            guard=s3_conditions.guard(call.headers),
            etag=etag,
        )
        shape = call.model.output_shape.members["CopyObjectResult"]
        result = {
            "ETag": f'"{info.etag}"',
            "LastModified": info.modified,
            **s3_checksums.members(kept, shape),
        }
        return Answer({"CopyObjectResult": result}, s3_headers.encryption(info.metadata))

    def _digests(
        self, source: tuple[str, str], found: Record, asked: str | None
    ) -> tuple[dict[str, str], str | None]:
        """The checksum headers of a copy; and its ETag, or None if it is the source's.

        The copy of an object that was uploaded in parts counts as one piece, so its ETag is another. Values that are
        not known are computed by reading the source.
        """
        kept = s3_checksums.of_object(found.metadata)
        algorithm = s3_checksums.served(asked) if asked else s3_checksums.algorithm_of(kept)
        is_whole = kept.get(s3_checksums.TYPE_HEADER) == "FULL_OBJECT"
        has_checksum = algorithm is None or (is_whole and CHECKSUM_HEADER + algorithm in kept)
        in_parts = "-" in found.etag
        if has_checksum and not in_parts:
            return kept, None
        digest, md5 = CHECKSUMS[algorithm]() if algorithm else None, hashlib.md5(usedforsecurity=False)
        _, file = self._objects.open(*source)
        with file:
            while chunk := file.read(1 << 20):
                md5.update(chunk)
                if digest:
                    digest.update(chunk)
        if algorithm and digest:
            kept = s3_checksums.whole({algorithm: s3_checksums.as_base64(digest.digest())})
        return kept, md5.hexdigest() if in_parts else None

    # --- tags ---

    def _put_tags(self, call: Call, body: VerifiedReader) -> Answer:
        shape = call.model.input_shape.members["Tagging"]
        tags = s3_tags.from_document(xmlcodec.parsed(shape, read_document(body)))
        self._objects.set_tags(*_named(call), tags)
        return Answer()

    def _get_tags(self, call: Call, _body: VerifiedReader) -> Answer:
        return Answer({"TagSet": s3_tags.as_set(self._objects.existing(*_named(call)).tags)})

    def _delete_tags(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.set_tags(*_named(call), {})
        return Answer()


class _WithChecksums:
    """Adds the verified checksums to an object's metadata at the end of its body, before it is committed."""

    def __init__(self, body: VerifiedReader, metadata: dict[str, str]) -> None:
        self._body = body
        self._metadata = metadata

    def read(self, size: int = -1) -> bytes:
        chunk = self._body.read(size)
        if not chunk:
            self._metadata.update(s3_checksums.whole(self._body.checksums))
        return chunk


def _named(call: Call) -> tuple[str, str]:
    return call.params["Bucket"], call.params["Key"]


def _directive(call: Call, name: str) -> bool:
    """Whether a copy's directive is REPLACE, not COPY. Raises ``ApiError``."""
    value = call.params.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise ApiError("InvalidArgument", f"Unknown {name}: {value[:50]!r}; it is COPY or REPLACE.")
    return bool(value == "REPLACE")
