"""When each node of a cluster ran: ``nodes.jsonl`` in the cluster's folder, for the bill.

One JSON object a line, written whole, oldest first:

    {"node": "q-dy-r-1", "instance_type": "trn1.32xlarge", "event": "up", "time": "2026-11-23T02:30:00.000Z"}

``event``: ``up`` when the node's container has been started (EC2 would bill from here on), ``down`` when it is gone.
The background process appends one for each start and stop; whoever reads takes an ``up`` after an ``up`` as a node
that was lost and came back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

Event = Literal["up", "down"]

FILE = "nodes.jsonl"
"""In the cluster's folder."""


@dataclass(frozen=True)
class NodeEvent:
    """A node was started, or is gone. ``instance_type``: EC2's name."""

    node: str
    instance_type: str
    event: Event
    time: datetime


@dataclass(frozen=True)
class UpTime:
    """A node ran ``since`` until ``until``; None: it still runs. ``instance_type``: EC2's name."""

    node: str
    instance_type: str
    since: datetime
    until: datetime | None


def append(folder: Path, node: str, instance_type: str, event: Event, time: datetime | None = None) -> None:
    """Note that a node of the cluster in ``folder`` was started or is gone; now, unless a time is given.

    Raises:
        OSError: the file cannot be written.
    """
    moment = (time or datetime.now(timezone.utc)).astimezone(timezone.utc)
    stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"node": node, "instance_type": instance_type, "event": event, "time": stamp})
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def read(folder: Path) -> tuple[NodeEvent, ...]:
    """All events, oldest first; none where nothing was written. A line cut short by a crash is left out."""
    try:
        lines = (folder / FILE).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(sorted(_events(lines), key=lambda event: event.time))


def up_times(events: Iterable[NodeEvent]) -> tuple[UpTime, ...]:
    """The times in which nodes ran, by their start. ``events``: oldest first."""
    found: list[UpTime] = []
    running: dict[str, NodeEvent] = {}
    for event in events:
        began = running.pop(event.node, None)
        if began is not None:
            found.append(UpTime(event.node, began.instance_type, began.time, event.time))
        if event.event == "up":
            running[event.node] = event
    found += [UpTime(name, began.instance_type, began.time, None) for name, began in running.items()]
    return tuple(sorted(found, key=lambda up: (up.since, up.node)))


def _events(lines: Iterable[str]) -> Iterable[NodeEvent]:
    for line in lines:
        try:
            given = json.loads(line)
            node, kind, what = given["node"], given["instance_type"], given["event"]
            moment = datetime.fromisoformat(given["time"].replace("Z", "+00:00"))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(node, str) and isinstance(kind, str) and what in ("up", "down") and moment.tzinfo:
            yield NodeEvent(node, kind, what, moment)
