"""The size of a job that was rehearsed in short, from what its loaders showed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..instances import instance_type
from .cluster import Cluster
from .counted_input import Input, Loader
from .counters import Counters
from .full_scale import FullScale


def found_in_short(told: Counters, world_size: int) -> FullScale | str | None:
    """The size of the whole job, or why it cannot be told; None: it was no short rehearsal."""
    if told.input is None or told.input.rehearsed_steps is None:
        return None
    workers = Cluster(instance_type(told.instance_type), told.instance_count).workers
    if told.as_one_process:
        workers = 1  # cores that are not used make none of the steps that a count of the script's asks for
    # A sampler splits, and a count of steps asks, for copies of the model.
    copies = max(1, world_size // told.cores_of_a_copy)
    found = found_scale(told.input, copies, max(1, workers // told.cores_of_a_copy))
    if told.as_one_process and isinstance(found, FullScale):
        # One process has no sampler, and all of its work is shared out.
        return replace(found, evaluation_split=True)
    return found


def found_scale(seen: Input, world_size: int, workers: int | None = None) -> FullScale | str:
    """The whole job, or why it cannot be told.

    Args:
        seen: what the loaders showed.
        world_size: of the rehearsal, by which its loaders split.
        workers: of the whole job; None: as many. Each of them makes the steps that a count of the script's asks
            for, and goes over all of what is not split.
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
    most = max(range(len(sizes)), key=sizes.__getitem__)  # others may warm up, or try learning rates
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
        evaluation_split=not evaluated or any(loader.split for loader in evaluated),
        sequence_length=max((loader.sequence_length or 0 for loader in trained), default=0) or None,
    )


def _as_left(loader: Loader, *, ended_early: bool) -> Loader:
    """As left only where the script left a pass, and was not ended in it while its loop is known to go on."""
    knows_more = loader.planned is not None and loader.passes > 1 and loader.left_after is None
    return replace(loader, left=loader.left and not (ended_early and knows_more))


def _as_planned(loader: Loader) -> Loader:
    """With the passes of the loop around them: a script that stops when a metric improves no more does so early in a
    rehearsal, in which it cannot improve.
    """
    is_counted = loader.bound is not None or loader.bound_between is not None
    if is_counted or loader.left:
        return loader
    return replace(loader, passes=max(loader.passes, loader.planned or 0))


def _by_line(loaders: Sequence[Loader]) -> list[Loader]:
    """One for each loop that trains, or evaluates: some scripts make the loader anew for each pass.

    A function that evaluates may be given several loaders, of other lengths: these are several.
    """
    found: dict[tuple[object, ...], Loader] = {}
    for loader in loaders:
        place = (loader.line, *((True,) if loader.trains else (False, loader.batches, loader.last)))
        found[place] = _joined(found[place], loader) if place in found else loader
    return list(found.values())


def _joined(before: Loader, after: Loader) -> Loader:
    """Two loaders of one loop. A count that goes on has less left in the second; one that began again, as much."""
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
    """Why the size of a loop cannot be told, if so."""
    total = loader.bound if loader.bound is not None else loader.bound_between
    if loader.wrapped == "zip" or (loader.wrapped is not None and total is None):
        return f"the loop of {loader.line} goes through {loader.wrapped}()"
    if loader.inside and loader.every is None:
        return f"the loop of {loader.line}, within one that trains, does not tell how often it runs"
    if loader.trains and total is not None:
        return None
    is_open = ended_early and (loader.planned is None or (loader.passes == 1 and loader.left))
    if loader.trains and (is_open or (loader.left and loader.passes > 1)):
        # Passes that were cut short are more, or fewer, than the script would have made.
        return f"the loop of {loader.line} does not tell how often it runs"
    if loader.batches is None and not (loader.left and loader.passes == 1) and _limit(loader) is None:
        return f"the loader of {loader.line} does not tell its length"
    return None


def _limit(loader: Loader) -> int | None:
    """Batches after which the script leaves each pass, if it does."""
    limits = [value for value in (loader.left_after, loader.bound_of_pass) if value is not None]
    if loader.left and loader.passes == 1 and loader.bound is None:
        limits.append(loader.taken)  # the script has had all that it wanted
    return min(limits, default=None)


def _held(loader: Loader) -> int:
    """Samples of a whole pass of one core."""
    whole = (loader.batches or 0) * loader.samples
    return whole if loader.last is None or not whole else whole - loader.samples + loader.last


def _of_pass(loader: Loader, world_size: int, workers: int) -> int | None:
    """Samples that all workers take in one pass."""
    limit = _limit(loader)
    sizes = [] if limit is None else [limit * loader.samples * workers]
    if loader.batches is not None:
        sizes.append(_held(loader) * (world_size if loader.split else workers))
    return min(sizes, default=None)


def _samples(loader: Loader, world_size: int, workers: int, *, ended_early: bool) -> int:
    """That all workers take in the whole job."""
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
    """Samples of one pass. Where they are not split, those of one worker."""
    limits = [limit * loader.samples for limit in (_limit(loader), loader.bound) if limit is not None]
    samples = min([*limits, *([] if loader.batches is None else [_held(loader)])])
    return samples * (world_size if loader.split else 1)


def _times(
    loader: Loader, first: Loader, rehearsed: int, real: int, batches: float, *, ended_early: bool
) -> float:
    """Passes of an evaluation in the whole job, which goes ``real`` times over its training samples."""
    after = loader.passes - loader.inside
    # In the same loop, after some of its passes.
    within = loader.planned is not None and loader.planned == first.planned
    if ended_early and rehearsed > 1 and after % rehearsed and (within or after % (rehearsed - 1) == 0):
        rehearsed -= 1  # ended within a pass of training, before the evaluation after it
    scaled = after if after < rehearsed and not within else after * real / rehearsed
    return scaled + (batches // loader.every if loader.every else 0)
