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
"""The training steps that are timed: the first ones without those that compile, then every 64th."""
_LONGEST_WAIT_S = 60.0
_LOOK_EVERY_S = 0.002


class QuietSteps:
    """One rank's meetings with the other ranks of its host. ``folder``: one that these ranks share."""

    def __init__(self, folder: Path | None, local_rank: int, local_world_size: int) -> None:
        """No file is made before the first meeting."""
        self._folder = None if folder is None else folder / ".quiet"
        self._me, self._ranks = local_rank, local_world_size
        self._steps = 0
        self._mine: list[Path] = []

    def step_ended(self, let_finish: Callable[[], None], seconds: float) -> bool:
        """Called after a training step that took ``seconds``: meet the other ranks if the next step is to be timed.

        Returns whether it will begin with idle devices.
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
        # All ranks that came here have left the meeting before the last one: its mark may go.
        while len(self._mine) > 2:
            with contextlib.suppress(OSError):
                self._mine.pop(0).unlink()
        return True
