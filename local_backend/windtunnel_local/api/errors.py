"""Errors of the API itself, raised before the service checks its own rules.

ApiError               an error with AWS's code and HTTP status
└── AuthFailure        the request is not signed as it must be; the code depends on the protocol
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Protocol = Literal["json", "cbor", "query", "s3"]


class ApiError(Exception):
    """An error with AWS's code. ``details``: further members of the error document, in S3 and JSON."""

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

# The code that AWS's services answer for each reason, by protocol.
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
    """The request has no signature that is valid now. HTTP 403; 400 for a presigned URL with an impossible expiry."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__("AccessDenied", message, 400 if reason == "wrong expiry" else 403)
        self.reason: Reason = reason

    def code_for(self, protocol: Protocol) -> str:
        """AWS's code for the error in a protocol."""
        return _CODES[self.reason]["json" if protocol == "cbor" else protocol]
