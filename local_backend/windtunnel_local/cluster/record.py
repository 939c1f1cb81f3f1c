"""A cluster's folder: ``WINDTUNNEL_HOME/clusters/NAME``.

    configuration.yaml   as the user gave it; the configuration in force
    update.yaml          the one that an update is bringing in force, or could not
    cluster.json         the states, written whole by rename
    lock, update.lock    held while cluster.json is changed; while an update is checked and ordered
    fleet.sock, fleet.log, shared/ ...   the background process's (`fleet.py`)

The background process writes the states; commands make the folder and read it. A folder appears and disappears
by rename, so no reader ever sees half of one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from windtunnel.atomic_file import replace_whole
from windtunnel_local.cluster.configuration import DEFAULT_REGION, ClusterConfiguration, read
from windtunnel_local.cluster.errors import (
    BadRequest,
    ClusterError,
    ClusterNotFound,
    Conflict,
    DamagedRecord,
    InvalidConfiguration,
)

STATUSES = (
    "CREATE_IN_PROGRESS", "CREATE_FAILED", "CREATE_COMPLETE",
    "DELETE_IN_PROGRESS", "DELETE_FAILED",
    "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", "UPDATE_FAILED",
)  # fmt: skip
"""States of a cluster, as `list-clusters --cluster-status` takes them."""

WORKING = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED")
"""States in which the cluster takes jobs, and orders to start or stop its fleet."""

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{1,59}")
_BEFORE = {
    "UPDATE_IN_PROGRESS": WORKING,
    "CREATE_COMPLETE": ("CREATE_IN_PROGRESS",),
    "CREATE_FAILED": ("CREATE_IN_PROGRESS",),
    "UPDATE_COMPLETE": ("UPDATE_IN_PROGRESS",),
    "UPDATE_FAILED": ("UPDATE_IN_PROGRESS",),
    "DELETE_IN_PROGRESS": STATUSES,
    "DELETE_FAILED": ("DELETE_IN_PROGRESS",),
}
"""By state: the states that may come before it."""


def now() -> str:
    """The present time as ParallelCluster prints it: UTC, ISO 8601, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class HeadNode:
    """The head node that runs. ``instance_id``: in EC2's form, of the container's id."""

    instance_id: str
    launch_time: str
    private_ip_address: str
    state: str = "running"


@dataclass(frozen=True)
class ClusterState:
    """cluster.json. Times as `now` gives them."""

    name: str
    file: str
    """The configuration's file as the user gave it, for messages."""
    region: str
    stack_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "CREATE_IN_PROGRESS"
    fleet_status: str = "UNKNOWN"
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    fleet_updated: str = field(default_factory=now)
    head_node: HeadNode | None = None
    failure: str | None = None
    """Why the last create, update or delete failed."""


