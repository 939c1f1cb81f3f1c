"""Keep the wanted compute nodes running, and no others, by comparing again and again.

An order only changes which nodes are wanted. The keeper compares them with the containers that run. So a node that
dies is replaced, an engine's absence is made up for, and an order that comes twice does nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.nodes import NodeContainer
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.service.ground.errors import WindtunnelError

_LOOK_S = 5.0
_TOGETHER = 4
log = logging.getLogger("windtunnel.cluster")


class Containers(Protocol):
    """The part of `Nodes` that the keeper uses."""

    def found(self) -> Mapping[str, NodeContainer]:
        """All containers, by node."""

    def remove(self, node: str) -> None:
        """Kill and remove a node. Idempotent."""


class Duties(Protocol):
    """What the keeper's owner does for it. Called in the keeper's thread or in a thread of its own."""

    def look(self) -> None:
        """Called before every look at the containers."""

    def say_lost(self, names: Sequence[str]) -> None:
        """Called with wanted nodes that do not run, before they are started."""

    def start_node(self, name: str) -> None:
        """Make a node and start it."""


class Keeper:
    """One cluster's compute nodes. `want` and its like may be called from any thread and do not block."""

    def __init__(self, folder: Path, nodes: Containers, duties: Duties, look_s: float = _LOOK_S) -> None:
        """Does nothing before `begin`. ``folder``: of the cluster; its log of nodes is written there."""
        self._look_s = look_s
        self._folder = folder
        self._nodes = nodes
        self._duties = duties
        self._wanted: set[str] = set()
        self._changes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self.failures: dict[str, str] = {}
        """Why a node could not be started the last time."""

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop the keeper; blocks while it looks at containers. Idempotent."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def wanted(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._wanted)

    @property
    def changes(self) -> int:
        """How often the wanted nodes were changed."""
        with self._lock:
            return self._changes

    def want(self, names: Iterable[str]) -> None:
        """Add nodes to those that are to run."""
        self._change(lambda wanted: wanted.union(names))

    def unwant(self, names: Iterable[str]) -> None:
        """Remove nodes from those that are to run."""
        self._change(lambda wanted: wanted.difference(names))

    def want_only(self, names: Iterable[str], since: int | None = None) -> None:
        """Set the nodes that are to run. Does nothing if `changes` is no longer ``since``: a newer order wins."""
        self._change(lambda _: set(names), since)

    def _change(self, changed: Callable[[set[str]], set[str]], since: int | None = None) -> None:
        with self._lock:
            if since is not None and since != self._changes:
                return
            self._changes += since is None
            self._wanted = changed(self._wanted)
        self._wake.set()

    def _keep(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(self._look_s)
            self._wake.clear()
            if self._ended.is_set():
                return
            try:
                self._duties.look()
                self._make_so()
            except (WindtunnelError, OSError) as error:
                log.warning("%s", error)
            except Exception:  # whatever it is, the nodes go on being kept
                log.exception("a look at the nodes failed")

    def _make_so(self) -> None:
        found = {name: node for name, node in self._nodes.found().items() if name != HEAD}
        wanted = self.wanted
        gone = [
            node
            for name, node in found.items()
            if name not in wanted or node.state not in ("running", "created")
        ]
        missing = [name for name in wanted if name not in found or found[name].state != "running"]
        if not gone and not missing:
            return
        if missing:
            self._duties.say_lost(missing)
        with ThreadPoolExecutor(_TOGETHER) as pool:
            list(pool.map(self._remove, gone))
            list(pool.map(self._begin, missing))

    def _remove(self, node: NodeContainer) -> None:
        try:
            self._nodes.remove(node.node)
            node_log.append(self._folder, node.node, node.instance_type, "down")
        except (WindtunnelError, OSError) as error:
            log.warning("node %s is not removed: %s", node.node, error)
        else:
            log.info("node %s is gone (it was %s)", node.node, node.state)

    def _begin(self, name: str) -> None:
        try:
            self._duties.start_node(name)
        except (WindtunnelError, OSError) as error:
            self.failures[name] = str(error)
            log.warning("node %s does not start: %s", name, error)
        else:
            self.failures.pop(name, None)
            log.info("node %s runs", name)
