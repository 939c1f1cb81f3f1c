"""Page tokens: where the next page begins."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from windtunnel_local.service.ground.errors import ValidationFailed

Value = str | int | float | None


@dataclass(frozen=True)
class PageToken:
    """The last row of a page. A next page starts behind it, whatever was added meanwhile."""

    order: str
    value: Value
    name: str

    def encode(self) -> str:
        """Opaque text."""
        data = json.dumps([self.order, self.value, self.name], separators=(",", ":"))
        return base64.urlsafe_b64encode(data.encode()).decode()


def decode_token(text: str, order: str, kinds: tuple[type, ...]) -> PageToken:
    """A token that we gave out for the same order.

    Raises:
        ValidationFailed: it is not one, or its value is not of the kinds that the order sorts by.
    """
    try:
        given_order, value, name = json.loads(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
        typed = isinstance(name, str) and type(value) in kinds and _storable(value) and _storable(name)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise ValidationFailed("NextToken is not one that this service gave out.") from None
    if given_order != order or not typed:
        raise ValidationFailed("NextToken belongs to a list in another order; repeat SortBy and SortOrder.")
    return PageToken(order, value, name)


def _storable(value: Value) -> bool:
    """Whether SQLite can compare with it."""
    if isinstance(value, str):
        value.encode()  # UnicodeEncodeError, a ValueError: no text of ours
    return not isinstance(value, int) or abs(value) < 1 << 62
