"""Slurm's own commands, run in the head node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.layout import PROGRAMS
from windtunnel_local.cluster.nodes import Nodes
from windtunnel_local.cluster.slurm_conf import HEAD

_WITHOUT_POWER = ("~", "%")
"""The last characters of sinfo's state for a node that is powered down or powering down."""
_READY = (
    "idle",
    "allocated",
    "mixed",
    "completing",
    "draining",
    "drained",
    "inactive",
    "planned",
    "reserved",
)


class Slurm:
    """The cluster's Slurm. All calls block, and raise ``ClusterError`` where the controller does not answer."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def wait_until_up(self, timeout_s: float) -> None:
        """Wait until the controller and sshd answer."""
        self._call(f"{PROGRAMS}/wait-until-up.sh", str(int(timeout_s)))

    def states(self) -> dict[str, str]:
        """sinfo's state by node, such as ``idle~``."""
        said = self._call("sinfo", "--noheader", "--Node", "--format=%N %T")
        pairs = (line.split() for line in said.splitlines())
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}

    def powered(self) -> set[str]:
        """The nodes that Slurm has powered up or is powering up."""
        return {node for node, state in self.states().items() if is_powered(state)}

    def set_partitions(self, names: Iterable[str], state: str) -> None:
        """Set all partitions to ``UP``, or to ``INACTIVE``, in which no job starts."""
        for name in names:
            self._call("scontrol", "update", f"PartitionName={name}", f"State={state}")

    def set_nodes(self, names: Sequence[str], state: str, reason: str = "") -> None:
        """Change the state of nodes; ``state`` is Slurm's word. Without nodes nothing is called."""
        if names:
            why = [f"Reason={reason}"] if reason else []
            self._call("scontrol", "update", f"NodeName={','.join(names)}", f"State={state}", *why)

    def restart(self, timeout_s: float) -> None:
        """Restart the controller, so that it reads a configuration with other nodes: it does so only at its start."""
        self._call(f"{PROGRAMS}/restart-slurmctld.sh", str(int(timeout_s)))
        self._call("scontrol", "reconfigure")

    def _call(self, *command: str) -> str:
        code, said = self._nodes.run(HEAD, command)
        if code:
            raise ClusterError(
                f"`{' '.join(command)}` failed on the head node (exit code {code}): {said.strip()}"
            )
        return said


def is_powered(state: str) -> bool:
    """Whether a node in that state runs or is powering up."""
    return not state.endswith(_WITHOUT_POWER)


def not_ready(wanted: Iterable[str], states: Mapping[str, str]) -> list[str]:
    """The wanted nodes that have not registered with the controller."""
    return [node for node in wanted if states.get(node, "unknown") not in _READY]
