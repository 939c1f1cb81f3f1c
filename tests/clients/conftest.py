"""Clients with packages of their own, each in an empty home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.environments import environment
from tests.clients.places import Place, loopback_only


@pytest.fixture(scope="session")
def prefix() -> Iterator[list[str]]:
    """Runs a command without a network, where this user may do so."""
    with loopback_only() as prefix:
        yield prefix


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, prefix: list[str]) -> Iterator[Callable[..., Place]]:
    """Makes the place of a client by the name of its requirements; its backend ends with the module."""
    places: list[Place] = []

    def make(client: str, *, calls_containers: bool = False) -> Place:
        # Ports of containers are this machine's: the server of a place without its network cannot call them.
        home: Path = tmp_path_factory.mktemp(client)
        places.append(Place(home, environment(client), [] if calls_containers else prefix))
        return places[-1]

    yield make
    for made in places:
        made.left()
