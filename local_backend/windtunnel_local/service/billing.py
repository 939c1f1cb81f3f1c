"""The billable time of a job, by SageMaker's rules."""

from __future__ import annotations

import math

from windtunnel_local.service.model import Lifecycle


def billable_seconds(lifecycle: Lifecycle) -> int | None:
    """Whole seconds of wall clock of ONE instance, from download to the end of upload.

    A started second counts. None: not known yet (the job runs), or nothing to bill
    (the job ended before its download began).
    """
    if lifecycle.training_start is None or lifecycle.training_end is None:
        return None
    return max(1, math.ceil((lifecycle.training_end - lifecycle.training_start).total_seconds()))
