"""The texts of findings about several cores that do not train one model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_sim.diagnostics.findings import Finding


def no_exchange(line: str, steps: int, cores: int, by_hand: bool = False) -> Finding:
    """Each core trains a model of its own. ``by_hand``: without an optimizer; then ``line`` computes gradients."""
    return Finding(
        "no_exchange",
        "warning",
        line,
        f"{steps} training steps on {cores} cores without an exchange of gradients: each core trains its own model.",
        "Before the script changes its weights, call xm.all_reduce(xm.REDUCE_SUM, [p.grad for p in "
        "model.parameters()], scale=1 / xr.world_size()). Or let an optimizer change them: "
        "xm.optimizer_step(optimizer)."
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
    """Cores of one host do the same work as ``rank``. ``split``: although the loader has a sampler for several cores.
    ``streams``: its data set takes no sampler. ``own``: the loader is not torch's.
    """
    return Finding(
        "same_data",
        "warning",
        line,
        f"{_ranks(others)} got the same first {batches} batches as rank {rank}: more cores train no faster, "
        "unless they share one model's layers (tensor parallelism).",
        "Its sampler can give each core other samples. So either num_replicas and rank of the sampler are not "
        "xr.world_size() and xr.global_ordinal(), or the data set draws its samples at random, and cores with the same "
        "seed draw the same: let a sample follow from its index."
        if split
        else "Its data set is an IterableDataset, which takes no sampler: let its __iter__ give each core a part, for "
        "instance itertools.islice(samples, xr.global_ordinal(), None, xr.world_size())."
        if streams
        else "Let this loader give each core a part of the data, by xr.global_ordinal() and xr.world_size(): with a "
        "DistributedSampler if it takes a sampler; in webdataset with nodesplitter=wds.split_by_node."
        if own
        else "Give the DataLoader sampler=DistributedSampler(dataset, num_replicas=xr.world_size(), "
        "rank=xr.global_ordinal()), and call its set_epoch(epoch) in each epoch.",
    )


def same_gradients(line: str, rank: int, others: Sequence[int], updates: int) -> Finding:
    """Cores of one host do the same work as ``rank``, in a script without a loader."""
    return Finding(
        "same_data",
        "warning",
        line,
        f"{_ranks(others)} exchanged the same gradients as rank {rank} before the first {updates} updates: they train "
        "on the same data, and more cores train no faster.",
        "Give each core a part of the data, by xr.global_ordinal() and xr.world_size(). If the data are drawn at "
        "random, cores with the same seed draw the same: add the ordinal to the seed once the model is made. If each "
        "step trains on all the data, as with one graph, use one core.",
    )


def unequal_weights(line: str, other: int, names: Sequence[str], rank: int) -> Finding:
    """Two cores that sum their gradients have different weights. ``names``: of the weights that differ."""
    return Finding(
        "unequal_weights",
        "warning",
        line,
        f"ranks {rank} and {other} sum their gradients, but their weights differ ({_last_of(names)}): each core drew "
        "its own initial weights, and trains them with gradients of other weights.",
        "Call torch.manual_seed(...) (transformers: set_seed) before the model is made, or "
        "xm.broadcast_master_param(model) once it is on the device. If each core holds a part of one model, this is "
        "right as it is.",
    )


def running_statistics(line: str, other: int, names: Sequence[str], rank: int) -> Finding:
    """Two cores that train one model have other running statistics. ``names``: of the modules whose differ."""
    return Finding(
        "running_statistics",
        "note",
        line,
        f"ranks {rank} and {other} end with other running statistics of BatchNorm ({_last_of(names)}), each with those "
        "of its own batches, here and on trn1. If the script does not make them equal before it evaluates and saves, "
        "each core evaluates with its own, and a saved model has those of one core. On GPUs, "
        "DistributedDataParallel sends rank 0's to all with each forward pass.",
        "Before evaluating and before saving, call xm.all_reduce(xm.REDUCE_SUM, [b for b in model.buffers() if "
        "b.is_floating_point()], scale=1 / xr.world_size()), or xm.broadcast_master_param(model).",
    )


def _ranks(others: Sequence[int]) -> str:
    return f"rank {others[0]}" if len(others) == 1 else f"{len(others)} other ranks"


def _last_of(names: Sequence[str]) -> str:
    return names[-1] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