class ClusterRecord:
    """One cluster's folder. Cheap to make; every property reads the file anew.

    Raises everywhere:
        ClusterNotFound: the folder is not there (any more).
        DamagedRecord: a file of it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.configuration_file = folder / "configuration.yaml"
        """The configuration in force, as the user gave it."""
        self.update_file = folder / "update.yaml"
        """The configuration that an update brings in force."""
        self._state_file = folder / "cluster.json"

    @property
    def state(self) -> ClusterState:
        """All of cluster.json at this moment."""
        try:
            given = json.loads(self._bytes(self._state_file))
            head = given.pop("head_node")
            state = ClusterState(**given, head_node=HeadNode(**head) if head else None)
            if state.status not in STATUSES:
                raise ValueError(f"no status: {state.status!r}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedRecord(self._state_file, error) from error
        return state

    def _bytes(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if self.folder.is_dir():  # it comes and goes with all of its files
                raise DamagedRecord(path, "it is missing") from None
            raise ClusterNotFound(self.name) from None

    def wreck(self, why: ClusterError) -> ClusterState:
        """The state that stands for one that cannot be read: the cluster can only be deleted."""
        return ClusterState(
            self.name, self.configuration_file.name, DEFAULT_REGION, status="DELETE_FAILED", failure=str(why)
        )

    def make_deletable(self) -> None:
        """If the record or the configuration cannot be read, write a readable record that says so."""
        try:
            self.configuration()
        except (DamagedRecord, InvalidConfiguration) as error:
            with self._locked():
                _write(self._state_file, self.wreck(error))

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def fleet_status(self) -> str:
        """Such as RUNNING, STOP_REQUESTED or UNKNOWN."""
        return self.state.fleet_status

    def configuration(self) -> ClusterConfiguration:
        return self._read(self.configuration_file)

    def next_configuration(self) -> ClusterConfiguration:
        """The configuration that an update brings in force."""
        return self._read(self.update_file)

    def _read(self, path: Path) -> ClusterConfiguration:
        try:
            text = self._bytes(path).decode()
        except UnicodeDecodeError as error:
            raise DamagedRecord(path, error) from error
        return read(text, path.name, self.state.region)

    def propose(self, text: str) -> None:
        """Write update.yaml; within `proposing`."""
        replace_whole(self.update_file, text)

    def take_update(self) -> None:
        """Bring update.yaml in force. Idempotent: without one nothing changes."""
        if self.update_file.exists():
            self.update_file.replace(self.configuration_file)

    def move_to(self, status: str, failure: str | None = None) -> ClusterState:
        """Set the cluster's state, if it may follow the present one.

        Raises:
            Conflict: it may not, as another operation is under way or was first.
        """

        def changed(state: ClusterState) -> ClusterState:
            if state.status not in _BEFORE[status]:
                raise Conflict(f"Cannot execute update while stack is in {state.status} status.")
            return replace(state, status=status, failure=failure, updated=now())

        return self.change(changed)

    def set_fleet(self, fleet_status: str) -> ClusterState:
        return self.change(lambda state: replace(state, fleet_status=fleet_status, fleet_updated=now()))

    def set_head_node(self, head_node: HeadNode) -> ClusterState:
        """Say which head node runs."""
        return self.change(lambda state: replace(state, head_node=head_node))

    def change(self, changed: Callable[[ClusterState], ClusterState]) -> ClusterState:
        """Replace the state by ``changed`` of it, under a lock. Returns the new state."""
        with self._locked():
            state = changed(self.state)
            _write(self._state_file, state)
        return state

    @contextmanager
    def proposing(self) -> Iterator[None]:
        """Nobody else writes update.yaml meanwhile."""
        with self._locked("update.lock"):
            yield

    @contextmanager
    def _locked(self, name: str = "lock") -> Iterator[None]:
        try:
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, NotADirectoryError):
            raise ClusterNotFound(self.name) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Remove the folder with all that is in it; the record goes last, and then the name is free. Idempotent.

        Raises:
            OSError: a file cannot be removed; the record is still there.
        """
        try:
            for entry in self.folder.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
        except FileNotFoundError:  # somebody else removes it, too, or has
            pass
        gone = Path(tempfile.mkdtemp(prefix=f".{self.name}.gone-", dir=self.folder.parent))
        try:
            self.folder.rename(gone)
        except FileNotFoundError:
            gone.rmdir()
            return
        shutil.rmtree(gone)


def clusters_folder(home: Path) -> Path:
    """Where the clusters of a home are."""
    return home / "clusters"


def find(home: Path, name: str) -> ClusterRecord:
    """The cluster of that name.

    Raises:
        ClusterNotFound: there is none.
    """
    record = ClusterRecord(clusters_folder(home) / name)
    if not NAME.fullmatch(name) or not record.folder.is_dir():
        raise ClusterNotFound(name)
    return record


def every(home: Path) -> list[ClusterRecord]:
    """All clusters of the home, by name."""
    folder = clusters_folder(home)
    if not folder.is_dir():
        return []
    return [ClusterRecord(entry) for entry in sorted(folder.iterdir()) if NAME.fullmatch(entry.name)]


def check_free(home: Path, name: str) -> None:
    """Whether a cluster may be made of that name.

    Raises:
        BadRequest: it is taken, or no name for a cluster.
    """
    if not NAME.fullmatch(name):
        raise BadRequest(
            f"'{name}' is no name for a cluster: it must begin with a letter, hold letters, digits and hyphens "
            "alone, and have 2 to 60 characters."
        )
    if (clusters_folder(home) / name).exists():
        raise _taken(name)


def _taken(name: str) -> BadRequest:
    return BadRequest(f"Cluster {name} already exists.")


def create(home: Path, name: str, text: str, file: str, region: str) -> ClusterRecord:
    """Make the folder of a new cluster, in CREATE_IN_PROGRESS.

    Args:
        home: of which it becomes one of the clusters.
        name: free until now.
        text: its configuration, checked before.
        file: where that was read from.
        region: of the configuration, or where the caller wants it.

    Raises:
        BadRequest: the name is taken or no name for a cluster.
    """
    check_free(home, name)
    folder = clusters_folder(home)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=folder))
    record = ClusterRecord(folder / name)
    try:
        (made / "configuration.yaml").write_text(text)
        _write(made / "cluster.json", ClusterState(name, file, region))
        made.rename(record.folder)  # onto a folder that holds anything it fails
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        if record.folder.exists():
            raise _taken(name) from error
        raise
    return record


def _write(path: Path, state: ClusterState) -> None:
    replace_whole(path, json.dumps(asdict(state), indent=2) + "\n")
