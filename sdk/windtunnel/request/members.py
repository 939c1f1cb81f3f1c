"""Optional members of a request, which are left out where nothing was given."""

from __future__ import annotations

from typing import Any


def only_given(**members: Any) -> dict[str, Any]:
    """The members that are not None: AWS refuses a member that is null."""
    return {key: value for key, value in members.items() if value is not None}
