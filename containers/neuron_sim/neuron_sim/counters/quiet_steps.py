"""A few training steps begin with idle devices, so that tracing them is timed undisturbed.

The simulated cores compute on the same processors as the scripts, and slow their tracing down by half and
more; NeuronCores do not. So before some steps each rank lets its device finish, and waits until the others
of its host have done so too. Ranks need not run the same number of steps: when one has not come after as
long as a step takes, there are no more such steps.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

FIRST, EVERY = range(2, 9), 64
"""Which training steps: the first ones (without those that compile), and then every so many."""
_LONGEST_WAIT_S = 60.0
_LOOK_EVERY_S = 0.002


class QuietSteps:
    """The meetings of one rank. ``folder``: one that the ranks of the host share."""

    def __init__(self, folder: Path | None, local_rank: int, local_world_size: int) -> None:
        """Nothing is made before the first meeting."""
        self._folder = None if folder is None else folder / ".quiet"
        self._me, self._ranks = local_rank, local_world_size
        self._steps = 0
        self._mine: list[Path] = []

    def step_ended(self, let_finish: Callable[[], None], seconds: float) -> bool:
        """A training step has ended that took so long: meet, if the next one is to be timed undisturbed.

        Whether it will be.
        """
        self._steps += 1
        if self._folder is None or not (self._steps in FIRST or self._steps % EVERY == 0):
            return False
        let_finish()
        try:
            met = self._meet(self._folder, min(seconds, _LONGEST_WAIT_S))
        except OSError:  # a full disk, or a script that has removed the folder
            met = False
        if not met:
            self._folder = None
        return met

    def _meet(self, folder: Path, at_most_s: float) -> bool:
        folder.mkdir(exist_ok=True)
        mark = folder / f"{self._steps}-{self._me}"
        mark.touch()
        self._mine.append(mark)
        until = time.monotonic() + at_most_s
        others = [folder / f"{self._steps}-{rank}" for rank in range(self._ranks)]
        while not all(map(Path.exists, others)):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_EVERY_S)
        # Whoever is here has left the meeting before the last one: that mark may go.
        while len(self._mine) > 2:
            with contextlib.suppress(OSError):
                self._mine.pop(0).unlink()
        return True
