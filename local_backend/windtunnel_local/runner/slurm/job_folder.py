"""The folder of one job that its tasks on the nodes share with the servers of the home."""

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
        self.path = path

    @property
    def made(self) -> bool:
        """Whether `make` has finished."""
        return (self.path / "mark").exists()

    def make(self, hosts: Sequence[str]) -> None:
        """Fill the folder; the mark comes last. Idempotent."""
        for host in hosts:
            self.host(host).mkdir(parents=True, exist_ok=True)
        for script in (task.__file__, supervise.__file__):
            shutil.copy(script, self.path)
        self._write("mark", uuid.uuid4().hex)

    @property
    def mark(self) -> str:
        """The mark, which is also in the Slurm job's comment."""
        return (self.path / "mark").read_text()

    @property
    def number(self) -> int | None:
        """The Slurm job's number, if its tasks or the submitting server have written it down."""
        for name in ("claimed", "number"):
            try:
                return int((self.path / name).read_text())
            except FileNotFoundError:
                continue
        return None

    def write_number(self, number: int) -> None:
        """Write down the number that sbatch printed."""
        self._write("number", str(number))

    def _write(self, name: str, text: str) -> None:
        draft = self.path / f"{name}.tmp"
        draft.write_text(text)
        draft.replace(self.path / name)

    def host(self, host: str) -> Path:
        return self.path / host

    def hosts(self) -> list[str]:
        """The names of the hosts that have a folder."""
        return sorted(path.name for path in self.path.glob("*") if path.is_dir())

    def here(self, host: str) -> dict[str, Any] | None:
        """The here.json of the task that waits for this host's orders; None: no task waits yet."""
        return self.read(host, "here.json")[0]

    def read(self, host: str, *names: str) -> list[dict[str, Any] | None]:
        """Read files of a host that a node may have just written; None for a file that is not there yet.

        Lists the folder first: for half a minute NFS may answer from its cache that there is no such file.
        """
        place = self.host(host)
        try:
            there = os.listdir(place)  # noqa: PTH208 - names
        except FileNotFoundError:
            there = []
        return [read(place / name) if name in there else None for name in names]

    def ask(self, host: str, what: str) -> None:
        """Leave ``terminate`` or ``kill`` for the host's supervisor. A host that is gone is no error."""
        if self.host(host).is_dir():
            (self.host(host) / what).touch()

    def remove(self) -> None:
        """Remove the folder, even if a task on a node out of reach still writes to it.

        It is moved away first; otherwise the next attempt would find it and count as ended. What cannot be removed
        now is removed with the next folder.
        """
        with suppress(FileNotFoundError):
            self.path.rename(self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}"))
        for _ in range(_REMOVALS):
            if not (graves := list(self.path.parent.glob(".*"))):
                return
            for grave in graves:
                shutil.rmtree(grave, ignore_errors=True)
