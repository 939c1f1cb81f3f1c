"""S3's headers: those stored with an object, those returned with it, and those refused."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import format_datetime

from windtunnel_local.api import s3_checksums
from windtunnel_local.api.body import CHECKSUM_HEADER
from windtunnel_local.api.errors import ApiError
from windtunnel_local.service.ground.ports import ObjectInfo

_KEPT = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
        "x-amz-server-side-encryption",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-server-side-encryption-bucket-key-enabled",
    }
)
_META = "x-amz-meta-"
_MAX_METADATA = 2048
_DEFAULT_TYPE = "binary/octet-stream"
# To accept these without their effect would mislead about the data's safety or content.
_REFUSED = (
    "x-amz-bucket-object-lock-",
    "x-amz-object-lock-",
    "x-amz-server-side-encryption-customer-",
    "x-amz-website-redirect-location",
    "x-amz-write-offset-bytes",
    "x-amz-copy-source-server-side-encryption-customer-",
)
_UNASKED = {"x-amz-server-side-encryption": "AES256"}
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
# ACLs that grant only what the owner of the one account has anyway.
_ACLS = ("private", "bucket-owner-full-control", "bucket-owner-read")
# Storage classes whose objects can be read at once, as all objects here.
_CLASSES = frozenset(
    {"STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"}
)
_OVERRIDES = {
    "ResponseCacheControl": "cache-control",
    "ResponseContentDisposition": "content-disposition",
    "ResponseContentEncoding": "content-encoding",
    "ResponseContentLanguage": "content-language",
    "ResponseContentType": "content-type",
    "ResponseExpires": "expires",
}


def refuse_unserved(headers: Mapping[str, str]) -> None:
    """Raise ``ApiError`` for a header whose effect is not simulated, or whose value is not valid."""
    for name in headers:
        if name.startswith(_REFUSED):
            raise ApiError("NotImplemented", f"Windtunnel's S3 does not serve the header {name}.", 501)
        if name.startswith("x-amz-grant-"):
            raise no_acls(f": leave out {name}")
    if headers.get("x-amz-acl", "private") not in _ACLS:
        raise no_acls(f": leave out x-amz-acl: {headers['x-amz-acl'][:50]}")
    storage = headers.get("x-amz-storage-class", "STANDARD")
    if storage not in _CLASSES:
        raise ApiError(
            "InvalidStorageClass",
            f"The storage class you specified is not valid: {storage[:50]!r}. Windtunnel's S3 takes those that are "
            f"read at once: {', '.join(sorted(_CLASSES))}.",
        )
    encryption = headers.get("x-amz-server-side-encryption", "AES256")
    if encryption not in _ENCRYPTIONS:
        raise ApiError(
            "InvalidArgument",
            f"The encryption method specified is not supported: {encryption[:50]!r}. Valid: {', '.join(_ENCRYPTIONS)}.",
        )


def no_acls(what: str = "") -> ApiError:
    """S3's error for an ACL in a bucket whose ACLs are disabled, as in each new bucket."""
    return ApiError("AccessControlListNotSupported", f"The bucket does not allow ACLs{what}.")


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a write that are stored and returned with every read. Raises ``ApiError``."""
    metadata = {n: v for n, v in headers.items() if n in _KEPT or n.startswith(_META)}
    metadata.setdefault("content-type", _DEFAULT_TYPE)
    own = sum(len(n) - len(_META) + len(v) for n, v in metadata.items() if n.startswith(_META))
    if own > _MAX_METADATA:
        details = {"Size": str(own), "MaxSizeAllowed": str(_MAX_METADATA)}
        message = "Your metadata headers exceed the maximum allowed metadata size"
        raise ApiError("MetadataTooLarge", message, details=details)
    if (storage := headers.get("x-amz-storage-class", "STANDARD")) != "STANDARD":
        metadata["x-amz-storage-class"] = storage
    if "content-encoding" in metadata:
        codings = [c.strip() for c in metadata["content-encoding"].split(",")]
        metadata["content-encoding"] = ",".join(c for c in codings if c.lower() != "aws-chunked")
        if not metadata["content-encoding"]:
            del metadata["content-encoding"]
    return metadata


def encryption(metadata: Mapping[str, str]) -> dict[str, str]:
    """The encryption headers of a write's answer; S3's own keys (AES256) if the write asked for none."""
    return {**_UNASKED, **_asked(metadata)}


def _asked(metadata: Mapping[str, str]) -> dict[str, str]:
    return {n: v for n, v in metadata.items() if n.startswith("x-amz-server-side-encryption")}


def recrypted(metadata: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, str]:
    """The stored headers of a copy: the source's, but encryption and storage class from the request, no checksums."""
    stays = {
        name: value
        for name, value in metadata.items()
        if not name.startswith((CHECKSUM_HEADER, "x-amz-server-side-encryption", "x-amz-storage-class"))
    }
    fresh = kept(headers)
    new = {name: value for name, value in fresh.items() if name == "x-amz-storage-class"}
    return {**stays, **_asked(fresh), **new}


def described(info: ObjectInfo, params: Mapping[str, object], *, whole: bool) -> dict[str, str]:
    """The headers of a read. Checksums only if the whole object is read, and the client asks for them."""
    headers = {"content-type": _DEFAULT_TYPE, **_UNASKED}
    headers.update((n, v) for n, v in info.metadata.items() if not n.startswith(CHECKSUM_HEADER))
    if whole and params.get("ChecksumMode") == "ENABLED":
        headers.update(s3_checksums.of_object(info.metadata))
    for param, name in _OVERRIDES.items():
        if param in params:
            headers[name] = _sendable(param, str(params[param]))
    headers["etag"] = f'"{info.etag}"'
    headers["last-modified"] = format_datetime(info.modified, usegmt=True)
    headers["accept-ranges"] = "bytes"
    return headers


def _sendable(name: str, value: str) -> str:
    """A value that a header can carry. Raises ``ApiError``."""
    if not value.isprintable() or any(ord(letter) > 0xFF for letter in value):
        raise ApiError("InvalidArgument", f"{name} cannot be sent as a header: {value[:50]!r}.")
    return value
