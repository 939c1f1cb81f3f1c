"""What the API itself refuses, before a rule of the service is asked.

ApiError               an answer with a code and a status of AWS's
└── AuthFailure        the request is not proved to be the owner's; the code depends on the protocol
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Protocol = Literal["json", "cbor", "query", "s3"]


class ApiError(Exception):
    """An error of AWS's. ``details``: further members of its document, where the protocol has such (S3, JSON)."""

    def __init__(
        self, code: str, message: str, status: int = 400, details: Mapping[str, str | int] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = dict(details or {})


Reason = Literal[
    "missing",
    "incomplete",
    "wrong expiry",
    "unknown key",
    "invalid token",
    "expired token",
    "mismatch",
    "skew",
    "expired",
]

# One fact, three names: what AWS's services answer by protocol.
_CODES: Mapping[Reason, Mapping[Protocol, str]] = {
    "missing": {
        "json": "MissingAuthenticationTokenException",
        "query": "MissingAuthenticationToken",
        "s3": "AccessDenied",
    },
    "incomplete": {
        "json": "IncompleteSignatureException",
        "query": "IncompleteSignature",
        "s3": "AuthorizationHeaderMalformed",
    },
    "wrong expiry": {
        "json": "IncompleteSignatureException",
        "query": "IncompleteSignature",
        "s3": "AuthorizationQueryParametersError",
    },
    "unknown key": {
        "json": "UnrecognizedClientException",
        "query": "InvalidClientTokenId",
        "s3": "InvalidAccessKeyId",
    },
    "invalid token": {
        "json": "UnrecognizedClientException",
        "query": "InvalidClientTokenId",
        "s3": "InvalidToken",
    },
    "expired token": {"json": "ExpiredTokenException", "query": "ExpiredToken", "s3": "ExpiredToken"},
    "mismatch": {
        "json": "InvalidSignatureException",
        "query": "SignatureDoesNotMatch",
        "s3": "SignatureDoesNotMatch",
    },
    "skew": {
        "json": "InvalidSignatureException",
        "query": "SignatureDoesNotMatch",
        "s3": "RequestTimeTooSkewed",
    },
    "expired": {"json": "RequestExpired", "query": "RequestExpired", "s3": "AccessDenied"},
}


class AuthFailure(ApiError):
    """The request is not signed by the owner of the key, now. HTTP 403; 400 of a presigned URL's impossible expiry."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__("AccessDenied", message, 400 if reason == "wrong expiry" else 403)
        self.reason: Reason = reason

    def code_for(self, protocol: Protocol) -> str:
        """AWS's name of the error in a protocol."""
        return _CODES[self.reason]["json" if protocol == "cbor" else protocol]
