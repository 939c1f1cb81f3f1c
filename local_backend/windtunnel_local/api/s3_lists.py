"""S3's listings of objects: ListObjectsV2, ListObjects, and ListObjectVersions, where each has one version."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from windtunnel_local.api import s3_checksums
from windtunnel_local.api.body import CHECKSUM_HEADER, VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import Answer, Handler
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.listing import Page

_MAX_KEYS = 1000


class Listings:
    """The listings. ``handlers``: by the operation's name."""

    def __init__(self, objects: FileObjects, owner: Mapping[str, str]) -> None:
        self._objects = objects
        self._owner = owner
        self.handlers: Mapping[str, Handler] = {
            "ListObjects": self._by_marker,
            "ListObjectsV2": self._by_token,
            "ListObjectVersions": self._versions,
        }

    def _by_token(self, call: Call, _body: VerifiedReader) -> Answer:
        params = call.params
        token = params.get("ContinuationToken")
        after = _decode_token(token) if token is not None else params.get("StartAfter", "")
        page, output, shown = _page(self._objects, params, after)
        if params.get("FetchOwner"):
            output["Contents"] = [{**entry, "Owner": self._owner} for entry in output["Contents"]]
        output["KeyCount"] = len(page.objects) + len(page.prefixes)
        output["ContinuationToken"] = token
        if page.next is not None:
            output["NextContinuationToken"] = base64.urlsafe_b64encode(page.next.encode()).decode()
        if "StartAfter" in params:
            output["StartAfter"] = shown(params["StartAfter"])
        return Answer(output)

    def _by_marker(self, call: Call, _body: VerifiedReader) -> Answer:
        marker = call.params.get("Marker", "")
        page, output, shown = _page(self._objects, call.params, marker)
        output["Contents"] = [{**entry, "Owner": self._owner} for entry in output["Contents"]]
        output["Marker"] = shown(marker)
        if page.next is not None:
            output["NextMarker"] = shown(page.next)
        return Answer(output)

    def _versions(self, call: Call, _body: VerifiedReader) -> Answer:
        """ListObjectVersions: one version of each object, called null, as in a bucket without versioning."""
        marker = call.params.get("KeyMarker", "")
        page, output, shown = _page(self._objects, call.params, marker)
        only = {"VersionId": "null", "IsLatest": True, "Owner": self._owner}
        output["Versions"] = [{**entry, **only} for entry in output.pop("Contents")]
        output["KeyMarker"] = shown(marker)
        output["VersionIdMarker"] = call.params.get("VersionIdMarker")
        if page.next is not None:
            output["NextKeyMarker"] = shown(page.next)
            output["NextVersionIdMarker"] = "null"
        return Answer(output)


def encoder(params: Mapping[str, Any]) -> Callable[[str], str]:
    """A function that writes keys for the answer: unchanged or URL-encoded. Raises ``ApiError``."""
    encoding = params.get("EncodingType")
    if encoding not in (None, "url"):
        raise ApiError(
            "InvalidArgument", f"Invalid Encoding Method specified in Request: {encoding[:50]!r}; use 'url'."
        )
    return (lambda text: quote(text, safe="/~")) if encoding else str


def _page(
    objects: FileObjects, params: Mapping[str, Any], after: str
) -> tuple[Page, dict[str, Any], Callable[[str], str]]:
    shown = encoder(params)
    limit = min(params.get("MaxKeys", _MAX_KEYS), _MAX_KEYS)
    prefix, delimiter = params.get("Prefix", ""), params.get("Delimiter", "")
    page = objects.page(params["Bucket"], prefix, delimiter, after, limit)
    contents = [
        {
            "Key": shown(info.key),
            "LastModified": info.modified,
            "ETag": f'"{info.etag}"',
            "Size": info.size,
            "StorageClass": info.metadata.get("x-amz-storage-class", "STANDARD"),
            **_checksum(info.metadata),
        }
        for info in page.objects
    ]
    output = {
        "Name": params["Bucket"],
        "Prefix": shown(prefix),
        "Delimiter": shown(delimiter) if delimiter else None,
        "MaxKeys": limit,
        "EncodingType": params.get("EncodingType"),
        "IsTruncated": page.next is not None,
        "Contents": contents,
        "CommonPrefixes": [{"Prefix": shown(p)} for p in page.prefixes],
    }
    return page, output, shown


def _checksum(metadata: Mapping[str, str]) -> dict[str, Any]:
    kept = s3_checksums.of_object(metadata)
    if not kept:
        return {}
    algorithms = [n.removeprefix(CHECKSUM_HEADER).upper() for n in kept if n != s3_checksums.TYPE_HEADER]
    return {"ChecksumAlgorithm": algorithms, "ChecksumType": kept[s3_checksums.TYPE_HEADER]}


def _decode_token(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("InvalidArgument", "The continuation token provided is incorrect") from error
