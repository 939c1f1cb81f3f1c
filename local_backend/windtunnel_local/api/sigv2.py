"""S3 URLs that are presigned with Signature Version 2, which boto3 still makes by default in older regions.

Only the query form for S3 is served: AWS's "Signing and authenticating REST requests (Signature Version 2)".
Headers that the signer moved into the URL (``x-amz-*``, Content-Type) count as sent in a header.
"""

from __future__ import annotations

import base64
import hmac
from datetime import datetime, timezone
from functools import lru_cache
from urllib.parse import parse_qsl, unquote_to_bytes

from windtunnel_local.api import codec
from windtunnel_local.api.errors import AuthFailure
from windtunnel_local.api.s3_routes import virtual_bucket
from windtunnel_local.api.sigv4 import Claim, Signable, mismatch, query_pairs

_OWN = (b"AWSAccessKeyId", b"Signature", b"Expires")
_SIGNED_HEADERS = (b"content-md5", b"content-type")
_TOKEN = b"x-amz-security-token"
_ANSWERS = "response-"
_NAME_PARTS = frozenset({"versionId", "partNumber", "uploadId"})
_UNSIGNED = frozenset({"list-type", "x-id"})  # they choose the form of a list, not a subresource


def is_of(request: Signable) -> bool:
    """Whether a request has such a signature in its query, and no Authorization header."""
    return request.header("authorization") is None and b"AWSAccessKeyId=" in request.query


def parse(request: Signable) -> Claim:
    """The request's claim, not yet checked. Raises ``AuthFailure``."""
    query = {name: value.decode("latin-1") for name, value in query_pairs(request.query)}
    if not all(query.get(name) for name in _OWN):
        raise AuthFailure(
            "missing",
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters.",
        )
    key, signature, expires = (query[name] for name in _OWN)
    try:
        expires_at = datetime.fromtimestamp(int(expires), timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        text = f"Invalid date (should be seconds since epoch): {expires[:50]}"
        raise AuthFailure("missing", text) from error
    token = query.get(_TOKEN) or request.header(_TOKEN.decode())
    return Claim(key, "", "", "s3", (), signature, expires, token=token, expires_at=expires_at)


def checked(request: Signable, claim: Claim, secret: str) -> Signable:
    """Check the signature; returns the request without it, its headers moved out of the URL. Raises ``AuthFailure``."""
    pairs = query_pairs(request.query)
    sent = {name for name, _ in request.headers}
    if any(b"\n" in name or b"\n" in value for name, value in pairs):
        raise mismatch()  # the signed text could be that of two requests
    moved = [(n.lower(), v) for n, v in pairs if _is_header(n.lower()) and n.lower() not in sent]
    parts = (part for part in request.query.split(b"&") if part)
    kept = (part for part in parts if not _is_moved(unquote_to_bytes(part.partition(b"=")[0])))
    plain = Signable(request.method, request.path, b"&".join(kept), [*request.headers, *moved])
    digest = hmac.digest(secret.encode(), _to_sign(plain, claim), "sha1")
    if not hmac.compare_digest(base64.b64encode(digest), claim.signature.encode()):
        raise mismatch()
    return plain


def _is_header(name: bytes) -> bool:
    return name.startswith(b"x-amz-") or name in _SIGNED_HEADERS


def _is_moved(name: bytes) -> bool:
    return name in _OWN or _is_header(name.lower())


def _to_sign(request: Signable, claim: Claim) -> bytes:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in request.headers:
        headers.setdefault(name, []).append(value.strip())
    first = [headers.get(name, [b""])[0] for name in _SIGNED_HEADERS]
    ours = [b"%s:%s" % (n, b",".join(v)) for n, v in sorted(headers.items()) if n.startswith(b"x-amz-")]
    return b"\n".join((request.method.encode(), *first, claim.timestamp.encode(), *ours, _resource(request)))


def _resource(request: Signable) -> bytes:
    """The signed resource: bucket, key, and query parameters that choose a subresource or change the answer."""
    bucket = virtual_bucket((request.header("host") or "").lower())
    path = (b"/" + bucket.encode() if bucket else b"") + request.path
    if path.count(b"/") == 1 and path != b"/":
        path += b"/"
    signed = [(n, v) for n, v in query_pairs(request.query) if _chooses(n.decode("latin-1"))]
    has_value = {part.partition(b"=")[0] for part in request.query.split(b"&") if b"=" in part}
    parts = [b"%s=%s" % (n, v) if n in has_value else n for n, v in sorted(signed, key=lambda p: p[0])]
    return path + (b"?" + b"&".join(parts) if parts else b"")


def _chooses(name: str) -> bool:
    return name.startswith(_ANSWERS) or name in _NAME_PARTS or name in _parts_of_s3()


@lru_cache(maxsize=1)
def _parts_of_s3() -> frozenset[str]:
    """The names of S3's subresources in a query (``tagging``, ``uploads``), from the operations' URIs."""
    model = codec.service_model("s3")
    targets = (model.operation_model(name).http["requestUri"] for name in model.operation_names)
    queries = (parse_qsl(target.partition("?")[2], keep_blank_values=True) for target in targets)
    return frozenset(name for query in queries for name, _ in query) - _UNSIGNED
