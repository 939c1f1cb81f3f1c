"""Members of a request that are only there where something was given for them."""

from __future__ import annotations

from typing import Any


def only_given(**members: Any) -> dict[str, Any]:
    """Those that are not None: AWS refuses a member that is null."""
    return {key: value for key, value in members.items() if value is not None}
