"""The operations on clusters for both command lines, with ParallelCluster's answers.

Requests are checked here. The cluster's background process carries them out, so each call returns at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from windtunnel_local.cluster import answers, record
from windtunnel_local.cluster.answers import Answer
from windtunnel_local.cluster.configuration import DEFAULT_REGION, LONGEST, KeyChange, Read, changes, read_all
from windtunnel_local.cluster.errors import (
    BadRequest,
    ClusterError,
    ClusterNotFound,
    Conflict,
    DamagedRecord,
    InvalidConfiguration,
)
from windtunnel_local.cluster.record import WORKING, ClusterRecord

_SUPPRESSOR = re.compile(r"ALL|type:[A-Za-z0-9]+")
_ON_ITS_WAY = {
    "start": ("START_REQUESTED", "STARTING", "RUNNING"),
    "stop": ("STOP_REQUESTED", "STOPPING", "STOPPED"),
}


class Fleet(Protocol):
    """The background processes of clusters, by folder."""

    def check(self) -> None:
        """Whether a cluster can run on this machine.

        Raises:
            RunnerError: it cannot; says why.
        """

    def start(self, folder: Path) -> None:
        """Start the process unless it runs. It goes on with the operation that the record says is under way.

        Raises:
            ClusterError: it does not start; the message ends with its log.
        """

    def call(self, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order and return the answer. By then the process has written the order down.

        Raises:
            ClusterError: nobody answers, or the process refuses: then of the class that its answer names.
        """


class UpdateRefused(ClusterError):
    """ParallelCluster would not make these changes now."""

    def __init__(self, changed: Sequence[KeyChange]) -> None:
        refused = [one for one in changed if one.refusal]
        super().__init__("Update failure\n" + "\n".join(f"{one.parameter}: {one.refusal}" for one in refused))
        self.changed = tuple(changed)


