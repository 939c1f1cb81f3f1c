"""A cluster's YAML file, as AWS ParallelCluster 3 takes it: read, checked, compared.

model.py      what has an effect here: queues, nodes, shared folders
keys.py       the table of all keys of ParallelCluster's schema
document.py   YAML with the line of each key
shape.py      keys, types and ranges of a document, held against the table
rules.py      what spans several keys: names, counts, mount points
reading.py    `read`: all of it
changes.py    what an update changes, and whether it may
"""

from __future__ import annotations

from .changes import KeyChange, changes
from .document import LONGEST
from .model import ClusterConfiguration, ComputeResource, Node, Queue, SharedFolder
from .reading import DEFAULT_REGION, Read, read, read_all

__all__ = [
    "DEFAULT_REGION",
    "LONGEST",
    "ClusterConfiguration",
    "ComputeResource",
    "KeyChange",
    "Node",
    "Queue",
    "Read",
    "SharedFolder",
    "changes",
    "read",
    "read_all",
]
