"""Counts the steps around a line's reads, by whether they train: those of an evaluation are few of all. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_SHARE = 0.5
"""In what share of the steps that train, or of the others, a line reads that is in their loop. A line behind a step's
end also reads in the first step of what follows the loop.
"""


@dataclass
class ReadSteps:
    """Steps since the first one in which a line read, up to the latest. True: steps that train."""

    _read: Counter[bool] = field(default_factory=Counter)
    _before: Counter[bool] | None = None
    _passed: Counter[bool] = field(default_factory=Counter)

    def read(self, seen: Counter[bool], *, trains: bool) -> None:
        """The line has read in a step. ``seen``: all steps of the script up to this one."""
        if self._before is None:
            self._before = seen - Counter([trains])
        self._read[trains] += 1
        self._passed = seen - self._before

    @property
    def number(self) -> int:
        """Steps of the loops in which the line reads."""
        return sum(self._passed[trains] for trains in self._loops)

    @property
    def only_evaluates(self) -> bool:
        """Whether the line reads only in a loop that does not train."""
        return self._loops == {False}

    @property
    def _loops(self) -> set[bool]:
        found = {trains for trains, number in self._passed.items() if self._read[trains] >= _SHARE * number}
        return found or set(self._passed)
