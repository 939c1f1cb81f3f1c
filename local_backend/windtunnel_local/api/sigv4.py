"""Verifies AWS Signature Version 4, in the header form and the presigned (query) form.

`parse` reads what a request claims; `Verifier.admit` checks all that needs no body (key, session
token, scope, clock); `Verifier.check` recomputes the signature. Canonical forms follow AWS's
"Create a signed AWS API request"; S3 encodes the path once, all other services twice.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windtunnel_local.api.callers import Caller, SessionTokens
from windtunnel_local.api.errors import AuthFailure

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_SHA256 = hashlib.sha256().hexdigest()
_SKEW_MIN = 15
MAX_SKEW = timedelta(minutes=_SKEW_MIN)
MAX_EXPIRES_S = 7 * 24 * 3600

_HEADER = re.compile(r"AWS4-HMAC-SHA256\s+(.*)", re.DOTALL)
_SIGNATURE = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Signable:
    """The parts of a request that a signature covers, as they were sent."""

    method: str
    path: bytes
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    """Names in lower case."""

    @cached_property
    def first_values(self) -> Mapping[str, str]:
        """The first value of each header."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.headers)}

    def header(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return self.first_values.get(name)


@dataclass(frozen=True)
class Claim:
    """Who the request says it is from. ``expires_s``: of presigned requests only; ``token``: a session token.

    ``expires_at``: only of a URL signed with version 2, which has no date, region or signed headers;
    its ``timestamp`` is the text of its expiry.
    """

    access_key_id: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str
    timestamp: str
    expires_s: int | None = None
    token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"

    @property
    def presigned(self) -> bool:
        """Whether the signature is in the query."""
        return self.expires_s is not None or self.expires_at is not None


def parse(request: Signable) -> Claim:
    """The request's claim, not yet checked.

    Raises:
        AuthFailure: the request is not signed, or its signature cannot be parsed.
    """
    authorization = request.header("authorization")
    if authorization is not None:
        return _from_header(
            authorization, request.header("x-amz-date"), request.header("x-amz-security-token")
        )
    query = {key.decode("latin-1"): value.decode("latin-1") for key, value in query_pairs(request.query)}
    if "X-Amz-Signature" in query or "X-Amz-Credential" in query:
        return _from_query(query)
    raise AuthFailure(
        "missing",
        "Missing Authentication Token: the request is not signed (SigV4 is needed). What AWS takes unsigned (POST"
        " forms of S3, AssumeRoleWithSAML, AssumeRoleWithWebIdentity) is not served here.",
    )


def _from_header(authorization: str, timestamp: str | None, token: str | None) -> Claim:
    match = _HEADER.fullmatch(authorization.strip())
    if match is None:
        raise AuthFailure("incomplete", f"Unsupported authorization type; only {ALGORITHM} is served.")
    pairs = (part.strip().partition("=") for part in match[1].split(","))
    fields = {name: value for name, _, value in pairs}
    missing = [name for name in ("Credential", "SignedHeaders", "Signature") if not fields.get(name)]
    if missing:
        raise AuthFailure("incomplete", f"Authorization header requires {', '.join(missing)}.")
    if timestamp is None:
        raise AuthFailure("incomplete", "AWS authentication requires a valid x-amz-date header.")
    return _claim(fields["Credential"], fields["SignedHeaders"], fields["Signature"], timestamp, None, token)


def _from_query(query: dict[str, str]) -> Claim:
    names = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders")
    missing = [name for name in (*names, "X-Amz-Signature") if name not in query]
    if missing:
        raise AuthFailure("incomplete", f"Query-string authentication requires {', '.join(missing)}.")
    if query["X-Amz-Algorithm"] != ALGORITHM:
        raise AuthFailure("incomplete", f"X-Amz-Algorithm only supports {ALGORITHM}.")
    expires_s = _expires_s(query["X-Amz-Expires"])
    return _claim(
        query["X-Amz-Credential"],
        query["X-Amz-SignedHeaders"],
        query["X-Amz-Signature"],
        query["X-Amz-Date"],
        expires_s,
        query.get("X-Amz-Security-Token"),
    )


def _expires_s(given: str) -> int:
    """How many seconds a presigned URL is valid; S3's errors for other values. 0 is allowed: expired at once."""
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise AuthFailure("wrong expiry", "X-Amz-Expires should be a number")
    seconds = int(given[:9])  # more digits would exceed the limit, too
    if seconds < 0:
        raise AuthFailure("wrong expiry", "X-Amz-Expires must be non-negative")
    if seconds > MAX_EXPIRES_S:
        raise AuthFailure(
            "wrong expiry",
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than "
            f"{MAX_EXPIRES_S} seconds",
        )
    return seconds


def _claim(
    credential: str, signed: str, signature: str, timestamp: str, expires_s: int | None, token: str | None
) -> Claim:
    parts = credential.split("/")
    if len(parts) != 5 or parts[4] != "aws4_request":
        raise AuthFailure(
            "incomplete",
            "The credential must have the form <access key>/<yyyymmdd>/<region>/<service>/aws4_request; "
            f"{len(parts)} parts were given.",
        )
    if not _SIGNATURE.fullmatch(signature):
        raise AuthFailure("incomplete", "The signature must be 64 lower-case hexadecimal digits.")
    headers = tuple(signed.lower().split(";"))
    if "host" not in headers:
        raise AuthFailure("incomplete", "SignedHeaders must contain 'host'.")
    return Claim(parts[0], parts[1], parts[2], parts[3], headers, signature, timestamp, expires_s, token)


class Verifier:
    """Checks claims against the home's key pair, and the sessions that STS has made with it.

    ``now``: the wall clock, timezone-aware. ``goes_on``: whether the job of a `Job.identity` still runs.
    """

    def __init__(
        self,
        access_key_id: str,
        secret_access_key: str,
        now: Callable[[], datetime],
        goes_on: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._access_key_id = access_key_id
        self._secret = secret_access_key
        self._tokens = SessionTokens(secret_access_key)
        self._now = now
        self._goes_on = goes_on

    def admit(self, claim: Claim) -> Caller:
        """Check key, session, scope and clock, which needs no body. Raises ``AuthFailure``."""
        caller = self._caller(claim)
        if claim.expires_at is not None:
            if self._now() > claim.expires_at:
                raise AuthFailure(
                    "expired", f"Request has expired: signed until {claim.expires_at:%Y-%m-%dT%H:%M:%SZ}."
                )
            return caller
        try:
            signed_at = _moment(claim.timestamp)
        except ValueError as error:
            raise AuthFailure("incomplete", "The date must have the form YYYYMMDD'T'HHMMSS'Z'.") from error
        if claim.timestamp[:8] != claim.date:
            raise AuthFailure(
                "mismatch", "Date in Credential scope does not match YYYYMMDD from the request's date."
            )
        now = self._now()
        self._check_clock(claim, signed_at, now)
        return caller

    def _caller(self, claim: Claim) -> Caller:
        if claim.token is None:
            if not _equal(claim.access_key_id, self._access_key_id):
                raise AuthFailure(
                    "unknown key",
                    "The security token included in the request is invalid: no such access key here. "
                    'Use the pair of this Windtunnel home: eval "$(windtunnel env)".',
                )
            return Caller()
        grant = self._tokens.read(claim.token)
        if grant is None or not _equal(claim.access_key_id, grant.access_key_id):
            raise AuthFailure(
                "invalid token",
                "The security token included in the request is invalid: this Windtunnel home has not issued "
                "it with that access key. Its own key pair goes without AWS_SESSION_TOKEN.",
            )
        if self._now() >= grant.expires:
            raise AuthFailure(
                "expired token",
                f"The security token included in the request is expired since {grant.expires:%Y-%m-%dT%H:%M:%SZ}."
                " Call AssumeRole again.",
            )
        job = grant.caller.job
        if job is not None and not self._goes_on(job):
            raise AuthFailure(
                "expired token",
                f"The security token included in the request is expired: the training job {job.partition('/')[0]}, "
                "to whose code it was given, has ended. Use the pair of this Windtunnel home.",
            )
        return grant.caller

    def secret_of(self, claim: Claim) -> str:
        """The secret key that belongs to an admitted claim."""
        grant = self._tokens.read(claim.token) if claim.token is not None else None
        return grant.secret_access_key if grant else self._secret

    def _check_clock(self, claim: Claim, signed_at: datetime, now: datetime) -> None:
        if signed_at - now > MAX_SKEW:
            raise AuthFailure(
                "skew",
                f"Signature not yet current: {claim.timestamp} is later than {now:%Y%m%dT%H%M%SZ} + {_SKEW_MIN} min.",
            )
        if claim.expires_s is not None:
            if now > signed_at + timedelta(seconds=claim.expires_s):
                raise AuthFailure(
                    "expired", f"Request has expired: signed {claim.timestamp} for {claim.expires_s} s."
                )
        elif now - signed_at > MAX_SKEW:
            raise AuthFailure(
                "skew",
                f"Signature expired: {claim.timestamp} is now earlier than {now:%Y%m%dT%H%M%SZ} - {_SKEW_MIN} min. "
                "The difference between the request time and the current time is too large.",
            )

    def check(self, claim: Claim, request: Signable, payload_hash: str) -> None:
        """Recompute the signature and compare in constant time. Raises ``AuthFailure``."""
        signed = set(claim.signed_headers)
        loose = sorted({n.decode("latin-1") for n, _ in request.headers if n.startswith(b"x-amz-")} - signed)
        if loose:
            raise AuthFailure(
                "mismatch", f"There were headers present which were not signed: {', '.join(loose)}."
            )
        canonical = canonical_request(claim, request, payload_hash)
        to_sign = "\n".join((ALGORITHM, claim.timestamp, claim.scope, hashlib.sha256(canonical).hexdigest()))
        if not hmac.compare_digest(self.sign(claim, to_sign), claim.signature):
            raise mismatch()

    def sign(self, claim: Claim, text: str) -> str:
        """The signature of a string under the claim's scope, in hexadecimal."""
        key = _signing_key(self.secret_of(claim), claim.date, claim.region, claim.service)
        return hmac.digest(key, text.encode(), "sha256").hex()


def mismatch() -> AuthFailure:
    """The error for a signature that differs from the computed one."""
    return AuthFailure(
        "mismatch",
        "The request signature we calculated does not match the signature you provided. "
        "Check your secret access key and signing method.",
    )


def canonical_request(claim: Claim, request: Signable, payload_hash: str) -> bytes:
    """The canonical request whose hash is signed."""
    path = request.path or b"/"
    if claim.service != "s3":
        path = quote_from_bytes(path, safe="/-_.~").encode()
    pairs = [
        (_recode(key), _recode(value))
        for key, value in query_pairs(request.query)
        if not (claim.presigned and key == b"X-Amz-Signature")
    ]
    query = "&".join(f"{key}={value}" for key, value in sorted(pairs))
    values: dict[bytes, list[bytes]] = {}
    for name, value in request.headers:
        values.setdefault(name, []).append(b" ".join(value.split()))
    lines = [
        b"%s:%s\n" % (name, b",".join(values.get(name, ()))) for name in map(str.encode, claim.signed_headers)
    ]
    return b"\n".join(
        (
            request.method.encode(),
            path,
            query.encode(),
            b"".join(lines),
            ";".join(claim.signed_headers).encode(),
            payload_hash.encode(),
        )
    )


def query_pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    """The query's names and values, decoded; a ``+`` stays a plus, as on AWS."""
    pairs = (part.partition(b"=") for part in query.split(b"&") if part)
    return [(unquote_to_bytes(key), unquote_to_bytes(value)) for key, _, value in pairs]


def _equal(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode(), own.encode())


def _recode(text: bytes) -> str:
    return quote_from_bytes(text, safe="-_.~")


@lru_cache(maxsize=64)
def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = b"AWS4" + secret.encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


@lru_cache(maxsize=64)
def _moment(timestamp: str) -> datetime:
    return datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
