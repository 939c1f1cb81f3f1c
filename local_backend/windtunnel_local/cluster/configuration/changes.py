"""List what an update changes, key by key, and whether ParallelCluster would do it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .key import Change, Key
from .keys import CLUSTER
from .model import DEFAULT_MAX_COUNT, DEFAULT_MIN_COUNT

NOTHING = "-"
"""ParallelCluster's word for a missing value."""
_STOP = "Stop the compute fleet (pcluster update-compute-fleet --status STOP_REQUESTED)"


@dataclass(frozen=True)
class KeyChange:
    """One changed key. ``refusal``: why the change cannot be made now, and what to do; None: it can."""

    parameter: str
    """``Scheduling.SlurmQueues[compute1].ComputeResources[queue1-i1].MaxCount``."""
    requested: Any
    current: Any
    refusal: str | None


def changes(before: Mapping[str, Any], after: Mapping[str, Any], *, fleet_stopped: bool) -> list[KeyChange]:
    """All differences between two documents without mistakes, in the order of the schema."""
    slurm = after.get("Scheduling", {}).get("SlurmSettings", {})
    strategy = slurm.get("QueueUpdateStrategy", "COMPUTE_FLEET_STOP")
    return list(_Comparison(fleet_stopped, strategy).of_section(before, after, CLUSTER, "", "never"))


@dataclass(frozen=True)
class _Comparison:
    fleet_stopped: bool
    strategy: str

    def of_section(
        self, before: Mapping[str, Any], after: Mapping[str, Any], section: Key, path: str, above: Change
    ) -> Iterator[KeyChange]:
        for name, key in section.keys.items():
            old, new = before.get(name), after.get(name)
            place = f"{path}.{name}" if path else name
            # What is said of adding and removing members is not said of the keys in them.
            when: Change = key.change or ("strategy" if above == "growing" else above)
            if key.kind == "section":
                yield from self.of_section(old or {}, new or {}, key, place, when)
            elif key.named_by:
                yield from self._of_list(old or [], new or [], key, place, when)
            elif old != new:
                grows = when == "growing" and _grows(name, before, after)
                yield self._change(place, old, new, when, grows=grows)

    def _of_list(
        self, old: list[Any], new: list[Any], key: Key, path: str, when: Change
    ) -> Iterator[KeyChange]:
        named = {member.get(key.named_by): member for member in old}
        for member in new:
            name = member.get(key.named_by)
            if name in named:
                section = key.of or Key("section")
                yield from self.of_section(named.pop(name), member, section, f"{path}[{name}]", when)
            else:
                yield self._change(path, None, member, when, grows=True)
        for member in named.values():
            yield self._change(path, member, None, when, grows=False)

    def _change(self, path: str, old: Any, new: Any, when: Change, *, grows: bool) -> KeyChange:
        return KeyChange(
            path,
            NOTHING if new is None else new,
            NOTHING if old is None else old,
            self._refusal(path, old, when, grows=grows),
        )

    def _refusal(self, path: str, old: Any, when: Change, *, grows: bool) -> str | None:
        key = path.rpartition(".")[2]
        if when == "never":
            back = f"Remove {key}" if old is None else f"Set {key} back to {old!r}"
            return f"{key} of a cluster cannot be changed. {back}, or create another cluster."
        if when == "always" or self.fleet_stopped or (when == "growing" and grows):
            return None
        if when == "stopped":
            return f"All compute nodes must be stopped. {_STOP}."
        if when == "growing":
            if self.strategy == "TERMINATE":
                return None
            return f"All compute nodes must be stopped. {_STOP}, or set QueueUpdateStrategy to TERMINATE."
        if self.strategy != "COMPUTE_FLEET_STOP":
            return None
        return f"All compute nodes must be stopped. {_STOP}, or set QueueUpdateStrategy."


def _grows(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether new counts remove no node. Node names have static or dynamic in them, so MinCount takes from MaxCount."""
    most = after.get("MaxCount", DEFAULT_MAX_COUNT) - before.get("MaxCount", DEFAULT_MAX_COUNT)
    least = after.get("MinCount", DEFAULT_MIN_COUNT) - before.get("MinCount", DEFAULT_MIN_COUNT)
    return bool(most >= 0 if name == "MaxCount" else most >= least)
