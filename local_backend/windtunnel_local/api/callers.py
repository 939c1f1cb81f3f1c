"""Who calls: the owner of the key pair, or a session of STS that stands for a role.

A session's credentials are derived from the home's secret key and stored nowhere: the token says for
whom and until when and carries a MAC, and key id and secret are MACs of the token's content under other
labels. So they outlive the server, and end with their time or with the home's key pair; those of a job's own
code, and all that come of them, also with the job.
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
_KEY_ID_PREFIX = "ASIA"  # as AWS marks keys that work with a token only
_KEY_ID_LETTERS = 16
_SECRET_LETTERS = 40
_MAX_TOKEN = 4096


@dataclass(frozen=True)
class Caller:
    """Who signed. ``role`` is None for the home's own user; ``session``: the name given to AssumeRole."""

    role: str | None = None
    session: str | None = None
    job: str | None = None
    """Set for a job's own code: the `Job.identity` with which its keys end."""


@dataclass(frozen=True)
class Grant:
    """What a token says: for whom, and until when."""

    caller: Caller
    expires: datetime
    access_key_id: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True)
class TemporaryCredentials:
    """What STS hands out. ``expires``: to the second, UTC."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires: datetime


CURRENT: ContextVar[Caller] = ContextVar("caller")
"""The caller of the request under way; set once its key, token and clock are admitted."""


class SessionTokens:
    """Makes and reads session tokens under one secret key."""

    def __init__(self, secret_access_key: str) -> None:
        """Take the home's secret key."""
        self._secret = secret_access_key.encode()

    def issue(self, caller: Caller, expires: datetime) -> TemporaryCredentials:
        """New credentials of a caller; no two are the same."""
        fields = [
            caller.role or "",
            caller.session or "",
            int(expires.timestamp()),
            secrets.token_urlsafe(9),
            caller.job or "",
        ]
        content = json.dumps(fields, separators=(",", ":")).encode()
        token = base64.urlsafe_b64encode(self._mac("token", content) + content).decode()
        grant = self._grant(content)
        return TemporaryCredentials(grant.access_key_id, grant.secret_access_key, token, grant.expires)

    def read(self, token: str) -> Grant | None:
        """What a token grants, expired or not; None when it is not one of ours."""
        if len(token) > _MAX_TOKEN:
            return None
        try:
            raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac("token", content)):
            return None
        return self._grant(content)

    def _grant(self, content: bytes) -> Grant:
        role, session, expires, _, job = json.loads(content)
        key_id = base64.b32encode(self._mac("key id", content)).decode()[:_KEY_ID_LETTERS]
        secret = base64.b64encode(self._mac("secret", content)).decode()[:_SECRET_LETTERS]
        moment = datetime.fromtimestamp(expires, timezone.utc)
        return Grant(
            Caller(role or None, session or None, job or None), moment, _KEY_ID_PREFIX + key_id, secret
        )

    def _mac(self, label: str, content: bytes) -> bytes:
        # The label keeps the three apart from each other and from SigV4's own use of the secret.
        return hmac.new(self._secret, f"windtunnel session {label}\0".encode() + content, "sha256").digest()
