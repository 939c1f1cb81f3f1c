"""A host's container as data, of which a test says what matters to it."""

from __future__ import annotations

from typing import Any

from windtunnel_local.service.ground.containers import ContainerPlan


def container_plan(**members: Any) -> ContainerPlan:
    """Of ``job`` on ``algo-1``, without files, user, network and limits; ``members`` replace its own."""
    plain = {"job": "job", "host": "algo-1", "image": "image", "command": ("train",), "environment": {}}
    least = {"mounts": (), "user": None, "network": None, "memory_bytes": None, "shm_bytes": 64 << 20}
    return ContainerPlan(**{**plain, **least, **members})
