"""Rules that stand in several parts, because these parts must not import each other, are the same rules."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from neuron_sim.counters.records import CollectiveKind
from windtunnel.priceperf.model.collectives import PASSES
from windtunnel.priceperf.money import billing as modelled_billing
from windtunnel_local.service.ground.billed_time import billable_seconds
from windtunnel_local.service.ground.job import Lifecycle, Transition

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@given(milliseconds=st.integers(1, 10**9))
def test_describe_and_the_model_bill_by_one_rule(milliseconds: int) -> None:
    """A begun second counts, at the milliseconds in which times are kept."""
    end = START + timedelta(milliseconds=milliseconds)
    ran = (Transition("Downloading", START, end, ""),)
    ended = Lifecycle("Completed", "Completed", ran, START, end, training_start=START, training_end=end)
    assert billable_seconds(ended) == modelled_billing.billable_seconds(milliseconds / 1000)


def test_every_kind_of_collective_that_is_counted_has_a_price() -> None:
    """A new collective of the simulator is not priced as something else."""
    assert set(get_args(CollectiveKind)) == set(PASSES)
