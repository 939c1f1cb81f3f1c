"""What every list of SageMaker's can be asked for: filters, order and page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """Times are bounds of creation and of the last change."""

    name_contains: str | None = None
    status: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    sort_by: Literal["Name", "CreationTime", "Status"] = "CreationTime"
    sort_order: Literal["Ascending", "Descending"] = "Descending"
    limit: int = 10
    token: str | None = None
