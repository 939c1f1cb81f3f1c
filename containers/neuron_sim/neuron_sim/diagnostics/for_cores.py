"""The words of findings of several cores that do not train one model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_sim.diagnostics.findings import Finding


def no_exchange(line: str, steps: int, cores: int, by_hand: bool = False) -> Finding:
    """Each core trains a model of its own. ``by_hand``: without an optimizer; then the line computes gradients."""
    return Finding(
        "no_exchange",
        "warning",
        line,
        f"{steps} training steps on {cores} cores and no exchange of gradients: each core trains a model of its own.",
        "Before the script changes its weights: xm.all_reduce(xm.REDUCE_SUM, [p.grad for p in model.parameters()], "
        "scale=1 / xr.world_size()). Or let an optimizer change them: xm.optimizer_step(optimizer)."
        if by_hand
        else "Call xm.optimizer_step(optimizer) instead of optimizer.step(), or wrap the model: "
        "DistributedDataParallel(model, gradient_as_bucket_view=True).",
        steps,
    )


def same_data(
    line: str,
    rank: int,
    others: Sequence[int],
    batches: int,
    *,
    split: bool = False,
    streams: bool = False,
    own: bool = False,
) -> Finding:
    """Cores of the host of ``rank`` do the same work. ``split``: though the loader has a sampler for several.
    ``streams``: its data set takes none. ``own``: the loader is not torch's.
    """
    return Finding(
        "same_data",
        "warning",
        line,
        f"{_ranks(others)} got the same first {batches} batches as rank {rank}: more cores train no faster, "
        "unless they share one model's layers (tensor parallelism).",
        "Its sampler is one that shares the samples out: what the data set draws at random is the same on cores with "
        "the same seed, so let it follow from the sample's index; or the sampler's num_replicas and rank are not "
        "xr.world_size() and xr.global_ordinal()."
        if split
        else "Its data set is an IterableDataset, which takes no sampler: let its __iter__ give each core a part, as "
        "itertools.islice(samples, xr.global_ordinal(), None, xr.world_size())."
        if streams
        else "Let this loader give each core a part of the data, by xr.global_ordinal() and xr.world_size(): with a "
        "DistributedSampler where it takes a sampler, with nodesplitter=wds.split_by_node in webdataset."
        if own
        else "Give the DataLoader sampler=DistributedSampler(dataset, num_replicas=xr.world_size(), "
        "rank=xr.global_ordinal()), and each epoch call its set_epoch(epoch).",
    )


def same_gradients(line: str, rank: int, others: Sequence[int], updates: int) -> Finding:
    """Cores of the host of ``rank`` do the same work, in a script without a loader."""
    return Finding(
        "same_data",
        "warning",
        line,
        f"{_ranks(others)} exchanged the same gradients as rank {rank} before the first {updates} updates: they train "
        "on the same data, and more cores train no faster.",
        "Give each core a part of the data, by xr.global_ordinal() and xr.world_size(); what is drawn at random is the "
        "same on cores with the same seed, so add the ordinal to it once the model is made. What is trained whole in "
        "each step, as one graph is, needs one core.",
    )


def unequal_weights(line: str, other: int, names: Sequence[str], rank: int) -> Finding:
    """Two cores that sum their gradients have other weights. ``names``: of those."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Finding(
        "unequal_weights",
        "warning",
        line,
        f"ranks {rank} and {other} sum their gradients, and have other weights ({names[-1]}{more}): each core drew its "
        "first ones by itself, and trains them with the gradients of others.",
        "Call torch.manual_seed(...) (transformers: set_seed) before the model is made, or "
        "xm.broadcast_master_param(model) once it is on the device. Right as it is where each core holds a part of "
        "one model.",
    )


def _ranks(others: Sequence[int]) -> str:
    return f"rank {others[0]}" if len(others) == 1 else f"{len(others)} other ranks"
