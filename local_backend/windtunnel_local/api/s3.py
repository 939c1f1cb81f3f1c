"""The part of S3 that training and its clients need, on top of `objects`.

Each handler blocks and runs in a worker thread. Bodies stream: they are read as they are written to disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from windtunnel_local.api import s3_headers
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.rpc import not_served
from windtunnel_local.api.s3_answer import Answer, Handler
from windtunnel_local.api.s3_body import read_document
from windtunnel_local.api.s3_buckets import BucketOperations
from windtunnel_local.api.s3_lists import Listings
from windtunnel_local.api.s3_multipart import MultipartOperations
from windtunnel_local.api.s3_objects import ObjectOperations
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.api.s3_uploads import UploadListings
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.uploads import MultipartUploads


class S3:
    """The operations of S3 that are served. ``region``: of buckets that were created without one."""

    def __init__(self, objects: FileObjects, account_id: str, region: str) -> None:
        self._account_id = account_id
        owner = {"DisplayName": "windtunnel", "ID": account_id}
        uploads = MultipartUploads(objects)
        self.operations: Mapping[str, Handler] = {
            **BucketOperations(objects, owner, region).handlers,
            **Listings(objects, owner).handlers,
            **ObjectOperations(objects).handlers,
            **MultipartOperations(uploads, objects).handlers,
            **UploadListings(uploads, owner).handlers,
        }

    def handle(self, call: Call, body: VerifiedReader) -> Answer:
        """Run a call. Blocks.

        Raises:
            ApiError, ObjectError
        """
        handler = self.operations.get(call.operation)
        if handler is None:
            raise not_served("s3", call.operation, self.operations)
        for header in ("x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"):
            owner = call.headers.get(header)
            if owner not in (None, self._account_id):
                raise ApiError(
                    "AccessDenied",
                    f"The bucket is not owned by account {owner} but by {self._account_id}.",
                    403,
                )
        s3_headers.refuse_unserved(call.headers)
        if call.params.get("VersionId", "null") != "null":
            raise ApiError(
                "NotImplemented",
                "Windtunnel's S3 keeps no versions: leave versionId out, or say 'null'.",
                501,
            )
        if "payload" not in call.model.input_shape.serialization:
            read_document(body)  # only to verify it
        return handler(call, body)
