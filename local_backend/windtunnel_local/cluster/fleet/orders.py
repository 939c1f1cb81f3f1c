"""The orders of the background process, who may give them, and how one is parsed. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from windtunnel_local.cluster.errors import ClusterError

POWER = ("resume", "suspend")
"""Orders of Slurm: the only ones that are taken from inside of a cluster."""
COMMANDS = ("stop-fleet", "start-fleet", "update", "delete", "instances", *POWER)
"""Orders of commands of this machine's user."""
LONGEST_ORDER = 1 << 20


class BadOrder(ClusterError):
    """The line is no order, or one that this socket does not take."""


@dataclass(frozen=True)
class Order:
    """``nodes``: of `POWER` alone."""

    do: str
    nodes: tuple[str, ...] = ()


def read_order(line: bytes, allowed: Collection[str], nodes: Collection[str]) -> Order:
    """Parse one line as an order.

    Args:
        line: a JSON object.
        allowed: the orders that this socket takes.
        nodes: all nodes of the configuration. An order that names another node is refused as a whole.

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
