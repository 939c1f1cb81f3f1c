"""NEURON_RT_STOCHASTIC_ROUNDING_EN rounds as a NeuronCore does: unbiased, from a seed, and training shows it."""

from __future__ import annotations

import pytest
from conftest import SCRIPTS, records

STOCHASTIC = {"NEURON_RT_STOCHASTIC_ROUNDING_EN": "1"}


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_roundings_are_unbiased_and_leave_alone_what_can_be_represented(torchrun, kind):
    """The mean of 1e5 roundings is within 3 standard errors of the fp32 value: ties, denormals, both signs.

    Every result is one of the two neighbours, for random bit patterns too; every value of the
    data type, infinity included, stays as it is; NaN stays NaN. AWS's own test adds 0.5 to 1024 in fp16.
    """
    (entry,) = torchrun("rounding.py", "all", kind, workers=1, **STOCHASTIC).said
    print(f"standard errors by which the mean of 1e5 roundings is off: {entry['deviations']}")
    assert all(abs(deviation) < 3 for deviation in entry["deviations"].values())
    assert (entry["changed"], entry["nan"], entry["wrong"]) == (0, True, 0)
    assert abs(entry["added"] - 128) < 45  # 256 times 0.5; 8 is one standard deviation in fp16


def test_without_the_variable_all_roundings_go_to_the_nearest(torchrun):
    """As on the device: off unless asked for."""
    (entry,) = torchrun("rounding.py", "nearest", workers=1).said
    assert entry["values"] == [1.0]


def test_what_torch_compile_has_compiled_rounds_to_nearest(torchrun):
    """A graph that is kept must not keep its random numbers: the documented limit, not the same noise each step."""
    (entry,) = torchrun("rounding.py", "compiled", workers=1, **STOCHASTIC).said
    assert entry["values"] == [[3.0], [3.0]]


def test_a_seed_repeats_the_roundings_on_every_core(torchrun):
    """Two cores draw the same; another seed draws something else."""

    def draw(seed: str, workers: int) -> list[int]:
        variable = {"NEURON_RT_STOCHASTIC_ROUNDING_SEED": seed}
        return [
            one["drawn"]
            for one in torchrun("rounding.py", "draw", workers=workers, **variable, **STOCHASTIC).said
        ]

    first, second = draw("7", 2)
    assert first == second
    assert draw("8", 1) != [first]


def test_variables_that_make_floats_bf16_work_and_tell_of_their_end(torchrun):
    """XLA_USE_BF16: float tensors are bf16, as torch_xla does it; from 2.8 on, and for rounding, a warning.

    Also where a script casts them itself, as transformers does its masks.
    """
    launch = torchrun("rounding.py", "floats", workers=1, XLA_USE_BF16="1", **STOCHASTIC)
    assert (launch.said[0]["computed"], launch.said[0]["cast"]) == ([1.0, 1.0], [0.0, 0.0])
    assert "AWS Neuron supports it up to PyTorch 2.7, and this job asks for 2.9" in launch.output
    assert "here all is rounded to nearest" in launch.output


def test_bf16_training_that_stalls_with_round_to_nearest_trains_with_stochastic_rounding(torchrun):
    """AdamW on bf16 parameters, steps below half of their last place: as good as fp32, where nearest stands still."""

    def curve(kind: str, **environment: str) -> dict:
        (entry,) = torchrun("stalling.py", kind, "plain", workers=1, **environment).said
        return entry

    exact, nearest, stochastic = curve("fp32"), curve("bf16"), curve("bf16", **STOCHASTIC)
    print("step       " + " ".join(f"{step:>7}" for step in exact["steps"]))
    for name, entry in (("fp32", exact), ("nearest", nearest), ("stochastic", stochastic)):
        print(f"{name:<10} " + " ".join(f"{loss:>7.4f}" for loss in entry["losses"]))
    start = exact["losses"][0]
    assert exact["losses"][-1] < 0.2 * start
    assert nearest["losses"][-1] > 0.8 * start
    assert abs(stochastic["losses"][-1] - exact["losses"][-1]) < 0.05 * start


def test_replicas_under_zero_1_stay_equal_and_train_further(torchrun):
    """Each core rounds its shard of the bf16 parameters; after the gather both cores have the same."""
    first, second = torchrun("stalling.py", "bf16", "zero1", "120", **STOCHASTIC).said
    assert first["checksum"] == second["checksum"]
    assert first["world"] == 2
    assert first["losses"][-1] < 0.55 * first["losses"][0]  # 0.66 with roundings to the nearest


def test_what_rounds_here_is_none_of_the_counted_graph(torchrun, tmp_path):
    """The device rounds without an instruction more: its compilation, its bytes and a GPU's are those of bf16."""

    def largest(name: str, **environment: str) -> dict:
        torchrun(
            "stalling.py", "bf16", "plain", "10", workers=1,
            WINDTUNNEL_COUNTERS_DIR=str(tmp_path / name), WINDTUNNEL_INSTANCE_TYPE="ml.trn1.2xlarge", **environment,
        )  # fmt: skip
        return max(records(tmp_path / name, "graph"), key=lambda graph: graph["instructions"])

    nearest, stochastic = largest("nearest"), largest("stochastic", **STOCHASTIC)
    assert nearest["flops"] == stochastic["flops"]
    assert 0.7 < stochastic["instructions"] / nearest["instructions"] < 1.1
    for kind, moved in nearest["work"]["elementwise"].items():
        rounded = stochastic["work"]["elementwise"][kind]
        assert abs(rounded["fused_bytes"] / moved["fused_bytes"] - 1) < 0.1
        assert 0.5 < rounded["unfused_bytes"] / moved["unfused_bytes"] < 1.1


ASIDE = """
import torch, torch_xla
from neuron_sim.counters import script_time
from neuron_sim.device import stochastic_rounding
from saying import say

device = torch_xla.device()
streams, aside = stochastic_rounding._streams, []
draw = streams.next
streams.next = lambda device: (aside.append(script_time.clock.is_aside), draw(device))[1]
single, half = torch.ones(4, device=device), torch.ones(4, device=device, dtype=torch.bfloat16)
single.to(torch.bfloat16)
half.copy_(single)
half + half
say(aside=aside, after=script_time.clock.is_aside)
"""


def test_what_rounds_here_takes_none_of_the_script_s_time(torchrun, tmp_path):
    """trn1's host records a cast, a copy and arithmetic, and no rounding."""
    script = tmp_path / "aside.py"
    script.write_text(ASIDE)
    (entry,) = torchrun(str(script), workers=1, PYTHONPATH=str(SCRIPTS), **STOCHASTIC).said
    assert (entry["aside"], entry["after"]) == ([True] * 3, False)
