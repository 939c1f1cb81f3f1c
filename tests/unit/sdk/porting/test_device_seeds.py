"""The device's own random numbers: what seeds them, and what keeps their state."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_data_without_loader import ON_DEVICE, told
from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import said


@pytest.mark.parametrize(
    ("other", "is_seeded"),
    [
        ("torch.set_rng_state(torch.get_rng_state())", False),
        ("mine.set_rng_state(1)", False),
        ("import torch_xla.core.xla_model as xm\nxm.set_rng_state(1)", True),
        ("import torch_xla\ntorch_xla.manual_seed(1)", True),
    ],
)
def test_a_seed_of_the_gpu_beside_another(other: str, is_seeded: bool) -> None:
    """torch.set_rng_state is of the host's numbers: beside it the device still needs a seed."""
    text = changed(f"import torch\ntorch.cuda.manual_seed(0)\n{other}\n")
    assert ("xm.set_rng_state(0)" in text) is not is_seeded


def test_the_hosts_state_is_not_the_devices() -> None:
    """Restoring it by rank tells the device's numbers apart no more than torch.manual_seed does."""
    assert told(ON_DEVICE + "torch.set_rng_state(states[rank])\n")
    assert told(ON_DEVICE + "torch_xla.manual_seed(rank)\n") == []


@pytest.mark.parametrize("call", ["get_rng_state_all()", "set_rng_state_all(kept)", "get_rng_state()"])
def test_the_state_that_a_checkpoint_keeps(call: str) -> None:
    """torch_xla has one, too: a script that resumes need not do without."""
    (found,) = said(f"import torch\nstate = torch.cuda.{call}\n", "rng_state")
    assert "xm.get_rng_state() gives" in found and "xm.set_rng_state(number) sets it" in found
    assert "Leave it out" not in found
