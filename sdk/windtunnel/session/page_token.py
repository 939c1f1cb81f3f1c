"""The token that lets a browser into the page of the local backend. It is valid once, for a minute.

Anyone who can read the home's credentials.json can make one. The backend checks it (`windtunnel_local.ui.access`).
"""

from __future__ import annotations

import hmac
import secrets
import time
from urllib.parse import quote

from windtunnel.session.local_server import Credentials, RunningBackend

_LABEL = b"windtunnel ui enter\0"  # no other use of the key signs a text that begins so


def page_url(backend: RunningBackend, credentials: Credentials, path: str) -> str:
    """A URL that lets a browser in and redirects it to a path below /ui. Each call gives a new one."""
    token = page_token(credentials.secret_access_key, time.time())
    return f"{backend.endpoint}/ui/enter?token={token}&to={quote(path, safe='/')}"


def page_token(secret_access_key: str, now: float) -> str:
    """``<Unix microseconds>.<nonce>.<MAC>``. ``now``: seconds since 1970."""
    content = f"{int(now * 1_000_000)}.{secrets.token_urlsafe(12)}"
    mac = hmac.new(secret_access_key.encode(), _LABEL + content.encode(), "sha256").hexdigest()
    return f"{content}.{mac}"
