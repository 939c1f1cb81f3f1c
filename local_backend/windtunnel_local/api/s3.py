"""S3, the part that training needs: small, streaming, on `objects`.

Each handler blocks and runs in a worker thread; a body is read only as far as it is written to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO, cast

from windtunnel_local.api import s3_headers, s3_lists, xmlcodec
from windtunnel_local.api.body import CHECKSUM_HEADER, VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.rpc import not_served
from windtunnel_local.api.s3_answer import NAMESPACE, Answer, Slice
from windtunnel_local.api.s3_body import checksum_members, read_document
from windtunnel_local.api.s3_multipart import MultipartOperations
from windtunnel_local.api.s3_routes import Call, copy_source
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.uploads import MultipartUploads
from windtunnel_local.service.errors import NoSuchBucket
from windtunnel_local.service.ports import ObjectInfo

_MAX_DELETES = 1000
_DEFAULT_REGION = "us-east-1"


class S3:
    """The operations served. ``region``: what buckets say of their place."""

    def __init__(self, objects: FileObjects, account_id: str, region: str) -> None:
        """Serve the store as the account's."""
        self._objects = objects
        self._account_id = account_id
        self._region = region
        multipart = MultipartOperations(MultipartUploads(objects), objects)
        self.operations: Mapping[str, Callable[[Call, VerifiedReader], Answer]] = {
            "ListBuckets": self._list_buckets,
            "CreateBucket": self._create_bucket,
            "HeadBucket": self._head_bucket,
            "GetBucketLocation": self._bucket_location,
            "ListObjects": lambda call, _: s3_lists.list_objects(objects, call),
            "ListObjectsV2": lambda call, _: s3_lists.list_objects_v2(objects, call),
            "PutObject": self._put_object,
            "GetObject": self._get_object,
            "HeadObject": self._head_object,
            "DeleteObject": self._delete_object,
            "DeleteObjects": self._delete_objects,
            "CopyObject": self._copy_object,
            "CreateMultipartUpload": multipart.create,
            "UploadPart": multipart.upload_part,
            "CompleteMultipartUpload": multipart.complete,
            "UploadPartCopy": multipart.upload_part_copy,
            "AbortMultipartUpload": multipart.abort,
        }

    def handle(self, call: Call, body: VerifiedReader) -> Answer:
        """Run a call. Blocks.

        Raises:
            ApiError, ObjectError
        """
        handler = self.operations.get(call.operation)
        if handler is None:
            raise not_served("s3", call.operation, self.operations)
        owner = call.headers.get("x-amz-expected-bucket-owner")
        if owner not in (None, self._account_id):
            raise ApiError(
                "AccessDenied", f"The bucket is not owned by account {owner} but by {self._account_id}.", 403
            )
        s3_headers.refuse_unserved(call.headers)
        if "VersionId" in call.params:
            raise ApiError("NotImplemented", "Windtunnel's S3 keeps no versions: leave versionId out.", 501)
        if call.operation not in ("PutObject", "UploadPart", "DeleteObjects", "CompleteMultipartUpload"):
            read_document(body)  # verified, and of no further use
        return handler(call, body)

    # --- buckets ---

    def _list_buckets(self, _call: Call, _body: VerifiedReader) -> Answer:
        buckets = [{"Name": b.name, "CreationDate": b.created} for b in self._objects.buckets()]
        return Answer({"Buckets": buckets, "Owner": {"DisplayName": "windtunnel", "ID": self._account_id}})

    def _create_bucket(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.create_bucket(call.params["Bucket"])
        return Answer({"Location": f"/{call.params['Bucket']}"})

    def _head_bucket(self, call: Call, _body: VerifiedReader) -> Answer:
        self._check_bucket(call)
        return Answer({"BucketRegion": self._region})

    def _bucket_location(self, call: Call, _body: VerifiedReader) -> Answer:
        self._check_bucket(call)
        region = "" if self._region == _DEFAULT_REGION else xmlcodec.text(self._region)
        root = f'<LocationConstraint xmlns="{NAMESPACE}">{region}</LocationConstraint>'
        return Answer(content=(xmlcodec.DECLARATION + root).encode())

    def _check_bucket(self, call: Call) -> None:
        bucket = call.params["Bucket"]
        if not self._objects.has_bucket(bucket):
            raise NoSuchBucket(f"The specified bucket does not exist: {bucket}")

    # --- objects ---

    def _put_object(self, call: Call, body: VerifiedReader) -> Answer:
        if_absent = s3_headers.if_absent(call.headers)
        metadata = s3_headers.kept(call.headers)
        bucket, key = call.params["Bucket"], call.params["Key"]
        data = _WithChecksums(body, metadata)
        info = self._objects.put(bucket, key, cast(BinaryIO, data), metadata, if_absent=if_absent)
        output = {"ETag": f'"{info.etag}"', **checksum_members(body.checksums, call.model.output_shape)}
        return Answer(output, s3_headers.encryption(metadata))

    def _get_object(self, call: Call, _body: VerifiedReader) -> Answer:
        _refuse_part_number(call)
        info, file = self._objects.open(call.params["Bucket"], call.params["Key"])
        try:
            if not s3_headers.check_conditions(info, call.headers):
                file.close()
                return Answer(headers={"etag": f'"{info.etag}"'}, status=304)
            span = s3_headers.byte_range(call.headers.get("range"), info.size)
            start, length = span or (0, info.size)
            file.seek(start)
        except BaseException:
            file.close()
            raise
        headers = s3_headers.described(info, call.params, whole=span is None)
        if span:
            headers["content-range"] = f"bytes {start}-{start + length - 1}/{info.size}"
        return Answer(headers=headers, status=206 if span else 200, content=Slice(file, length))

    def _head_object(self, call: Call, _body: VerifiedReader) -> Answer:
        _refuse_part_number(call)
        self._check_bucket(call)
        info = self._objects.head(call.params["Bucket"], call.params["Key"])
        if info is None:
            raise ApiError("NoSuchKey", "The specified key does not exist.", 404)
        if not s3_headers.check_conditions(info, call.headers):
            return Answer(headers={"etag": f'"{info.etag}"'}, status=304)
        span = s3_headers.byte_range(call.headers.get("range"), info.size)
        headers = s3_headers.described(info, call.params, whole=span is None)
        start, length = span or (0, info.size)
        headers["content-length"] = str(length)
        if span:
            headers["content-range"] = f"bytes {start}-{start + length - 1}/{info.size}"
        return Answer(headers=headers, status=206 if span else 200)

    def _delete_object(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.delete(call.params["Bucket"], call.params["Key"])
        return Answer()

    def _delete_objects(self, call: Call, body: VerifiedReader) -> Answer:
        self._check_bucket(call)
        request = xmlcodec.parsed(call.model.input_shape.members["Delete"], read_document(body))
        items = request.get("Objects", [])
        if not 1 <= len(items) <= _MAX_DELETES or any("Key" not in item for item in items):
            raise ApiError(
                "MalformedXML", f"A Delete document names 1 to {_MAX_DELETES} objects, each with its Key."
            )
        for item in items:
            self._objects.delete(call.params["Bucket"], item["Key"])
        deleted = [] if request.get("Quiet") else [{"Key": item["Key"]} for item in items]
        return Answer({"Deleted": deleted})

    def _copy_object(self, call: Call, _body: VerifiedReader) -> Answer:
        source = copy_source(call)
        if found := self._objects.head(*source):
            s3_headers.check_source(found, call.headers)
        target = (call.params["Bucket"], call.params["Key"])
        replace = call.params.get("MetadataDirective", "COPY") == "REPLACE"
        if source == target and not replace:
            raise ApiError(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself without "
                "changing its metadata: set MetadataDirective='REPLACE'.",
            )
        info: ObjectInfo = self._objects.copy(
            source, target, s3_headers.kept(call.headers) if replace else None
        )
        result = {"ETag": f'"{info.etag}"', "LastModified": info.modified}
        return Answer({"CopyObjectResult": result}, s3_headers.encryption(info.metadata))


class _WithChecksums:
    """Adds the verified checksums to an object's metadata at the end of its body, before it is committed."""

    def __init__(self, body: VerifiedReader, metadata: dict[str, str]) -> None:
        self._body = body
        self._metadata = metadata

    def read(self, size: int = -1) -> bytes:
        chunk = self._body.read(size)
        if not chunk:
            self._metadata.update(
                {CHECKSUM_HEADER + name: value for name, value in self._body.checksums.items()}
            )
        return chunk


def _refuse_part_number(call: Call) -> None:
    if "PartNumber" in call.params:
        raise ApiError("NotImplemented", "Windtunnel's S3 does not read single parts: use Range.", 501)
