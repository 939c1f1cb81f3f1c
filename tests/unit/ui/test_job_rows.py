"""A job as a row of a list."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from windtunnel_local.ui.pages.jobs import row_of

ENDED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("pool", "until"),
    [("Available", ENDED + timedelta(minutes=10)), ("Reused", None), ("InUse", None), (None, None)],
)
def test_a_pool_that_waits_says_until_when(pool: str | None, until: datetime | None) -> None:
    """Of others nothing ends."""
    job: dict[str, Any] = {
        "TrainingJobName": "one",
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "SecondaryStatusTransitions": [{"Status": "Completed", "StartTime": ENDED}],
        "ResourceConfig": {
            "InstanceType": "ml.trn1.2xlarge",
            "InstanceCount": 1,
            "KeepAlivePeriodInSeconds": 600,
        },
        "CreationTime": ENDED,
        "LastModifiedTime": ENDED,
        "TrainingEndTime": ENDED,
    }
    if pool is not None:
        job["WarmPoolStatus"] = {"Status": pool}
    assert row_of(job).pool_until == until
