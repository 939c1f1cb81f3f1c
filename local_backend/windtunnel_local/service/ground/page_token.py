"""Page tokens: a position in a list as opaque text, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from windtunnel_local.service.ground.errors import ServiceError


def encode(position: Sequence[Any] | int) -> str:
    """A position, made of what JSON has, as a token."""
    return base64.urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode()


def decode(token: str, refusal: ServiceError) -> Any:
    """What a token holds. A client may have made it, so check that. Raises ``refusal`` if it is no token at all."""
    try:
        return json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise refusal from None
