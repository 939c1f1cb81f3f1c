"""How large the batches of each loader are, and which one is smaller than the rest. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuron_sim.rehearsal.loops import Place
from neuron_sim.rehearsal.passes import LoaderFacts, Pass

_FEW = 3
"""A loader with more batch sizes than this varies them by design: no batch of it is a ragged end."""


@dataclass
class Loader:
    """A loader that gave batches. The lines are the user's that made it and iterate over it; ``?``: not known."""

    made_at: str = "?"
    iterated_at: str = "?"
    sizes: dict[int, int] = field(default_factory=dict)
    latest: int = 0
    reads_ahead: bool = False
    """Whether it is a loader of torch_xla's, or wrapped in one."""
    is_torchs: bool = False
    """Whether torch's DataLoader makes its batches; then they are looked at as soon as it gives them."""
    first: list[int] = field(default_factory=list)
    """Digests of its first batches: see `same_data`."""
    sequence_length: int | None = None
    """Tokens of a sample, where the batches hold any."""
    facts: LoaderFacts | None = None
    trained: list[Pass] = field(default_factory=lambda: [Pass()])
    """The passes of each loop that trains: one may try learning rates, or warm up, before another trains."""
    run: Pass = field(init=False)
    """The passes of the loop that goes over it now."""
    without_gradients: Pass = field(default_factory=Pass)
    """The passes of evaluation: some scripts evaluate on the loader that they train on."""

    def __post_init__(self) -> None:
        """No loop has gone over it."""
        (self.run,) = self.trained

    @property
    def runs(self) -> tuple[Pass, ...]:
        """All passes, for training and without gradients."""
        return *self.trained, self.without_gradients

    def goes_to(self, place: Place) -> None:
        """Called when a loop begins to go over it, perhaps another loop than before."""
        known = [one for one in self.trained if one.loop is not None and one.loop.place == place]
        # One without a loop but with passes may be over, as `[label for _, label in loader]`: that was no training.
        new = [one for one in self.trained if one.loop is None and not one.passes] or [Pass()]
        self.run = (known or new)[0]
        if all(one is not self.run for one in self.trained):
            self.trained.append(self.run)

    def came(self, size: int, iterated_at: str) -> None:
        """Count a batch of ``size`` samples."""
        self.sizes[size] = self.sizes.get(size, 0) + 1
        self.latest = size
        if iterated_at != "?":
            self.iterated_at = iterated_at

    @property
    def usual(self) -> int:
        """The largest size: an epoch's last batch is smaller, never larger."""
        return max(self.sizes, default=0)

    @property
    def last(self) -> int | None:
        """Samples of the last batch; None: the loader does not say."""
        if self.facts is None or self.facts.last is None or self.facts.size is None:
            return None
        return self.facts.last * max(self.usual, self.facts.size) // self.facts.size

    @property
    def ragged(self) -> bool:
        """Whether the latest batch is a smaller one among batches of otherwise one size."""
        return self.is_ragged(self.latest)

    def is_ragged(self, size: int) -> bool:
        """Whether a batch of ``size`` samples is, or would be."""
        return 0 < size < self.usual and len(self.sizes.keys() | {size}) <= _FEW
