"""The size of a job that was rehearsed in short, from what its loaders showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .counters import Input, Loader
from .full_scale import FullScale


def found_scale(seen: Input, world_size: int) -> FullScale | str:
    """The whole job, or why it cannot be told. ``world_size``: of the rehearsal, by which its loaders split."""
    loaders = _by_line(seen.loaders)
    trained = [loader for loader in loaders if loader.trains]
    if not trained:
        return "its training batches come from no loader"
    sizes = []
    for loader in trained:
        batches = _batches(loader, ended_early=seen.ended_early)
        if batches is None:
            return _why(loader)
        sizes.append(batches)
    first = trained[0]
    whole_passes = len(trained) == 1 and sizes[0] == (first.batches or 0) * first.passes
    epochs = first.passes if whole_passes else 1
    samples = sum(size * loader.samples for size, loader in zip(sizes, trained, strict=True)) * world_size
    evaluated = [loader for loader in loaders if not loader.trains]
    return FullScale(
        train_samples=max(1, samples // epochs),
        epochs=epochs,
        evaluation_samples=sum(_evaluated(loader, world_size) for loader in evaluated) // epochs,
        evaluation_split=not evaluated or any(loader.split for loader in evaluated),
        sequence_length=max((loader.sequence_length or 0 for loader in trained), default=0) or None,
    )


def _by_line(loaders: Sequence[Loader]) -> list[Loader]:
    """One for each loop: some scripts make the loader anew for each pass."""
    found: dict[str, Loader] = {}
    for loader in loaders:
        before = found.get(loader.line)
        if before is not None:
            loader = replace(
                loader,
                passes=before.passes + loader.passes,
                taken=before.taken + loader.taken,
                trains=before.trains or loader.trains,
                bound=loader.bound if before.bound is None else before.bound,
            )
        found[loader.line] = loader
    return list(found.values())


def _batches(loader: Loader, *, ended_early: bool) -> int | None:
    """That a core would take in the whole job."""
    if loader.left and not ended_early:
        return loader.taken  # the script counts its batches itself, and has had all that it wanted
    whole = None if loader.batches is None or ended_early else loader.batches * loader.passes
    if loader.bound is None:
        return whole
    return loader.bound if whole is None else min(whole, loader.bound)


def _evaluated(loader: Loader, world_size: int) -> int:
    batches = loader.taken if loader.batches is None else loader.batches * loader.passes
    return batches * loader.samples * (world_size if loader.split else 1)


def _why(loader: Loader) -> str:
    if loader.batches is None:
        return f"the loader of {loader.line} does not tell its length"
    return f"the loop of {loader.line} does not tell how often it runs"
