"""The part of counters.json about the script's data loaders; `counters` has the rest."""

from __future__ import annotations

from dataclasses import dataclass

from .strict_reader import Shown


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A data loader that the script looped over. Batches are those of one core.

    If the script loops over no loader: its training data, one batch a step, in loops that end by a count (``bound``).

    Attributes:
        line: of the script's loop over the loader.
        batches: in a whole pass; None: the loader does not say.
        samples: in a batch.
        last: samples in the last batch of a pass; None: the loader does not say.
        split: each core reads its own part of the data set.
        sequence_length: tokens of a sample; None: the batches hold no tokens.
        passes: how often the script began to loop over it.
        planned: how often the ``for … in range(…)`` loops around it would make it do so (the script may leave them
            earlier); None: there is no such loop, or a loop of another kind is around it.
        taken: batches that the loop received.
        trains: gradients were computed from the batches.
        left: the script left the latest pass before its end.
        left_after: batches of the first pass, if the script left that pass early and then began another.
        bound: batches after which the script's own counter would end the loop; None: no counter was read.
        bound_of_pass: the same, for a counter that starts again in each pass.
        bound_between: the same, for a counter that is only tested between passes.
        decides: the script repeats the loop until a bound is reached, as ``while step < max_steps`` does.
        wrapped: ``zip``, or the function of itertools that the loop goes through; None: neither.
        inside: passes that began within a loop that trains.
        every: batches of that training loop between two such passes; None: not known.
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
    """What the script's loaders showed. ``rehearsed_steps``: batches a pass of a short rehearsal; None: a whole run.

    ``ended_early``: the rehearsal ended the script before its own end, or it failed or was stopped after a pass.
    """

    rehearsed_steps: int | None = None
    ended_early: bool = False
    loaders: tuple[Loader, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether a sampler or a count of steps says how much each worker trains on, for every training loader."""
        return all(loader.split or loader.bound is not None for loader in self.loaders if loader.trains)

    @property
    def evaluation_split(self) -> bool:
        """Whether the workers share the evaluation samples, as far as the loaders show."""
        evaluating = [loader for loader in self.loaders if not loader.trains]
        return not evaluating or any(loader.split for loader in evaluating)
