"""Operations that read an S3 object: the whole, a range, one of its parts, or only its attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec

from windtunnel_local.api import s3_checksums, s3_conditions, s3_headers, s3_ranges
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import Answer, Slice
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.parts import StoredPart
from windtunnel_local.objects.records import Record

_LOOKS = 20
"""How often a read begins again because the object was replaced meanwhile."""
_MAX_PARTS = 1000
_ATTRIBUTES = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")


@dataclass(frozen=True)
class _Span:
    """The bytes of an object to send. ``headers``: those to add for this choice."""

    start: int
    length: int
    partial: bool
    headers: Mapping[str, str]


_Given = ParamSpec("_Given")


def steady(operation: Callable[_Given, Answer]) -> Callable[_Given, Answer]:
    """Run the operation again if the object is replaced between the reading of its record and of its bytes.

    At most `_LOOKS` times: if the bytes are missing for good, ``FileNotFoundError`` is raised.
    """

    def run(*given: _Given.args, **named: _Given.kwargs) -> Answer:
        for _ in range(_LOOKS):
            with suppress(FileNotFoundError):
                return operation(*given, **named)
        return operation(*given, **named)

    return run


@steady
def get_object(objects: FileObjects, call: Call) -> Answer:
    record, file = objects.open_record(call.params["Bucket"], call.params["Key"])
    try:
        answer, span = _described(objects, call, record)
        if span is None:
            file.close()
            return answer
        file.seek(span.start)
    except BaseException:
        file.close()
        raise
    return Answer(headers=answer.headers, status=answer.status, content=Slice(file, span.length))


@steady
def head_object(objects: FileObjects, call: Call) -> Answer:
    record = objects.existing(call.params["Bucket"], call.params["Key"])
    answer, span = _described(objects, call, record)
    if span is None:
        return answer
    return Answer(headers={**answer.headers, "content-length": str(span.length)}, status=answer.status)


def _described(objects: FileObjects, call: Call, record: Record) -> tuple[Answer, _Span | None]:
    """The status and headers, and the bytes to send; None: no bytes (304)."""
    info = record.info
    if not s3_conditions.check_conditions(info, call.headers):
        return Answer(headers={"etag": f'"{info.etag}"'}, status=304), None
    span = _span(objects, call, record)
    headers = {**s3_headers.described(info, call.params, whole=not span.partial), **span.headers}
    if record.tags:
        headers["x-amz-tagging-count"] = str(len(record.tags))
    if span.partial:
        end = span.start + span.length - 1
        headers["content-range"] = f"bytes {span.start}-{end}/{info.size}"
    return Answer(headers=headers, status=206 if span.partial else 200), span


def _span(objects: FileObjects, call: Call, record: Record) -> _Span:
    number = call.params.get("PartNumber")
    wanted = call.headers.get("range")
    if number is None:
        span = s3_ranges.byte_range(wanted, record.size)
        return _Span(*span, True, {}) if span else _Span(0, record.size, False, {})
    if wanted is not None:
        raise ApiError("InvalidRequest", "Cannot specify both Range header and partNumber query parameter.")
    parts = _parts(objects, call, record)
    if not parts and number == 1:
        return _Span(0, record.size, record.size > 0, {})
    if not 1 <= number <= len(parts):
        details = {"PartNumberRequested": str(number), "ActualPartCount": str(max(len(parts), 1))}
        raise ApiError("InvalidPartNumber", "The requested partnumber is not satisfiable", 416, details)
    part = parts[number - 1]
    headers = {"x-amz-mp-parts-count": str(len(parts))}
    if call.params.get("ChecksumMode") == "ENABLED":
        headers.update(s3_checksums.of_part(part))
        if kind := s3_checksums.of_object(record.metadata).get(s3_checksums.TYPE_HEADER):
            headers[s3_checksums.TYPE_HEADER] = kind
    return _Span(sum(p.size for p in parts[: number - 1]), part.size, record.size > 0, headers)


@steady
def get_attributes(objects: FileObjects, call: Call) -> Answer:
    """GetObjectAttributes: the attributes that are asked for, as far as the object has them."""
    record = objects.existing(call.params["Bucket"], call.params["Key"])
    wanted = [name.strip() for name in call.params["ObjectAttributes"].split(",")]
    unknown = [name for name in wanted if name not in _ATTRIBUTES]
    if unknown:
        raise ApiError(
            "InvalidArgument",
            f"Invalid attribute name specified: {unknown[0][:50]!r}. Valid: {', '.join(_ATTRIBUTES)}.",
        )
    shapes = call.model.output_shape.members
    checksums = s3_checksums.of_object(record.metadata)
    composite = checksums.get(s3_checksums.TYPE_HEADER) == "COMPOSITE"
    # Unlike all other operations, S3 gives a composite checksum without the number of parts here.
    if composite:
        checksums = {name: value.partition("-")[0] for name, value in checksums.items()}
    checksum = s3_checksums.members(checksums, shapes["Checksum"])
    available: dict[str, Any] = {
        "ETag": record.etag,
        "Checksum": checksum or None,
        "ObjectParts": _object_parts(call, _parts(objects, call, record), composite),
        "StorageClass": record.metadata.get("x-amz-storage-class", "STANDARD"),
        "ObjectSize": record.size,
    }
    output = {name: available[name] for name in wanted}
    return Answer({**output, "LastModified": record.info.modified})


def _parts(objects: FileObjects, call: Call, record: Record) -> Sequence[StoredPart]:
    """The object's parts, as S3 tells of them: a copy has none, even if its bytes lie in several files."""
    return objects.parts_of(call.params["Bucket"], record) if "-" in record.etag else ()


def _object_parts(call: Call, parts: Sequence[StoredPart], composite: bool) -> dict[str, Any] | None:
    if not parts:
        return None
    if not composite:  # S3 lists parts only if the object's checksum is made of theirs
        return {"TotalPartsCount": len(parts)}
    marker = int(call.headers.get("x-amz-part-number-marker", "0"))
    limit = min(int(call.headers.get("x-amz-max-parts", str(_MAX_PARTS))), _MAX_PARTS)
    behind = [(number, part) for number, part in enumerate(parts, 1) if number > marker]
    shape = call.model.output_shape.members["ObjectParts"].members["Parts"].member
    page = behind[:limit]
    return {
        "TotalPartsCount": len(parts),
        "PartNumberMarker": marker,
        "NextPartNumberMarker": page[-1][0] if page else marker,
        "MaxParts": limit,
        "IsTruncated": len(behind) > limit,
        "Parts": [
            {
                "PartNumber": number,
                "Size": part.size,
                **s3_checksums.members(s3_checksums.of_part(part), shape),
            }
            for number, part in page
        ],
    }
