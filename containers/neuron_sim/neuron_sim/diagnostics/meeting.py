"""Where the cores of a host leave what another one is to compare with its own: a file each, in a folder they share."""

from __future__ import annotations

import contextlib
from pathlib import Path


class Meeting:
    """One thing that they compare. A full or missing folder is no reason to end a training: then nothing is left."""

    def __init__(self, folder: Path | None, rank: int) -> None:
        """``folder``: made when it is needed; None: nothing is compared."""
        self._folder = folder
        self.rank = rank
        self.has_left = folder is None

    def leave(self, text: str, *, more: bool = False) -> None:
        """Let the other cores know, once. ``more``: and again, with more, in place of it."""
        if self._folder is not None and not self.has_left:
            self.has_left = not more
            with contextlib.suppress(OSError):
                self._folder.mkdir(exist_ok=True, parents=True)
                begun = self._folder / f".{self.rank}"
                begun.write_text(text)
                begun.replace(self._folder / str(self.rank))  # it is there whole or not at all

    def left(self) -> dict[int, str]:
        """What each rank has left until now, this one too."""
        if self._folder is None:
            return {}
        with contextlib.suppress(OSError):
            there = [file for file in self._folder.iterdir() if file.name.isdigit()]
            return {int(file.name): file.read_text() for file in there}
        return {}
