"""S3's listings: ListObjectsV2 and ListObjects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import Answer
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects.files import FileObjects, Page

_MAX_KEYS = 1000


def list_objects_v2(objects: FileObjects, call: Call) -> Answer:
    """A page by continuation token."""
    params = call.params
    token = params.get("ContinuationToken")
    after = _decode_token(token) if token is not None else params.get("StartAfter", "")
    page, output, shown = _page(objects, params, after)
    output["KeyCount"] = len(page.objects) + len(page.prefixes)
    output["ContinuationToken"] = token
    if page.next is not None:
        output["NextContinuationToken"] = base64.urlsafe_b64encode(page.next.encode()).decode()
    if "StartAfter" in params:
        output["StartAfter"] = shown(params["StartAfter"])
    return Answer(output)


def list_objects(objects: FileObjects, call: Call) -> Answer:
    """A page by marker, the older form."""
    marker = call.params.get("Marker", "")
    page, output, shown = _page(objects, call.params, marker)
    output["Marker"] = shown(marker)
    if page.next is not None:
        output["NextMarker"] = shown(page.next)
    return Answer(output)


def _page(
    objects: FileObjects, params: Mapping[str, Any], after: str
) -> tuple[Page, dict[str, Any], Callable[[str], str]]:
    encoding = params.get("EncodingType")
    if encoding not in (None, "url"):
        raise ApiError(
            "InvalidArgument", f"Invalid Encoding Method specified in Request: {encoding[:50]!r}; use 'url'."
        )
    shown = (lambda text: quote(text, safe="/~")) if encoding else str
    limit = min(params.get("MaxKeys", _MAX_KEYS), _MAX_KEYS)
    prefix, delimiter = params.get("Prefix", ""), params.get("Delimiter", "")
    page = objects.page(params["Bucket"], prefix, delimiter, after, limit)
    contents = [
        {
            "Key": shown(info.key),
            "LastModified": info.modified,
            "ETag": f'"{info.etag}"',
            "Size": info.size,
            "StorageClass": "STANDARD",
        }
        for info in page.objects
    ]
    output = {
        "Name": params["Bucket"],
        "Prefix": shown(prefix),
        "Delimiter": shown(delimiter) if delimiter else None,
        "MaxKeys": limit,
        "EncodingType": encoding,
        "IsTruncated": page.next is not None,
        "Contents": contents,
        "CommonPrefixes": [{"Prefix": shown(p)} for p in page.prefixes],
    }
    return page, output, shown


def _decode_token(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ApiError("InvalidArgument", "The continuation token provided is incorrect") from error
