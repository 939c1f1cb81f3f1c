"""What both command lines of clusters need: the clusters of the settings' home, and how to print."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator

from windtunnel_local.cluster.configuration import DEFAULT_REGION, Read
from windtunnel_local.cluster.errors import ClusterNotFound
from windtunnel_local.cluster.fleet import Processes
from windtunnel_local.cluster.operations import Clusters
from windtunnel_local.cluster.record import ClusterState
from windtunnel_local.runner.variables import Variables
from windtunnel_local.settings import Settings

_POLL_S = 0.1
_LOOK_S = 2.0


def clusters_of(settings: Settings) -> Clusters:
    """The clusters of a home. A configuration without a region gets that of AWS's own variables."""
    given = Variables(settings.environment)
    region = given.text("AWS_DEFAULT_REGION") or given.text("AWS_REGION") or DEFAULT_REGION
    return Clusters(settings.home, Processes(settings), region)


def states(
    clusters: Clusters, name: str, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[ClusterState]:
    """A cluster's states from now on, as they change, until it is gone.

    Blocks between two states. Meanwhile it calls ``meanwhile``, and restarts the cluster's process if that was killed.
    """
    cluster, last, looked = clusters.by_name(name), None, time.monotonic()
    while True:
        meanwhile()
        try:
            state = cluster.state
        except ClusterNotFound:
            return
        if state != last:
            yield state
        last = state
        if time.monotonic() - looked > _LOOK_S:
            clusters.see_to(cluster, state)
            looked = time.monotonic()
        time.sleep(_POLL_S)


def say(text: str) -> None:
    """Print a line for people, to stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def print_json(answer: object) -> None:
    print(json.dumps(answer, indent=2), flush=True)  # noqa: T201


def say_where(name: str, read: Read) -> None:
    """Say that nothing is created on AWS, and which keys of the file have no effect here."""
    say(f"Nothing is created on AWS: cluster {name} is simulated on this machine, in containers.")
    idle = read.configuration.without_effect
    if idle:
        say(f"Without effect here: {', '.join(idle)}.")
