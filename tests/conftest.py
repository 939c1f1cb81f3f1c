"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no failure: how long an example takes is for the benchmarks to say.
settings.register_profile("windtunnel", deadline=None)
settings.load_profile("windtunnel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for containers begin first: with several workers the others fill the gaps."""
    items.sort(key=lambda item: not {"docker", "notebook"} & {mark.name for mark in item.iter_markers()})