class DryRun(Exception):
    """A dry run found no mistakes, and did nothing. ``answer``: what is printed."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer["message"])
        self.answer = answer


@dataclass(frozen=True)
class File:
    """A configuration's file as the user gave it."""

    name: str
    text: str

    @classmethod
    def at(cls, path: str) -> File:
        """Read the file.

        Raises:
            BadRequest: it cannot be read, or is no text.
        """
        try:
            with Path(path).open(encoding="utf-8") as file:
                return cls(path, file.read(LONGEST + 1))  # of more nothing is looked at
        except FileNotFoundError:
            raise BadRequest(f"File not found: '{path}'") from None
        except (OSError, ValueError) as error:
            raise BadRequest(
                f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None


@dataclass(frozen=True)
class Checks:
    """How a configuration is checked. It is refused from ``failure_level`` on: INFO, WARNING or ERROR."""

    suppressed: tuple[str, ...] = ()
    failure_level: str = "ERROR"
    dry_run: bool = False

    def read(self, file: File, region: str) -> Read:
        """The configuration.

        Raises:
            BadRequest: a validator to suppress does not exist.
            InvalidConfiguration: with all of its mistakes.
        """
        for word in self.suppressed:
            if not _SUPPRESSOR.fullmatch(word):
                raise BadRequest(
                    f"'{word}' does not match '^(ALL|type:[A-Za-z0-9]+)$' - 'suppress-validators'"
                )
        found = read_all(file.text, file.name, region)
        warnings = tuple(
            one for one in found.warnings if not {"ALL", f"type:{one.kind}"} & set(self.suppressed)
        )
        if warnings and self.failure_level != "ERROR":
            raise InvalidConfiguration(warnings, level="WARNING")
        return Read(found.configuration, warnings, found.document)


class Clusters:
    """The clusters of one home."""

    def __init__(self, home: Path, fleet: Fleet, default_region: str = DEFAULT_REGION) -> None:
        """``default_region``: for a configuration and a command line that name none."""
        self._home = home
        self._fleet = fleet
        self._default_region = default_region

    def create(
        self, name: str, file: File, region: str | None = None, checks: Checks | None = None
    ) -> tuple[Answer, Read]:
        """Begin to make a cluster. Returns the answer and the configuration.

        Raises:
            BadRequest: the name is taken, or no name; the regions of file and command line differ.
            InvalidConfiguration: the file has mistakes.
            RunnerError: there is no container engine.
            DryRun: nothing is wrong, and nothing is made.
        """
        checks = checks or Checks()
        record.check_free(self._home, name)
        found = checks.read(file, region or self._default_region)
        if region and region != found.configuration.region:
            raise BadRequest("region is set in both parameter and configuration and conflicts.")
        if checks.dry_run:
            raise DryRun(answers.dry_run(found.warnings))
        self._fleet.check()
        made = record.create(self._home, name, file.text, file.name, found.configuration.region)
        try:
            self._fleet.start(made.folder)
        except BaseException:
            made.remove()
            raise
        return answers.accepted(answers.summary(made.state, "CREATE_IN_PROGRESS"), found.warnings), found

    def describe(self, name: str, region: str | None = None) -> Answer:
        cluster = self.find(name, region)
        return answers.description(cluster, cluster.state, cluster.configuration())

    def list(self, region: str | None = None, statuses: Sequence[str] = ()) -> Answer:
        """All clusters of the home, or those of a region, in some states."""
        states = [state for cluster in record.every(self._home) if (state := _state(cluster))]
        wanted = [state for state in states if region in (None, state.region)]
        return {
            "clusters": [
                answers.summary(state) for state in wanted if not statuses or state.status in statuses
            ]
        }

    def update(
        self,
        name: str,
        file: File,
        region: str | None = None,
        checks: Checks | None = None,
        *,
        force: bool = False,
    ) -> tuple[Answer, Read]:
        """Begin to update a cluster to another configuration.

        Raises:
            ClusterNotFound: no such cluster.
            Conflict: another operation is under way.
            InvalidConfiguration: the file has mistakes.
            UpdateRefused: a change cannot be made now.
            BadRequest: there is no change.
            DryRun: nothing is wrong, and nothing is done.
        """
        checks = checks or Checks()
        cluster = self.find(name, region)
        with cluster.proposing():
            state = cluster.state
            if state.status not in WORKING:
                raise Conflict(f"Cannot execute update while stack is in {state.status} status.")
            found = checks.read(file, state.region)
            changed = _changes(cluster, state, found)
            if any(one.refusal for one in changed) and not force:
                raise UpdateRefused(changed)
            if not changed and not force:
                raise BadRequest("No changes found in your cluster configuration.")
            if checks.dry_run:
                raise DryRun(answers.dry_run(found.warnings, changed))
            cluster.propose(file.text)
            self._order(cluster, "update")
        return answers.accepted(answers.summary(state, "UPDATE_IN_PROGRESS"), found.warnings, changed), found

    def delete(self, name: str, region: str | None = None) -> Answer:
        """Begin to delete a cluster with all its files. Idempotent until it is gone."""
        record.find(self._home, name).make_deletable()
        cluster = self.find(name, region)
        answer = {"cluster": answers.summary(cluster.state, "DELETE_IN_PROGRESS")}
        try:
            self._order(cluster, "delete")
        except ClusterError:
            if _state(cluster) is not None:  # or it was on its way, and is gone by now
                raise
        return answer

    def fleet(self, name: str, region: str | None = None) -> Answer:
        return answers.fleet(self.find(name, region).state, updated=False)

    def set_fleet(self, name: str, status: str, region: str | None = None) -> Answer:
        """Ask for the fleet's start (START_REQUESTED) or stop (STOP_REQUESTED). Idempotent."""
        cluster = self.find(name, region)
        if status not in ("START_REQUESTED", "STOP_REQUESTED"):
            raise BadRequest(
                "the update compute fleet status can only be set to `START_REQUESTED` or `STOP_REQUESTED` for "
                "Slurm scheduler clusters."
            )
        verb = "start" if status == "START_REQUESTED" else "stop"
        state = cluster.state
        if state.status not in WORKING:
            raise BadRequest(f"Cannot {verb} the compute fleet while the cluster is in {state.status}.")
        if state.fleet_status not in _ON_ITS_WAY[verb]:
            self._order(cluster, f"{verb}-fleet")
        return answers.fleet(cluster.state, updated=True)

    def instances(
        self, name: str, region: str | None = None, node_type: str | None = None, queue: str | None = None
    ) -> Answer:
        cluster = self.find(name, region)
        given = self._order(cluster, "instances")["instances"]
        found = [answers.instance(one) for one in given]
        return {
            "instances": [
                one
                for one in found
                if node_type in (None, one["nodeType"]) and queue in (None, one.get("queueName"))
            ]
        }

    def by_name(self, name: str) -> ClusterRecord:
        """The record of a cluster of that name, which need not exist."""
        return ClusterRecord(record.clusters_folder(self._home) / name)

    def find(self, name: str, region: str | None = None) -> ClusterRecord:
        """The cluster of that name, in that region if one is given. Restarts its process if that was killed.

        Raises:
            ClusterNotFound: there is none.
        """
        cluster = record.find(self._home, name)
        state = cluster.state
        if region not in (None, state.region):
            raise ClusterNotFound(name)
        self.see_to(cluster, state)
        return cluster

    def see_to(self, cluster: ClusterRecord, state: record.ClusterState) -> None:
        """Restart a cluster's process if it was killed. That of a failed cluster has ended for good."""
        if not state.status.endswith("_FAILED") or state.status in WORKING:
            with suppress(ClusterError, OSError):  # what is known of the cluster can be told without
                self._fleet.start(cluster.folder)

    def _order(self, cluster: ClusterRecord, do: str) -> dict[str, Any]:
        self._fleet.start(cluster.folder)  # that of a cluster that failed has left
        return self._fleet.call(cluster.folder, {"do": do})


def _changes(cluster: ClusterRecord, state: record.ClusterState, found: Read) -> list[KeyChange]:
    before = read_all(cluster.configuration_file.read_text(), state.file, state.region)
    return changes(before.document, found.document, fleet_stopped=state.fleet_status == "STOPPED")


def _state(cluster: ClusterRecord) -> record.ClusterState | None:
    try:
        return cluster.state
    except DamagedRecord as error:
        return cluster.wreck(error)
    except ClusterNotFound:
        return None
