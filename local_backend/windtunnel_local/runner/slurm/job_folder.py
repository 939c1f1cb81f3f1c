"""A job's record, that its tasks on the nodes share with every server of the home."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from windtunnel_local.runner.slurm import task
from windtunnel_local.runner.without_container import supervise
from windtunnel_local.runner.without_container.record import read

_REMOVALS = 5
"""A file that is written while its folder is removed keeps the folder."""


class JobFolder:
    """``<home>/slurm/<job>``, on a file system that all nodes share. In it:

    mark                    in the Slurm job's comment: finds the one whose number nobody has written down
    number                  the Slurm job's, as sbatch said it
    claimed                 the Slurm job's, as its tasks say it: of two submissions the first one's stay
    task.py, supervise.py   what runs on the nodes
    slurm.out               what Slurm and they print
    <host>/here.json        {"node", "address"}: a task waits there for the host's orders
    <host>/orders.json      its orders: see `supervise`, which says what else there is; and ``names``
    <host>/names            the addresses and names of all hosts; ``hosts``: with those that the node knew
    <host>/verdict.json     how it ended, as far as Slurm knows, where it could not write exit.json
    """

    def __init__(self, path: Path) -> None:
        """Touches nothing yet."""
        self.path = path

    @property
    def made(self) -> bool:
        """Whether it is whole."""
        return (self.path / "mark").exists()

    def make(self, hosts: Sequence[str]) -> None:
        """Fill it; the mark comes last. Idempotent."""
        for host in hosts:
            self.host(host).mkdir(parents=True, exist_ok=True)
        for script in (task.__file__, supervise.__file__):
            shutil.copy(script, self.path)
        draft = self.path / "mark.tmp"
        draft.write_text(uuid.uuid4().hex)
        draft.replace(self.path / "mark")

    @property
    def mark(self) -> str:
        """In the Slurm job's comment."""
        return (self.path / "mark").read_text()

    @property
    def number(self) -> int | None:
        """Of the Slurm job, if that is written down: by its tasks, or by who submitted it."""
        for name in ("claimed", "number"):
            try:
                return int((self.path / name).read_text())
            except FileNotFoundError:
                continue
        return None

    def write_number(self, number: int) -> None:
        """What sbatch has said."""
        draft = self.path / "number.tmp"
        draft.write_text(str(number))
        draft.replace(self.path / "number")

    def host(self, host: str) -> Path:
        """The folder of one host."""
        return self.path / host

    def hosts(self) -> list[str]:
        """Those that have a folder."""
        return sorted(path.name for path in self.path.glob("*") if path.is_dir())

    def here(self, host: str) -> dict[str, Any] | None:
        """What the task says that waits for this host's orders."""
        return self.read(host, "here.json")[0]

    def read(self, host: str, *names: str) -> list[dict[str, Any] | None]:
        """Files of a host that a node may have written this moment; None for one that is not there yet.

        The folder is listed first: NFS may answer from its memory that there is no such file, for half a minute.
        """
        place = self.host(host)
        try:
            there = os.listdir(place)  # noqa: PTH208 - names
        except FileNotFoundError:
            there = []
        return [read(place / name) if name in there else None for name in names]

    def ask(self, host: str, what: str) -> None:
        """``terminate`` or ``kill``, for its supervisor to find. A host that is gone is no error."""
        if self.host(host).is_dir():
            (self.host(host) / what).touch()

    def remove(self) -> None:
        """With all that is in it, also what a task writes there still, on a node that nobody reaches.

        Moved away first: else the next attempt would find it, and count as ended. What does not go now, goes with
        the next folder.
        """
        with suppress(FileNotFoundError):
            self.path.rename(self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}"))
        for _ in range(_REMOVALS):
            if not (graves := list(self.path.parent.glob(".*"))):
                return
            for grave in graves:
                shutil.rmtree(grave, ignore_errors=True)
