"""A shared folder in which each core of a host leaves a file, which other cores compare with their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from neuron_sim import atomic_file, settings


def among_cores(shared: Path | None, name: str) -> Meeting:
    """The meeting of this core, in a folder below the one that the cores of a host share; nobody meets one alone."""
    me = settings.identity()
    return Meeting(shared / name if shared is not None and me.world_size > 1 else None, me.rank)


class Meeting:
    """The folder for one thing that cores compare. If it cannot be written, nothing is compared; training goes on."""

    def __init__(self, folder: Path | None, rank: int) -> None:
        """``folder``: made when it is needed; None: nothing is compared."""
        self._folder = folder
        self.rank = rank
        self.has_left = folder is None

    def leave(self, text: str, *, more: bool = False) -> None:
        """Leave a text for the other cores, once. ``more``: a later call may replace it by a longer one."""
        if self._folder is not None and not self.has_left:
            self.has_left = not more
            with contextlib.suppress(OSError):
                self._folder.mkdir(exist_ok=True, parents=True)
                atomic_file.write(self._folder / str(self.rank), text)

    def clear(self) -> None:
        """Take away what this rank has left in an earlier launch of the same job; before anything is compared."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / str(self.rank)).unlink(missing_ok=True)

    def left(self) -> dict[int, str]:
        """What each rank has left until now, this one too."""
        if self._folder is None:
            return {}
        with contextlib.suppress(OSError):
            there = [file for file in self._folder.iterdir() if file.name.isdigit()]
            return {int(file.name): file.read_text() for file in there}
        return {}
