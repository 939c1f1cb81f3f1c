"""Rounds of the fault test of endpoints: `tests/benchmarks/endpoint_faults.py` plays 50 of them, this a few."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.faults.endpoint_rounds import EndpointStage
from tests.faults.engine import can_run
from tests.faults.serving import KINDS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not can_run(), reason="a second Docker engine needs root, dockerd and unshare"),
]
SEED = 7


@pytest.fixture(scope="module")
def stage() -> Iterator[EndpointStage]:
    """An endpoint on a server and an engine that may be killed."""
    with EndpointStage(random.Random(SEED)) as stage:  # noqa: S311 - reproducible, not secret
        yield stage


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_by_itself(stage: EndpointStage, kind: str) -> None:
    """No request hangs or gets another's answer, and each that fails says so as AWS does."""
    played = stage.play(kind)
    assert played.faults == [], stage.backend.output()[-4000:]
    assert played.answered > 0


def test_deleting_leaves_nothing(stage: EndpointStage) -> None:
    """No container and no folder of all that there were."""
    assert stage.left() == []
