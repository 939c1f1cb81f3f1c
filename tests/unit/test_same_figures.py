"""Facts that stand in several parts, because these parts must not import each other, are the same facts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf.instances.catalog import instance_type
from windtunnel.priceperf.money import billing as modelled_billing
from windtunnel_local.service.ground.billed_time import billable_seconds
from windtunnel_local.service.ground.job import Lifecycle, Transition
from windtunnel_local.service.request.instances import INSTANCES

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("name", INSTANCES)
def test_backend_catalog_and_simulator_know_the_same_instances(name: str) -> None:
    """Cores and memory: what runs, what is modelled and what `neuron-ls` says."""
    from neuron_sim import topology

    ours, catalog, simulated = INSTANCES[name], instance_type(name), topology.instance(name)
    assert ours.neuron_cores == catalog.core_count == simulated.cores
    assert ours.host_memory_gib == catalog.host_memory.value
    assert simulated.devices == catalog.accelerators.value
    assert simulated.vcpus == catalog.vcpus.value
    assert (
        simulated.devices * simulated.memory_per_device_bytes
        == catalog.accelerator_memory.value * topology.GIB
    )


def test_the_simulator_has_every_instance_that_the_backend_accepts_and_no_other() -> None:
    """A type that is accepted but not simulated would fail inside the container."""
    from neuron_sim import topology

    assert {f"ml.{name}" for name in topology.INSTANCES} == set(INSTANCES)


@given(milliseconds=st.integers(1, 10**9))
def test_describe_and_the_model_bill_by_one_rule(milliseconds: int) -> None:
    """A begun second counts, at the milliseconds in which times are kept."""
    end = START + timedelta(milliseconds=milliseconds)
    ran = (Transition("Downloading", START, end, ""),)
    ended = Lifecycle("Completed", "Completed", ran, START, end, training_start=START, training_end=end)
    assert billable_seconds(ended) == modelled_billing.billable_seconds(milliseconds / 1000)
