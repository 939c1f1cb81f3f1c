"""What can go wrong with a cluster, as the command lines say it.

ClusterError                a WindtunnelError: `pcluster` prints it as {"message": ...}
├── BadRequest              the request makes no sense as things stand
├── Conflict                another operation on the cluster is under way
├── ClusterNotFound         no cluster of that name
├── DamagedRecord           what is written of the cluster cannot be read: it can only be deleted
└── InvalidConfiguration    the YAML file has mistakes; ``problems`` holds all of them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.ground.errors import WindtunnelError


class ClusterError(WindtunnelError):
    """Root of a cluster's own errors."""


class BadRequest(ClusterError):
    """The request cannot be done as the cluster stands. ParallelCluster begins its words so."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Bad Request: {text}")


class Conflict(ClusterError):
    """Another operation on the cluster is under way."""


class ClusterNotFound(ClusterError):
    """No cluster of that name in this home."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Cluster '{name}' does not exist or belongs to an incompatible ParallelCluster major version."
        )
        self.name = name


class DamagedRecord(ClusterError):
    """A file that says what the cluster is cannot be read; deleting it needs none."""

    def __init__(self, path: Path, why: object) -> None:
        name = path.parent.name
        super().__init__(
            f"{path} is damaged ({why}). Delete the cluster with all that is in it (windtunnel cluster delete "
            f"{name}), then create it again."
        )


@dataclass(frozen=True)
class Problem:
    """One mistake in a configuration file. ``kind``: the validator of ParallelCluster that would find it."""

    file: str
    line: int
    path: str
    text: str
    kind: str = "ConfigSchemaValidator"

    def __str__(self) -> str:
        where = f" {self.path}:" if self.path else ""
        return f"{self.file}:{self.line}:{where} {self.text}"


class InvalidConfiguration(ClusterError):
    """The configuration has mistakes: ``problems``, at least one, in the order of the file.

    ``level``: ERROR; WARNING where the caller wants warnings to be mistakes.
    """

    def __init__(self, problems: Sequence[Problem], level: str = "ERROR") -> None:
        self.problems = tuple(problems)
        self.level = level
        super().__init__("Invalid cluster configuration.\n" + "\n".join(map(str, self.problems)))
