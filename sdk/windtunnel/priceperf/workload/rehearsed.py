"""What a rehearsal ran, whether it is modelled by its counts or by its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .full_scale import FullScale

DESCRIBED = FullScale(1, 1, 0, evaluation_split=True)
"""What a caller leaves out of the size of a job that was only described; its samples must be given."""
_OF_AN_EPOCH = {"epochs", "evaluation_samples", "evaluation_split"}


@dataclass(frozen=True)
class RehearsedJob:
    """The job as it was rehearsed, and the size of the whole job.

    ``samples``: how many the rehearsal trained on. For the others see `Counted`.
    """

    instance_type: str
    instance_count: int
    samples: int
    evaluation_samples: int = 0
    found: FullScale | str | None = None
    as_one_process: bool = False
    unshared: bool = False
    evaluation_split: bool = True

    @property
    def unknown_size(self) -> str:
        """Why a short rehearsal does not show the size of the whole job; empty if it does."""
        return self.found if isinstance(self.found, str) else ""

    def full_scale(self) -> FullScale:
        """The size that a short rehearsal found; otherwise exactly what was rehearsed."""
        if isinstance(self.found, FullScale):
            return self.found
        return FullScale(
            max(1, self.samples), 1, self.evaluation_samples, evaluation_split=self.evaluation_split
        )

    def completed(self, stated: FullScale) -> FullScale:
        """The size that a caller states; what is not given is as the rehearsal found it."""
        if isinstance(self.found, FullScale):
            return stated.filled(self.found)
        if stated.evaluation_samples is None and self.found is None:
            return stated.filled(self.full_scale())
        return stated.filled(replace(DESCRIBED, evaluation_split=self.evaluation_split))

    def stating(self, given: Mapping[str, Any]) -> FullScale | None:
        """The size with these fields as a caller states them; the others stay as the rehearsal found them, maybe only
        after `completed`.

        None: the caller must state ``train_samples`` too, as nothing else tells how many samples an epoch has.
        """
        if isinstance(self.found, FullScale):
            return replace(self.found, **given)
        if "train_samples" in given:
            return FullScale(**given)
        return None if self.found or _OF_AN_EPOCH & given.keys() else replace(self.full_scale(), **given)


def stating(job: RehearsedJob | None, given: Mapping[str, Any]) -> FullScale | None:
    """As `RehearsedJob.stating`; with no rehearsal (None) all that is not given has its default."""
    if job is not None:
        return job.stating(given)
    return FullScale(**given) if "train_samples" in given else None
