"""What a rehearsal ran, whatever is modelled of it."""

from __future__ import annotations

from dataclasses import dataclass

from .full_scale import FullScale


@dataclass(frozen=True)
class RehearsedJob:
    """The job as it was rehearsed, and how large the whole one is.

    ``samples``: trained on in the rehearsal, ``evaluation_samples`` evaluated. ``found``: see `Counted.found`;
    ``as_one_process`` and ``unshared``: see there.
    """

    instance_type: str
    instance_count: int
    samples: int
    evaluation_samples: int = 0
    found: FullScale | str | None = None
    as_one_process: bool = False
    unshared: bool = False

    @property
    def unknown_size(self) -> str:
        """Why a short rehearsal could not tell it."""
        return self.found if isinstance(self.found, str) else ""

    def full_scale(self) -> FullScale:
        """What a short rehearsal found; else exactly what was rehearsed."""
        if isinstance(self.found, FullScale):
            return self.found
        return FullScale(train_samples=max(1, self.samples), evaluation_samples=self.evaluation_samples)
