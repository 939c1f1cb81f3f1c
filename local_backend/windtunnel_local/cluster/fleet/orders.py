"""What the background process may be asked, by whom, and how an order is read: pure."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from windtunnel_local.cluster.errors import ClusterError

POWER = ("resume", "suspend")
"""What Slurm asks: the only orders that are heard from inside of a cluster."""
COMMANDS = ("stop-fleet", "start-fleet", "update", "delete", "instances", *POWER)
"""What the commands of this machine's user may ask."""
LONGEST_ORDER = 1 << 20


class BadOrder(ClusterError):
    """No order, or one that may not be given there."""


@dataclass(frozen=True)
class Order:
    """``nodes``: of `POWER` alone."""

    do: str
    nodes: tuple[str, ...] = ()


def read_order(line: bytes, allowed: Collection[str], nodes: Collection[str]) -> Order:
    """One line as an order.

    Args:
        line: a JSON object.
        allowed: what may be asked there.
        nodes: those of the configuration; an order that names another is refused as a whole.

    Raises:
        BadOrder: with the reason.
    """
    try:
        given = json.loads(line)
    except ValueError as error:
        raise BadOrder(f"an order is one JSON object a line, and this is none: {error}") from error
    if not isinstance(given, dict) or given.get("do") not in allowed:
        asked = given.get("do") if isinstance(given, dict) else given
        raise BadOrder(f"{asked!r} cannot be ordered here; one of: {', '.join(allowed)}")
    if given["do"] not in POWER:
        return Order(given["do"])
    named = given.get("nodes")
    if not isinstance(named, list) or not named:
        raise BadOrder(f"{given['do']} needs the names of nodes, in a list")
    unknown = [name for name in named if not isinstance(name, str) or name not in nodes]
    if unknown:
        raise BadOrder(f"the cluster has no node {unknown[0]!r}")
    return Order(given["do"], tuple(named))
