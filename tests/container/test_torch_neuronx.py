"""torch_neuronx: traced inference works, with the limits of the real one; the rest is refused by name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conftest import FORKED, SCRIPTS


def run(script: str, said: Path) -> dict:
    """Without torchrun, as inference is: one process has both cores of the instance."""
    environment = {**os.environ, "SAY_TO": str(said), "WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.2xlarge"}
    subprocess.run([*FORKED, str(SCRIPTS / script)], env=environment, check=True, timeout=300)
    return json.loads(said.with_suffix(".0").read_text().removeprefix("SAY "))


def test_traced_modules_compute_save_load_and_refuse_other_shapes(tmp_path):
    """trace, dynamic_batch, DataParallel, weight replacement and placement, as public scripts use them.

    Results are those of the module itself; other shapes, data types and cores, operations that
    XLA cannot lower, and what is not simulated raise with a message that says what to do.
    """
    entry = run("traced.py", tmp_path / "said")
    assert max(entry["differences"]) < 1e-6
    assert (entry["gradient"], entry["kind"], entry["workers"]) == (False, True, 4)
    assert "inline_weights_to_neff=False" in entry["inlined"][0]
    assert entry["in_place"], "AWS's dynamic_batch changes the module that it is given"
    assert entry["empty"] == [0]
    assert [said.partition(": ")[0] for said in entry["no_batches"]] == [
        "Error", "ValueError", "NotSimulatedError",
    ]  # fmt: skip
    (profiled,) = entry["profiled"]
    assert "write no profile of the device" in profiled
    assert "Incorrect tensor shape at input tensor #0: received [7, 4], expected [2, 4]" in entry["shape"]
    assert "use torch_neuronx.dynamic_batch for" in entry["shape"]
    assert "Incorrect data type at input tensor #0: expected torch.float32" in entry["dtype"]
    assert "input tensor #1: received [5, 4]" in entry["ragged"]
    assert "torch_neuronx.trace cannot lower aten::_fft" in entry["fft"]
    assert "NeuronCore 2 is none of this process's 2: give a number from 0 to 1" in entry["core"]
    assert "start_nc=1, nc_count=2" in entry["cores"]
    assert "example input #0 is a str" in entry["no_tensor"]
    assert "--target trn1" in entry["target"]
    for feature in ("aliases", "kernel", "unknown"):
        assert entry[feature].startswith("NotSimulatedError: "), entry[feature]
