"""What a counters.json holds of the script's loaders; `counters` has the rest."""

from __future__ import annotations

from dataclasses import dataclass

from .strict_reader import Shown


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A loader that the script went over. Batches are those of one core.

    Of a script that loops over none: what it trains on, a batch a step, in loops that end by a count (``bound``).

    Attributes:
        line: of the script's loop over it.
        batches: of a whole pass; None: the loader does not say.
        samples: of a batch.
        last: of the last batch of a pass; None: the loader does not say.
        split: each core goes through a part of the data set of its own.
        sequence_length: tokens of a sample; None: the batches hold none.
        passes: how often the script began to go over it.
        planned: how often the ``for … in range(…)`` around it, and those around that, would, which the script may leave
            before; None: there is none, or a loop of another kind is around it.
        taken: batches that its loop got.
        trains: gradients were computed from them.
        left: the script left the latest pass before its end.
        left_after: batches of the first pass, where the script left it before its end and then began another.
        bound: batches after which a count of the script's own would end the loop; None: none was read.
        bound_of_pass: the same, of a count that begins again in each pass.
        bound_between: the same, of a count that is only looked at between passes.
        decides: the script goes over the loader until a bound is reached, as ``while step < max_steps`` does.
        wrapped: ``zip``, or what of itertools the loop goes through; None: neither.
        inside: passes that began within a loop that trains.
        every: batches of that loop from one of these to the next; None: not known.
    """

    line: Shown[str] = "?"
    batches: int | None = None
    samples: int = 0
    last: int | None = None
    split: bool = False
    sequence_length: int | None = None
    passes: int = 0
    planned: int | None = None
    taken: int = 0
    trains: bool = False
    left: bool = False
    left_after: int | None = None
    bound: int | None = None
    bound_of_pass: int | None = None
    bound_between: int | None = None
    decides: bool = False
    wrapped: str | None = None
    inside: int = 0
    every: float | None = None


@dataclass(frozen=True, kw_only=True)
class Input:
    """What the script's loaders showed. ``rehearsed_steps``: a short rehearsal's batches a pass; None: a whole run.

    ``ended_early``: the short rehearsal ended the script before its own end, or it failed or was stopped after a pass.
    """

    rehearsed_steps: int | None = None
    ended_early: bool = False
    loaders: tuple[Loader, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether a count of steps says how much a worker trains on, or a sampler."""
        return all(loader.split or loader.bound is not None for loader in self.loaders if loader.trains)
