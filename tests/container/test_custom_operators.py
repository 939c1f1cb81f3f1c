"""Custom C++ operators compute here what they compute on the device, and say that their time there is not known."""

from __future__ import annotations

import pytest
from conftest import SCRIPTS, records

SCRIPT = SCRIPTS / "custom_operator.py"


@pytest.mark.timeout(1500)  # the C++ compiler reads all of torch's headers, once a source
def test_the_mlp_of_the_tutorial_trains_with_its_own_relu_as_with_torchs(torchrun, tmp_path):
    """Forward and backward, ten steps, to the last bit; what a library cannot be is refused with what to do."""
    (said,) = torchrun(
        str(SCRIPT), str(tmp_path), workers=1, timeout_s=1400, WINDTUNNEL_COUNTERS_DIR=str(tmp_path)
    ).said
    assert said["losses"] == said["torchs"]
    assert said["losses"][-1] < 0.8 * said["losses"][0]
    assert (said["difference"], said["again"]) == (0.0, False)
    assert "says torch.float32 of [2, 3]" in said["wrong_shape"]
    assert "a tensor is on cpu, another on the device" in said["on_the_cpu"]
    assert "NotSimulatedError: custom_op.load(multicore=True)" in said["multicore"]
    assert "nowhere.cpp is no file" in said["no_source"]
    assert "compute_srcs and shape_srcs need a C++ source each" in said["no_shape"]
    # Each by itself: a library that is refused is no reason to refuse another, or to end the process.
    assert "NEURON_LIBRARY names nowhere, which the compute sources do not define" in said["no_kernel"]
    assert (
        "Only a single TORCH_LIBRARY can be used to register the namespace tutorial"
        in said["of_the_same_name"]
    )
    assert "built anew after this process had loaded it" in said["built_anew"]
    found = records(tmp_path, "finding")
    operators = {record["cause"]: record for record in found if record["finding"] == "custom_operator"}
    number = next(n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if "# line: forward" in text)
    forward = operators["tutorial::relu_forward"]
    assert (forward["line"], forward["count"]) == (f"custom_operator.py:{number}", 20)
    assert "not modelled" in forward["message"]
    # It ends the graph, and is no value that the script reads.
    assert not any("relu" in record["message"] for record in found if record["finding"] == "host_read")
    assert not [record for record in found if record["finding"] == "cpu_fallback"]
