"""ListMultipartUploads and ListParts, with which a client can resume an upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.api import s3_checksums
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.s3_answer import Answer, Handler
from windtunnel_local.api.s3_lists import encoder
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects.uploads import MultipartUploads, Upload

_MOST = 1000


class UploadListings:
    """ListParts and ListMultipartUploads. ``handlers``: by the operation's name."""

    def __init__(self, uploads: MultipartUploads, owner: Mapping[str, str]) -> None:
        self._uploads = uploads
        self._owner = owner
        self.handlers: Mapping[str, Handler] = {
            "ListParts": self._parts,
            "ListMultipartUploads": self._list,
        }

    def _parts(self, call: Call, _body: VerifiedReader) -> Answer:
        named = call.params["Bucket"], call.params["Key"], call.params["UploadId"]
        upload = self._uploads.find(*named)
        marker = int(call.params.get("PartNumberMarker", 0))
        limit = min(call.params.get("MaxParts", _MOST), _MOST)
        behind = [found for found in self._uploads.parts(*named) if found[0].number > marker]
        page = behind[:limit]
        shape = call.model.output_shape.members["Parts"].member
        parts = [
            {
                "PartNumber": part.number,
                "LastModified": _time(modified),
                "ETag": f'"{part.etag}"',
                "Size": part.size,
                **s3_checksums.members(s3_checksums.of_part(part), shape),
            }
            for part, modified in page
        ]
        bucket, key, upload_id = named
        output = {
            "Bucket": bucket,
            "Key": key,
            "UploadId": upload_id,
            "PartNumberMarker": marker,
            "NextPartNumberMarker": page[-1][0].number if page else 0,
            "MaxParts": limit,
            "IsTruncated": len(behind) > len(page),
            "Parts": parts,
            "Initiator": self._owner,
            "Owner": self._owner,
            **_described(upload),
        }
        return Answer(output)

    def _list(self, call: Call, _body: VerifiedReader) -> Answer:
        params = call.params
        shown = encoder(params)
        prefix, delimiter = params.get("Prefix", ""), params.get("Delimiter", "")
        key_marker, id_marker = params.get("KeyMarker", ""), params.get("UploadIdMarker", "")
        limit = min(params.get("MaxUploads", _MOST), _MOST)
        under_way = _behind(self._uploads.under_way(params["Bucket"]), key_marker, id_marker)
        page, prefixes, following = _page(
            [upload for upload in under_way if upload.key.startswith(prefix)],
            lambda upload: _rolled(upload.key, prefix, delimiter),
            limit,
            key_marker,
        )
        output = {
            "Bucket": params["Bucket"],
            "KeyMarker": shown(key_marker),
            "UploadIdMarker": id_marker,
            "Prefix": shown(prefix),
            "Delimiter": shown(delimiter) if delimiter else None,
            "EncodingType": params.get("EncodingType"),
            "MaxUploads": limit,
            "IsTruncated": following is not None,
            "NextKeyMarker": shown(following[0]) if following else None,
            "NextUploadIdMarker": following[1] if following else None,
            "Uploads": [self._upload(upload, shown) for upload in page],
            "CommonPrefixes": [{"Prefix": shown(text)} for text in prefixes],
        }
        return Answer(output)

    def _upload(self, upload: Upload, shown: Callable[[str], str]) -> dict[str, Any]:
        return {
            "UploadId": upload.id,
            "Key": shown(upload.key),
            "Initiated": _time(upload.initiated),
            "Owner": self._owner,
            "Initiator": self._owner,
            **_described(upload),
        }


def _behind(uploads: Sequence[Upload], key_marker: str, id_marker: str) -> Sequence[Upload]:
    """The uploads after the markers: of later keys, and with an id also later uploads of the same key.

    If the upload with that id has ended since, all uploads of its key are listed: better twice than never.
    """
    marked = next((at for at, upload in enumerate(uploads) if id_marker and upload.id == id_marker), None)
    if marked is not None:
        return uploads[marked + 1 :]
    after = key_marker.encode()
    return [
        upload
        for upload in uploads
        if upload.key.encode() > after or (id_marker and upload.key.encode() == after)
    ]


def _page(
    uploads: Sequence[Upload], rolled_of: Callable[[Upload], str | None], limit: int, key_marker: str
) -> tuple[list[Upload], list[str], tuple[str, str] | None]:
    """Uploads and rolled-up prefixes of one page, and the markers of the next, if there is one."""
    page: list[Upload] = []
    prefixes: list[str] = []
    last = ("", "")
    for upload in uploads:
        rolled = rolled_of(upload)
        if rolled is not None and (rolled in prefixes[-1:] or rolled == key_marker):
            continue
        if len(page) + len(prefixes) >= limit:
            return page, prefixes, last
        if rolled is None:
            page.append(upload)
            last = upload.key, upload.id
        else:
            prefixes.append(rolled)
            last = rolled, ""
    return page, prefixes, None


def _described(upload: Upload) -> dict[str, Any]:
    return {
        "StorageClass": upload.metadata.get("x-amz-storage-class", "STANDARD"),
        "ChecksumAlgorithm": upload.algorithm.upper() if upload.algorithm else None,
        "ChecksumType": upload.kind,
    }


def _rolled(key: str, prefix: str, delimiter: str) -> str | None:
    head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
    return prefix + head + found if found else None


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
