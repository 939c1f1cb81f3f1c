"""Why a job does not fit the memory, and what may make it fit."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import DescribedWorkload, Estimate, Workload
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.labels import label


def does_not_fit(items: Sequence[Estimate], workload: Workload) -> str:
    """How much memory the job needs on each instance, and what may help; continues a sentence with "the job"."""
    each = [
        f"{label(item)} ({fmt.gibibytes(need.needed_bytes)} of {fmt.gibibytes(need.usable_bytes)} a worker)"
        for item in items
        if (need := item.memory) is not None
    ]
    described = workload if isinstance(workload, DescribedWorkload) else None
    # A rehearsed job has no options that describe it.
    search = " (windtunnel plan searches)" if described and workload.rehearsed is None else ""
    alone = all(item.instance.trains_alone for item in items)
    more = "A larger instance" if alone else "More instances"
    if described and all(described.there(item.instance).is_split_open for item in items):
        nodes = " (--nodes, or TYPE=N)" if workload.rehearsed is None and not alone else ""
        return (
            f"does not fit the memory of {', '.join(each)}, however it is split. {more}{nodes}, a larger memory or "
            f"shorter sequences may make it fit{search}."
        )
    whole = any(item.training is not None and item.training.zero == "none" for item in items)
    options = " (--zero optimizer, --zero full)" if workload.rehearsed is None else ""
    share = f"sharing the optimizer's state or the weights{options}, " if whole else ""
    return (
        f"does not fit the memory of {', '.join(each)}. {more}, {share}more tensor or pipeline parallelism, "
        f"recomputation or a smaller microbatch may make it fit{search}."
    )
