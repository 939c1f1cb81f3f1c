"""Access to the page: a one-time token in a URL, the session cookie it is exchanged for, and the CSRF token of forms.

All are MACs under the home's secret key, each with a label of its own, and stored nowhere. They end when they expire,
or with the key. The SDK makes the URL's token (`windtunnel.session.page_token`), as whoever can read credentials.json
may see the page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

TOKEN_S = 60.0
SESSION = timedelta(hours=12)
_AHEAD_S = 5.0  # both ends read the same clock, but it may be set back a little meanwhile
_MAC_BYTES = hashlib.sha256().digest_size
_LONGEST = 300


@dataclass(frozen=True)
class Session:
    """A browser's session. ``csrf``: the CSRF token that each of its forms must send."""

    csrf: str
    expires: datetime


class Access:
    """Accepts one-time tokens, makes and reads cookies. Thread-safe. ``now``: Unix seconds."""

    def __init__(self, secret_access_key: str, now: float) -> None:
        """``now``: the server's start. Older tokens are refused: an earlier server may have accepted them already."""
        self._secret = secret_access_key.encode()
        self._since = now
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}

    def spend(self, token: str, now: float) -> bool:
        """Accept a URL's token once: returns whether it is ours, younger than `TOKEN_S` and was not accepted before."""
        content, _, mac = token.rpartition(".")
        if len(token) > _LONGEST or not hmac.compare_digest(
            mac.encode(), self._mac("enter", content.encode()).hex().encode()
        ):
            return False
        made, _, nonce = content.partition(".")
        issued = int(made) / 1_000_000
        if not max(now - TOKEN_S, self._since) <= issued <= now + _AHEAD_S:
            return False
        with self._lock:
            self._spent = {spent: end for spent, end in self._spent.items() if end > now}
            if nonce in self._spent:
                return False
            self._spent[nonce] = issued + TOKEN_S + _AHEAD_S
        return True

    def cookie(self, now: float) -> str:
        """The cookie of a new session, different at each call."""
        content = f"{int(now + SESSION.total_seconds())}.{secrets.token_urlsafe(9)}".encode()
        return base64.urlsafe_b64encode(self._mac("session", content) + content).decode().rstrip("=")

    def session(self, cookie: str, now: float) -> Session | None:
        """The session of a cookie; None if the cookie is not ours, or has expired."""
        try:
            padded = cookie.encode("ascii") + b"=" * (-len(cookie) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True) if len(cookie) <= _LONGEST else b""
        except (UnicodeEncodeError, binascii.Error):
            return None
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac("session", content)):
            return None
        expires = int(content.partition(b".")[0])
        if expires <= now:
            return None
        return Session(self._mac("form", content).hex(), datetime.fromtimestamp(expires, timezone.utc))

    def _mac(self, label: str, content: bytes) -> bytes:
        # The label makes the MACs differ from each other, from those of STS and from SigV4's use of the secret.
        return hmac.new(self._secret, f"windtunnel ui {label}\0".encode() + content, "sha256").digest()
