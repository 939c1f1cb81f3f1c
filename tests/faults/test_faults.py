"""Rounds of the fault test: `tests/benchmarks/faults.py` plays 200 of them, this a few."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.faults.engine import can_run
from tests.faults.rounds import JobStage
from tests.faults.stage import KINDS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not can_run(), reason="a second Docker engine needs root, dockerd and unshare"),
]
SEED = 7
ROUNDS = tuple(enumerate([*KINDS, *KINDS]))


@pytest.fixture(scope="module")
def stage() -> Iterator[JobStage]:
    """A server and an engine that may be killed."""
    with JobStage(random.Random(SEED)) as stage:  # noqa: S311 - reproducible, not secret
        yield stage


@pytest.mark.parametrize(("number", "kind"), ROUNDS)
def test_nothing_is_lost(stage: JobStage, number: int, kind: str) -> None:
    """Four jobs at once and one SIGKILL: right states, whole artifacts, each line once and in order, no remains."""
    played = stage.play(kind)
    assert played.faults == [], f"{kind} at {played.moment_s:.2f} s; {stage.backend.output()[-6000:]}"


def test_an_orderly_end_leaves_nothing(stage: JobStage) -> None:
    """Not even the network that all jobs of the home had been on."""
    stage.backend.stop()
    left = {network["Name"] for network in stage.engine.client().api.networks()}
    assert left == {"bridge", "host", "none"}
