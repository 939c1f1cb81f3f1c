"""WINDTUNNEL_SIMULATE_AUTO_CAST=1: products round their inputs as NEURON_CC_FLAGS' --auto-cast asks."""

from __future__ import annotations

import pytest
from conftest import records


@pytest.mark.parametrize(("dtype", "digits"), [("bf16", 8), ("fp16", 11), ("tf32", 11)])
def test_products_round_their_inputs_forward_and_backward(torchrun, tmp_path, dtype, digits):
    """Each result and gradient is that of rounded inputs, to fp32's own error, and not that of whole ones.

    The counters tell the dtype that the script's own flags ask for.
    """
    launch = torchrun(
        "auto_cast.py",
        dtype,
        workers=1,
        WINDTUNNEL_SIMULATE_AUTO_CAST="1",
        WINDTUNNEL_COUNTERS_DIR=str(tmp_path),
    )
    assert {graph["fp32_products"] for graph in records(tmp_path, "graph")} == {dtype}
    (said,) = launch.said
    for name, found in said["cases"].items():
        assert max(found["rounded"]) < 2e-5, (name, found)
        products = found["whole"][:3]  # a bias has a sum for its gradient, not a product
        assert min(products) > 2.0**-digits / 4, (name, found)
        assert all(difference < 2e-5 for difference in found["whole"][3:]), (name, found)
    if dtype != "tf32":
        missed, products = said["exposed"]
        assert (missed, products > 15) == (0, True)
    assert f"are rounded to {dtype}, forward and backward" in launch.output
    assert "its effect on results is not simulated" not in launch.output


@pytest.mark.parametrize(("dtype", "variable"), [("none", "1"), ("bf16", "0")])
def test_without_cast_or_wish_all_is_fp32(torchrun, dtype, variable):
    """Neuron's default since 2.27 casts nothing; and what is not asked for is not done."""
    launch = torchrun("auto_cast.py", dtype, workers=1, WINDTUNNEL_SIMULATE_AUTO_CAST=variable)
    (said,) = launch.said
    assert max(max(found["whole"]) for found in said["cases"].values()) < 2e-5
    missed, products = said["exposed"]
    assert missed == products > 15
    assert ("NEURON_CC_FLAGS ask for no cast" in launch.output) == (variable == "1")
