"""The caller of a request: the owner of the home's key pair, or an STS session of a role.

A session's credentials are derived from the home's secret key and stored nowhere. The session token holds
the caller, the expiry and a MAC; key id and secret are MACs of the token's content under other labels. So
credentials stay valid when the server restarts, and end at their expiry or with the home's key pair. Those of
a job's own code, and all that are made with them, also end with the job.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timezone

_MAC_BYTES = hashlib.sha256().digest_size
_KEY_ID_PREFIX = "ASIA"  # AWS's prefix of keys that need a session token
_KEY_ID_LETTERS = 16
_SECRET_LETTERS = 40
_MAX_TOKEN = 4096


@dataclass(frozen=True)
class Caller:
    """Who signed a request. ``role``: None for the home's own user; ``session``: the name given to AssumeRole."""

    role: str | None = None
    session: str | None = None
    job: str | None = None
    """If a job's own code calls: its `Job.identity`. The keys end with that job."""


@dataclass(frozen=True)
class Grant:
    """A session token and what it grants: to whom, until when (UTC, whole seconds), and with which keys."""

    caller: Caller
    expires: datetime
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)


CURRENT: ContextVar[Caller] = ContextVar("caller")
"""The caller of the current request; set when its key, token and clock have been checked."""


class SessionTokens:
    """Makes and reads session tokens under one secret key."""

    def __init__(self, secret_access_key: str) -> None:
        self._secret = secret_access_key.encode()

    def issue(self, caller: Caller, expires: datetime) -> Grant:
        """New credentials for a caller, different at each call."""
        fields = [
            caller.role or "",
            caller.session or "",
            int(expires.timestamp()),
            secrets.token_urlsafe(9),
            caller.job or "",
        ]
        content = json.dumps(fields, separators=(",", ":")).encode()
        token = base64.urlsafe_b64encode(self._mac("token", content) + content).decode()
        return self._grant(content, token)

    def read(self, token: str) -> Grant | None:
        """What a token grants, even if it has expired; None if this home did not issue it."""
        if len(token) > _MAX_TOKEN:
            return None
        try:
            raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac("token", content)):
            return None
        return self._grant(content, token)

    def _grant(self, content: bytes, token: str) -> Grant:
        role, session, expires, _, job = json.loads(content)
        key_id = base64.b32encode(self._mac("key id", content)).decode()[:_KEY_ID_LETTERS]
        secret = base64.b64encode(self._mac("secret", content)).decode()[:_SECRET_LETTERS]
        caller = Caller(role or None, session or None, job or None)
        moment = datetime.fromtimestamp(expires, timezone.utc)
        return Grant(caller, moment, _KEY_ID_PREFIX + key_id, secret, token)

    def _mac(self, label: str, content: bytes) -> bytes:
        # The label makes the three MACs differ from each other and from SigV4's use of the secret.
        return hmac.new(self._secret, f"windtunnel session {label}\0".encode() + content, "sha256").digest()
