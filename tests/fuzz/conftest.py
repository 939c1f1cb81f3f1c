"""One server for all tests of this folder: they only ask, and what they ask may be anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.campaign import Target, target


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server process with a home of its own."""
    with target(tmp_path_factory.mktemp("fuzz") / "home") as running:
        yield running
