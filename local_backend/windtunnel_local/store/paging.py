"""Page tokens: where the next page begins."""

from __future__ import annotations

from dataclasses import dataclass

from windtunnel_local.service.ground import page_token
from windtunnel_local.service.ground.errors import ValidationFailed

Value = str | int | float | None


@dataclass(frozen=True)
class PageToken:
    """The last row of a page. The next page starts after it, even if rows were added meanwhile."""

    order: str
    value: Value
    name: str

    def encode(self) -> str:
        """The token as opaque text."""
        return page_token.encode([self.order, self.value, self.name])


def decode_token(text: str, order: str, kinds: tuple[type, ...]) -> PageToken:
    """Decode a token that this server gave out for the same order.

    Raises:
        ValidationFailed: the text is no such token, or its value is of none of the types (``kinds``) of this order.
    """
    unknown = ValidationFailed("NextToken is not one that this service gave out.")
    try:
        given_order, value, name = page_token.decode(text, unknown)
        typed = isinstance(name, str) and type(value) in kinds and _storable(value) and _storable(name)
    except (ValueError, TypeError):
        raise unknown from None
    if given_order != order or not typed:
        raise ValidationFailed("NextToken belongs to a list in another order; repeat SortBy and SortOrder.")
    return PageToken(order, value, name)


def _storable(value: Value) -> bool:
    """Whether SQLite can compare with the value."""
    if isinstance(value, str):
        value.encode()  # a lone surrogate raises UnicodeEncodeError, a ValueError
    return not isinstance(value, int) or abs(value) < 1 << 62
