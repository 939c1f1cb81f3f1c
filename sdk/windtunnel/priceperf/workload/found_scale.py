"""The size of the whole job after a short rehearsal, from what its data loaders showed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..instances import instance_type
from .cluster import Cluster
from .counted_input import Input, Loader
from .counters import Counters
from .full_scale import FullScale


def found_in_short(counters: Counters, world_size: int) -> FullScale | str | None:
    """The size of the whole job, or a sentence why it is not known; None: it was no short rehearsal."""
    if counters.input is None or counters.input.rehearsed_steps is None:
        return None
    workers = Cluster(instance_type(counters.instance_type), counters.instance_count).workers
    if counters.as_one_process:
        workers = 1  # unused cores make none of the steps that the script counts
    # A sampler splits the data over copies of the model, and the script's count of steps is for each copy.
    copies = max(1, world_size // counters.cores_of_a_copy)
    found = found_scale(counters.input, copies, max(1, workers // counters.cores_of_a_copy))
    if counters.as_one_process and isinstance(found, FullScale):
        # One process evaluates without a sampler, but the model spreads all of its work over the cores.
        return replace(found, evaluation_split=True)
    return found


def found_scale(seen: Input, world_size: int, workers: int | None = None) -> FullScale | str:
    """The size of the whole job, or a sentence why it is not known.

    Args:
        seen: what the loaders showed.
        world_size: processes of the rehearsal, over which its loaders split the data.
        workers: workers of the whole job; None: ``world_size``. Each makes all steps that the script counts, and
            reads all data of a loader that is not split.
    """
    if not (seen.loaders or seen.ended_early):
        return "the rehearsal was stopped before its end"
    loaders = [_as_left(loader, ended_early=seen.ended_early) for loader in _by_line(seen.loaders)]
    trained = [loader for loader in loaders if loader.trains]
    evaluated = [loader for loader in loaders if not loader.trains]
    if not trained:
        return "its training batches come from no loader"
    for loader in loaders:
        why = _why(loader, ended_early=seen.ended_early)
        if why is not None:
            return why
    workers = workers or world_size
    for loader in trained:
        if not (loader.samples and loader.passes) or _of_pass(loader, world_size, workers) == 0:
            return f"the loader of {loader.line} trains, and says that it holds nothing"
    passes = {loader.line: loader.passes for loader in trained}
    trained = [_as_planned(loader) for loader in trained]
    sizes = [_samples(loader, world_size, workers, ended_early=seen.ended_early) for loader in trained]
    most = max(range(len(sizes)), key=sizes.__getitem__)  # the other loops may warm up, or try learning rates
    first = trained[most]
    rehearsed = passes[first.line]
    a_pass = _of_pass(first, world_size, workers)
    real = 1.0 if a_pass is None else max(1.0, sizes[most] / a_pass)
    epochs = first.passes if len(trained) == 1 and real == first.passes else 1
    batches = sizes[most] / (first.samples * workers)
    evaluation = sum(
        _evaluated(loader, world_size)
        * _times(loader, first, rehearsed, math.ceil(real), batches, ended_early=seen.ended_early)
        for loader in evaluated
    )
    return FullScale(
        train_samples=max(1, sum(sizes) // epochs),
        epochs=epochs,
        evaluation_samples=round(evaluation / epochs),
        evaluation_split=seen.evaluation_split,
        sequence_length=max((loader.sequence_length or 0 for loader in trained), default=0) or None,
    )


def _as_left(loader: Loader, *, ended_early: bool) -> Loader:
    """Clear ``left`` if the rehearsal, not the script, ended the latest pass: the loop is known to go on."""
    knows_more = loader.planned is not None and loader.passes > 1 and loader.left_after is None
    return replace(loader, left=loader.left and not (ended_early and knows_more))


def _as_planned(loader: Loader) -> Loader:
    """Take the passes of the loop around it, if they are more: a script that stops when a metric no longer improves
    stops too early in a rehearsal, which trains too little to improve it.
    """
    is_counted = loader.bound is not None or loader.bound_between is not None
    if is_counted or loader.left:
        return loader
    return replace(loader, passes=max(loader.passes, loader.planned or 0))


def _by_line(loaders: Sequence[Loader]) -> list[Loader]:
    """Join the loaders of one line of the script: some scripts create the loader again for each pass.

    An evaluating function may be called with several loaders; those of different lengths stay apart.
    """
    found: dict[tuple[object, ...], Loader] = {}
    for loader in loaders:
        place = (loader.line, *((True,) if loader.trains else (False, loader.batches, loader.last)))
        found[place] = _joined(found[place], loader) if place in found else loader
    return list(found.values())


def _joined(before: Loader, after: Loader) -> Loader:
    """Join two loaders of one loop. If the second has as large a bound, the script's count starts again in each pass;
    if it has a smaller one, the count goes on.
    """
    bound, of_pass = before.bound, before.bound_of_pass
    if bound is not None and after.bound is not None and after.bound >= bound:
        bound, of_pass = None, bound
    return replace(
        before,
        batches=after.batches,
        passes=before.passes + after.passes,
        taken=before.taken + after.taken,
        left=after.left,
        left_after=before.taken if before.left and before.passes == 1 else before.left_after,
        bound=bound,
        bound_of_pass=of_pass,
        inside=before.inside + after.inside,
        every=before.every if before.every is not None else after.every,
        planned=max((n for n in (before.planned, after.planned) if n is not None), default=None),
    )


def _why(loader: Loader, *, ended_early: bool) -> str | None:
    """Why the size of a loop is not known; None: it is."""
    total = loader.bound if loader.bound is not None else loader.bound_between
    if loader.wrapped == "zip" or (loader.wrapped is not None and total is None):
        return f"the loop of {loader.line} goes through {loader.wrapped}()"
    if loader.inside and loader.every is None:
        return f"the loop of {loader.line}, within one that trains, does not tell how often it runs"
    if loader.trains and total is not None:
        return None
    is_open = ended_early and (loader.planned is None or (loader.passes == 1 and loader.left))
    if loader.trains and (is_open or (loader.left and loader.passes > 1)):
        # The rehearsal cut passes short, so the script may have made more or fewer of them than it would.
        return f"the loop of {loader.line} does not tell how often it runs"
    if loader.batches is None and not (loader.left and loader.passes == 1) and _limit(loader) is None:
        return f"the loader of {loader.line} does not tell its length"
    return None


def _limit(loader: Loader) -> int | None:
    """Batches after which the script leaves each pass; None: it reads whole passes."""
    limits = [value for value in (loader.left_after, loader.bound_of_pass) if value is not None]
    if loader.left and loader.passes == 1 and loader.bound is None:
        limits.append(loader.taken)  # the script left its only pass by itself
    return min(limits, default=None)


def _held(loader: Loader) -> int:
    """Samples of one core in a whole pass; 0 if the loader does not say its length."""
    whole = (loader.batches or 0) * loader.samples
    return whole if loader.last is None or not whole else whole - loader.samples + loader.last


def _of_pass(loader: Loader, world_size: int, workers: int) -> int | None:
    """Samples that all workers train on in one pass; None: not known."""
    limit = _limit(loader)
    sizes = [] if limit is None else [limit * loader.samples * workers]
    if loader.batches is not None:
        sizes.append(_held(loader) * (world_size if loader.split else workers))
    return min(sizes, default=None)


def _samples(loader: Loader, world_size: int, workers: int, *, ended_early: bool) -> int:
    """Samples that all workers train on in the whole job."""
    a_pass = _of_pass(loader, world_size, workers)
    step = loader.samples * workers
    sizes = [] if loader.bound is None else [loader.bound * step]
    if loader.bound_between is not None:
        whole = loader.bound_between * step
        sizes.append(whole if a_pass is None else math.ceil(whole / a_pass) * a_pass)
    if a_pass is not None and not (sizes and (ended_early or loader.decides or loader.wrapped)):
        sizes.append(a_pass * loader.passes)
    return min(sizes)


def _evaluated(loader: Loader, world_size: int) -> int:
    """Samples of one evaluation pass of all workers; of one worker, if the loader is not split."""
    limits = [limit * loader.samples for limit in (_limit(loader), loader.bound) if limit is not None]
    samples = min([*limits, *([] if loader.batches is None else [_held(loader)])])
    return samples * (world_size if loader.split else 1)


def _times(
    loader: Loader, first: Loader, rehearsed: int, real: int, batches: float, *, ended_early: bool
) -> float:
    """Passes of an evaluation in the whole job, which makes ``real`` passes over its training samples."""
    after = loader.passes - loader.inside
    # Whether it evaluates in the same outer loop as the training, after some of its passes.
    within = loader.planned is not None and loader.planned == first.planned
    if ended_early and rehearsed > 1 and after % rehearsed and (within or after % (rehearsed - 1) == 0):
        rehearsed -= 1  # the rehearsal ended in a training pass, before the evaluation that follows it
    scaled = after if after < rehearsed and not within else after * real / rehearsed
    return scaled + (batches // loader.every if loader.every else 0)
