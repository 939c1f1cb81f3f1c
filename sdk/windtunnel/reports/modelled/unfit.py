"""Why a job does not fit the memory, and what may make it fit."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import DescribedWorkload, Estimate, Workload
from windtunnel.priceperf.workload.splits import batch_that_divides
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.labels import label


def does_not_fit(items: Sequence[Estimate], workload: Workload) -> str:
    """What it needs of each, after "the job"."""
    each = [
        f"{label(item)} ({fmt.gibibytes(need.needed_bytes)} of {fmt.gibibytes(need.usable_bytes)} a worker)"
        for item in items
        if (need := item.memory) is not None
    ]
    described = workload if isinstance(workload, DescribedWorkload) else None
    # What is rehearsed has no options that describe it.
    search = " (windtunnel plan searches)" if described and workload.rehearsed is None else ""
    if described and all(described.there(item.instance).is_split_open for item in items):
        undivided = [item for item in items if _is_whole_copies(item)]
        if undivided:
            batch = ", ".join(
                f"{batch_that_divides(item.global_batch, item.cores):,} on {label(item)}"
                for item in undivided
            )
            return (
                f"does not fit the memory as a copy on each worker, and no split divides its global batch of "
                f"{undivided[0].global_batch:,.10g}: try {batch}."
            )
        nodes = " (--nodes)" if workload.rehearsed is None else ""
        return (
            f"does not fit the memory of {', '.join(each)}, however it is split. More instances{nodes}, a larger "
            f"memory or shorter sequences may make it fit{search}."
        )
    whole = any(item.training is not None and item.training.zero == "none" for item in items)
    options = " (--zero optimizer, --zero full)" if workload.rehearsed is None else ""
    share = f"sharing the optimizer's state or the weights{options}, " if whole else ""
    return (
        f"does not fit the memory of {', '.join(each)}. More instances, {share}more tensor or pipeline parallelism, "
        f"recomputation or a smaller microbatch may make it fit{search}."
    )


def _is_whole_copies(item: Estimate) -> bool:
    """Where the split is open and they do not fit, no split shares the batch evenly."""
    training = item.training
    return training is not None and training.zero == "none" and training.data_parallel == item.cores > 1
