"""Whether the cores exchange what they train: gradients, weights, or the activations of a model in parts.

The weights that are sent before training, and the sums of a few figures (a loss, a gradient's norm), are no such
exchange: with these alone each core trains a model of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from neuron_sim import settings
from neuron_sim.diagnostics import findings, for_cores

if TYPE_CHECKING:
    import torch

_STEPS = 16
"""After how many training steps without an exchange it is reported: some scripts average weights every few steps."""
_STEPS_IN_ALL = 3
"""The same where the script has ended, as a short rehearsal does."""


class Exchanges:
    """Adds up, from one update to the next, how many elements this core brings to collectives."""

    def __init__(self) -> None:
        """Nothing is trained."""
        self._trains = self._has_been = False
        self._brought = self._weights = 0
        self.at_first: int | None = None
        """Elements before the first update. Few if a script averages weights instead, which may then differ."""

    @property
    def have_been(self) -> bool:
        """Whether there was one. It has at least the square root of as many elements as there are weights: compressed
        gradients have more, figures about the training fewer.
        """
        return self._has_been or (self._brought > 0 and self._brought**2 >= self._weights)

    def train(self) -> None:
        """Called when gradients are computed."""
        self._trains = True

    def bring(self, tensors: Sequence[torch.Tensor]) -> None:
        """Called with what goes to a collective."""
        if self._trains:
            self._brought += sum(tensor.numel() for tensor in tensors)

    def step(self, collectives: Iterable[str]) -> None:
        """Called with the kinds of collectives of a step. Cores that send and receive hold parts of one model."""
        self._has_been = self._has_been or not {"send", "recv"}.isdisjoint(collectives)

    def updated(self, optimizer: Any) -> None:
        """Called after an optimizer's step. One that has no list of its weights: any exchange is one of them."""
        self._trains = True
        self.at_first = self._brought if self.at_first is None else self.at_first
        if self._has_been:
            return
        groups = getattr(optimizer, "param_groups", ())
        self._weights = sum(weight.numel() for group in groups for weight in group["params"])
        self._has_been = self.have_been
        self._brought = 0

    def note_lack(self, line: str, steps: int, by_hand: bool, *, ended: bool) -> None:
        """Report it if so many training steps had none. ``line``, ``by_hand``: as `for_cores.no_exchange` has them."""
        cores = settings.identity().world_size
        if cores > 1 and steps >= (_STEPS_IN_ALL if ended else _STEPS) and not self.have_been:
            findings.note(for_cores.no_exchange(line, steps, cores, by_hand))
