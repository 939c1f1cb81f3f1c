"""The parameters that all of SageMaker's List operations share: filters, order and page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """Parameters of a List operation. Times bound the creation and the last change; ``limit``: items on a page."""

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
