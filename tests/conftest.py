"""What holds for all tests."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure: how long an example takes is for the benchmarks to say. Fixtures that are made once
# for all examples of a test are meant so. Half of Hypothesis's own number of examples: each run draws others.
settings.register_profile(
    "windtunnel",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("windtunnel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for containers or nodes begin first: with several workers the others fill the gaps."""
    items.sort(
        key=lambda item: not {"docker", "notebook", "slurm"} & {mark.name for mark in item.iter_markers()}
    )


def pytest_collection() -> None:
    """What is loaded from here on stays: to look through it again and again took a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor later, where it took a tenth of the processor time."""
    gc.freeze()
    gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """A name for bytes that does not hold them.

    An archive holds the time at which it was made: each worker would collect a test of another name, and
    pytest-xdist would end there.
    """
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None
