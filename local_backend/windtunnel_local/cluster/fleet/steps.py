"""The steps that create, update, start, stop and delete a cluster. Each can be repeated from its beginning."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.configuration import ClusterConfiguration
from windtunnel_local.cluster.errors import ClusterError, ClusterNotFound, DamagedRecord, InvalidConfiguration
from windtunnel_local.cluster.fleet.keeper import Keeper
from windtunnel_local.cluster.fleet.slurm import Slurm, is_powered, not_ready
from windtunnel_local.cluster.folders import has_files_of_others, make_folders, write_slurm_conf
from windtunnel_local.cluster.image import ensure_cluster_image
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.machine import keep, machine_of
from windtunnel_local.cluster.nodes import NodeContainer, Nodes, remove_abandoned
from windtunnel_local.cluster.record import WORKING, ClusterRecord, HeadNode
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.host_network import host_network
from windtunnel_local.service.ground.errors import RunnerError, WindtunnelError
from windtunnel_local.settings import Settings

_UP_S = 180.0
_NODE_S = 15.0
"""Additional seconds for a node to register on a busy machine."""
_RESYNC_S = 15.0
_POLL_S = 0.2
_ASK_AGAIN_S = 30.0
"""Seconds between two orders to Slurm to power up the same node. If told too soon, Slurm begins anew and ignores the
node that is already starting.
"""
_LOG_LINES = 15
log = logging.getLogger("windtunnel.cluster")


class Abandoned(ClusterError):
    """The cluster is being deleted, so the present step ends."""


class Steps:
    """The steps of one cluster. They are called one at a time; the keeper's methods may be called at any time."""

    def __init__(
        self,
        layout: Layout,
        settings: Settings,
        has_own_folder: Callable[[], bool],
        nodes: Nodes | None = None,
    ) -> None:
        """Reads the record; asks no engine yet.

        Args:
            layout: of the cluster.
            settings: of the shell that started the process.
            has_own_folder: whether the folder is the one for which the process was started.
            nodes: None: the engine's.

        Raises:
            ClusterError: what is written of the cluster cannot be read.
            SettingsError: a setting cannot be used.
        """
        self.record = ClusterRecord(layout.folder)
        self._has_own_folder = has_own_folder
        self.deleting = threading.Event()
        self._layout = layout
        self._machine = keep(layout.settings, machine_of(settings))
        self._settings = replace(settings, image=self._machine.training_image)
        self._engine = Engine()
        self.nodes = nodes or Nodes(layout, self._machine, host_network(settings.environment), self._engine)
        self._slurm = Slurm(self.nodes)
        self.configuration = self._configuration()
        self.keeper = Keeper(layout.folder, self.nodes, self)
        self._under_way = threading.Lock()
        self._looked = 0.0
        self._asked: dict[str, float] = {}
        """When Slurm was last told to power up each static node, since the fleet's start."""

    @property
    def owner(self) -> tuple[int, int]:
        """uid and gid of the nodes' user, as which slurmctld runs."""
        return self._machine.uid, self._machine.gid

    def need_own_folder(self) -> None:
        """Raises ``ClusterNotFound`` if the cluster's folder was removed, even if there is another of that name."""
        if not self._has_own_folder():
            raise ClusterNotFound(self.record.name)

    # --- steps ---

    def create(self) -> None:
        """Create the cluster until it takes jobs. Containers of an earlier try are removed first."""
        with self._under_way:
            self.record.set_fleet("STARTING")
            ensure_cluster_image(self._settings, self._say, self._engine)
            remove_abandoned(self._engine)
            self.nodes.remove_all()
            make_folders(self._layout, self.configuration, self._machine)
            self._write_conf(running=True)
            self._check()
            self._start_head()
            self.keeper.begin()
            self._bring_up_static()
            self.record.set_fleet("RUNNING")

    def go_on(self) -> None:
        """Take over a running cluster after the end of an earlier process or of the engine."""
        with self._under_way:
            make_folders(self._layout, self.configuration, self._machine)
            self._ensure_head()
            self._resync()
            self.keeper.begin()

    def stop_fleet(self) -> None:
        """End all compute nodes; jobs on them go back to the queue."""
        with self._under_way:
            self.record.set_fleet("STOPPING")
            self._write_conf(running=False)
            self._slurm.set_partitions(self._queues, "INACTIVE")
            self._slurm.set_nodes(sorted(self._slurm.powered()), "POWER_DOWN_FORCE")
            self.keeper.want_only(())
            self._wait(lambda: set(self.nodes.found()) <= {HEAD}, _UP_S, "the compute nodes did not end")
            self.record.set_fleet("STOPPED")

    def start_fleet(self) -> None:
        """Start the static nodes, and let jobs start."""
        with self._under_way:
            self.record.set_fleet("STARTING")
            self._write_conf(running=True)
            self._slurm.set_partitions(self._queues, "UP")
            self._bring_up_static()
            self.record.set_fleet("RUNNING")

    def update(self) -> None:
        """Bring the next configuration in force. If there is none, an earlier process did that."""
        with self._under_way:
            if not self.record.update_file.exists():
                return
            before = self.configuration
            try:
                self._apply(self.record.next_configuration())
            except (WindtunnelError, OSError) as error:
                why = "\n".join([str(error), *self._tails([HEAD])])
                self._apply_again(before, why)
                raise ClusterError(why) from error
            self.record.take_update()

    def delete(self) -> None:
        """Remove containers, network and files; the record last.

        Raises ``ClusterNotFound`` if it is gone: an order that comes twice must not remove a new cluster of that name.
        """
        self.need_own_folder()
        self.keeper.end()
        with self._under_way:
            self.nodes.remove_all()
            if os.geteuid() != 0 and has_files_of_others(self._layout.folder):
                self.nodes.clear_folder()
            self.record.remove()

    def roll_back(self, error: Exception) -> str:
        """Remove what a failed creation has made. Returns why it failed, with the last lines of the nodes' logs."""
        self.keeper.end()
        words = [str(error)]
        try:
            words += self._tails(self.nodes.found())
            self.nodes.remove_all()
        except RunnerError as left:
            words.append(f"What it has made is still there, until the cluster is deleted: {left}")
        return "\n".join(words)

    def _tails(self, names: Iterable[str]) -> list[str]:
        """The last lines of the nodes' logs."""
        tails = {name: self.nodes.tail(name, _LOG_LINES).strip() for name in sorted(names)}
        return [f"The end of {name}'s log:\n{tail}" for name, tail in tails.items() if tail]

    def _apply_again(self, before: ClusterConfiguration, why: str) -> None:
        """Apply the earlier configuration again. ``why``: the reason why the update failed."""
        try:
            self._apply(before)
        except (WindtunnelError, OSError) as error:
            raise ClusterError(
                f"{why}\nWhat was in force before does not come back either: {error}"
            ) from error

    # --- what the keeper asks for ---

    def start_node(self, name: str) -> None:
        """Make a compute node and start it, unless the configuration does not have it."""
        instance_type = self.configuration.instance_types.get(name)
        if instance_type is not None:
            self.nodes.start(name, instance_type, self.configuration)
            node_log.append(self._layout.folder, name, instance_type, "up")

    def say_lost(self, names: Sequence[str]) -> None:
        """Tell Slurm that nodes are down which it takes for up: their jobs go back to the queue at once."""
        states = self._slurm.states()
        lost = [name for name in names if name not in not_ready(names, states)]
        self._slurm.set_nodes(lost, "DOWN", "lost")

    def look(self) -> None:
        """Make sure that the head node runs, and want the nodes that Slurm wants. Does nothing during a step.

        Raises ``ClusterNotFound`` if the cluster is gone.
        """
        self.need_own_folder()
        if not self._under_way.acquire(blocking=False):
            return
        try:
            if self.record.status not in WORKING:
                return
            if self._ensure_head() or time.monotonic() - self._looked > _RESYNC_S:
                self._resync()
        finally:
            self._under_way.release()

    # --- what runs ---

    def _resync(self) -> None:
        """Want the nodes that Slurm has powered up: an order of Slurm's may have got lost while no process ran."""
        since = self.keeper.changes
        self._looked = time.monotonic()
        if self.record.fleet_status == "RUNNING":
            states = self._slurm.states()
            powered = {name for name, state in states.items() if is_powered(state)}
            self.keeper.want_only(powered & self.configuration.instance_types.keys(), since)
            self._take_back(states)

    def _take_back(self, states: Mapping[str, str]) -> None:
        """Power down nodes that missed ResumeTimeout: Slurm would leave them down for good.

        Static nodes that are powered down are asked for again: Slurm ignores those that began before that.
        """
        given_up = [name for name, state in states.items() if state == "down~"]
        if given_up:
            log.warning("Slurm has given up %s; it may ask for them again", ", ".join(given_up))
        self._slurm.set_nodes(given_up, "POWER_DOWN")
        self._slurm.set_nodes(
            [name for name in sorted(self._static) if states.get(name) == "idle~"], "POWER_UP"
        )

    def _ensure_head(self) -> bool:
        """Make sure that the head node runs. Returns whether it had to be started."""
        head = self.nodes.found().get(HEAD)
        if head is not None and head.state == "running":
            return False
        log.warning("the head node is %s; starting it", head.state if head else "gone")
        self._start_head()
        return True

    def _start_head(self) -> None:
        self.nodes.ensure_network()
        self.nodes.start(HEAD, self.configuration.head_instance_type, self.configuration)
        self._slurm.wait_until_up(_UP_S)
        log.info("the head node answers")
        head = self.nodes.found()[HEAD]
        self.record.set_head_node(HeadNode(instance_id(head), head.launched, head.address))

    def _bring_up_static(self) -> None:
        timeout_s = _UP_S + _NODE_S * len(self._static)
        self._asked.clear()
        try:
            self._wait(self._static_are_up, timeout_s, "the static nodes did not come up")
        except Abandoned:
            raise
        except ClusterError as error:
            missing = not_ready(sorted(self._static), self._slurm.states())
            why = [f"{name}: {self.keeper.failures.get(name, 'it does not register')}" for name in missing]
            raise ClusterError("\n".join([str(error), *why])) from error

    def _static_are_up(self) -> bool:
        """Ask Slurm for the static nodes that are not up. Returns whether all are."""
        states = {name: state for name, state in self._slurm.states().items() if name in self._static}
        now = time.monotonic()
        asked = {name for name, when in self._asked.items() if now - when <= _ASK_AGAIN_S}
        down = [name for name, state in states.items() if state.endswith("~") and name not in asked]
        self._slurm.set_nodes(down, "POWER_UP")
        self._asked.update(dict.fromkeys(down, now))
        # Slurm takes no node for up that began before it was to be powered up.
        powered = {name for name in states if is_powered(states[name])}
        if not powered <= self.keeper.wanted:
            self.keeper.want(powered)
        return not not_ready(self._static, states)

    def _apply(self, configuration: ClusterConfiguration) -> None:
        before, self.configuration = self.configuration, configuration
        make_folders(self._layout, configuration, self._machine)
        self._write_conf(running=self.record.fleet_status == "RUNNING")
        types = configuration.instance_types
        new_mounts = self._layout.mounts(before, head=True) != self._layout.mounts(configuration, head=True)
        found = self.nodes.found()
        changed = {
            name
            for name, node in found.items()
            if new_mounts or (name != HEAD and node.instance_type != types.get(name))
        }
        if before.head_instance_type != configuration.head_instance_type or before.os != configuration.os:
            changed.add(HEAD)
        self.keeper.want_only(self.keeper.wanted & set(types))
        for name in sorted(changed & set(found)):
            self.nodes.remove(name)
            if name != HEAD:
                node_log.append(self._layout.folder, name, found[name].instance_type, "down")
        if HEAD in changed:
            self._start_head()
        else:
            self._slurm.restart(_UP_S)
        if self.record.fleet_status == "RUNNING":
            self._bring_up_static()

    def _write_conf(self, *, running: bool) -> None:
        write_slurm_conf(self._layout, self.configuration, self._machine, running=running)

    def _wait(self, done: Callable[[], bool], timeout_s: float, failed: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            self._check()
            if time.monotonic() > deadline:
                raise ClusterError(f"{failed} within {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def _say(self, line: str) -> None:
        """Log the progress of a long step. Raises `Abandoned` if the cluster is being deleted."""
        self._check()
        log.info("%s", line)

    def _check(self) -> None:
        if self.deleting.is_set():
            raise Abandoned("the cluster is being deleted")
        self.need_own_folder()

    def _configuration(self) -> ClusterConfiguration:
        try:
            return self.record.configuration()
        except (DamagedRecord, InvalidConfiguration):
            if not self.record.status.startswith("DELETE"):
                raise
            return ClusterConfiguration("", "", "", ())  # what is left is deleted without one

    @property
    def _queues(self) -> list[str]:
        return [queue.name for queue in self.configuration.queues]

    @property
    def _static(self) -> set[str]:
        return {node.name for _, _, node in self.configuration.nodes() if node.static}


def instance_id(node: NodeContainer) -> str:
    """An instance id in EC2's form, made from the container's id."""
    return f"i-{node.id[:17]}"
