"""Which cores of its host a process asks for. Pure.

Forms and defaults: AWS Neuron documentation, "Neuron Runtime configuration". A process that
does not say gets all cores; NEURON_RT_VISIBLE_CORES wins over NEURON_RT_NUM_CORES.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from neuron_sim.errors import TopologyError
from neuron_sim.settings import CoreWish

_PART = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class CoreRequest:
    """``cores``: exactly these; None: any ``count`` cores."""

    cores: tuple[int, ...] | None
    count: int

    @property
    def text(self) -> str:
        """As the Neuron runtime writes it: ``lnc0-lnc3``, or a number."""
        if self.cores is None:
            return str(self.count)
        return ",".join(f"lnc{first}-lnc{last}" for first, last in spans(self.cores))


def request(wish: CoreWish, available: int, instance_type: str) -> CoreRequest:
    """The request of a process on a host with cores ``0 .. available - 1``.

    Raises:
        TopologyError: a variable is malformed, or names a core that the host does not have.
    """
    if wish.visible_cores:
        cores = visible_cores(wish.visible_cores)
        outside = [core for core in cores if core >= available]
        if outside:
            raise TopologyError(
                f"NEURON_RT_VISIBLE_CORES={wish.visible_cores} names NeuronCore {outside[0]}, but {instance_type} "
                f"has cores 0 to {available - 1} here. Name only those, or choose a larger instance_type or "
                "local_cores."
            )
        return CoreRequest(cores, len(cores))
    if wish.num_cores and wish.num_cores != "0":
        if not wish.num_cores.isdigit():
            raise TopologyError(
                f"NEURON_RT_NUM_CORES={wish.num_cores!r} is not a number of NeuronCores. Give 1 to {available}, "
                "or 0 for all."
            )
        return CoreRequest(None, int(wish.num_cores))
    return CoreRequest(None, available)


def visible_cores(text: str) -> tuple[int, ...]:
    """The cores of ``"0"``, ``"0-3"`` or ``"0,2,4-6"``, sorted, each once.

    Raises:
        TopologyError: the text has another form.
    """
    cores: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise TopologyError(
                f"NEURON_RT_VISIBLE_CORES={text!r} cannot be read at {part.strip()!r}. Give a core (0), a range "
                "(0-3) or a list of both (0,2,4-6)."
            )
        cores.update(range(first, last + 1))
    return tuple(sorted(cores))


def spans(cores: tuple[int, ...]) -> list[tuple[int, int]]:
    """The (first, last) of each run of consecutive cores; the cores must be sorted."""
    found: list[tuple[int, int]] = []
    for core in cores:
        if found and core == found[-1][1] + 1:
            found[-1] = (found[-1][0], core)
        else:
            found.append((core, core))
    return found
