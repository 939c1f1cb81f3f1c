"""Neuron's own variables, as a script or a shell sets them, and those of an endpoint."""

from __future__ import annotations

import pytest

from neuron_sim import settings
from neuron_sim.errors import NeuronSimError


def test_stochastic_rounding_is_off_unless_asked_for() -> None:
    """Absent, empty and 0 mean round-to-nearest; the seed is 0 when nobody sets one."""
    for environment in (
        {},
        {"NEURON_RT_STOCHASTIC_ROUNDING_EN": ""},
        {"NEURON_RT_STOCHASTIC_ROUNDING_EN": "0"},
    ):
        asked = settings.stochastic_rounding(environment)
        assert (asked.enabled, asked.seed, asked.bf16_by_environment) == (False, 0, False)


@pytest.mark.parametrize("switch", ["1", "true", "TRUE"])
def test_stochastic_rounding_takes_a_seed(switch: str) -> None:
    """The documented forms of a Neuron switch, and any seed of 32 bits."""
    asked = settings.stochastic_rounding(
        {
            "NEURON_RT_STOCHASTIC_ROUNDING_EN": switch,
            "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "4294967295",
            "XLA_DOWNCAST_BF16": "1",
        }
    )
    assert (asked.enabled, asked.seed, asked.bf16_by_environment) == (True, 4294967295, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEURON_RT_STOCHASTIC_ROUNDING_EN", "maybe"),
        ("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "-1"),
        ("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "4294967296"),
    ],
)
def test_nonsense_is_refused_with_the_name_of_the_variable(name: str, value: str) -> None:
    """And with what it may be."""
    with pytest.raises(NeuronSimError, match=name):
        settings.stochastic_rounding({name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("SAGEMAKER_MODEL_SERVER_WORKERS", "many"), ("SAGEMAKER_MODEL_SERVER_TIMEOUT", "0")]
)
def test_a_setting_of_an_endpoint_that_makes_no_sense_is_named(name: str, value: str) -> None:
    """`serve` reads all of them before it starts anything."""
    with pytest.raises(NeuronSimError, match=f"{name}='{value}' is not a positive"):
        settings.serving({name: value})
