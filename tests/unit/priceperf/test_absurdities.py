"""A thousand descriptions drawn by chance: what no machine can do is never modelled."""

from __future__ import annotations

import math
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.priceperf import (
    CATALOG,
    DescribedWorkload,
    Estimate,
    Workload,
)
from windtunnel.priceperf.calibration.calibrations import CALIBRATIONS
from windtunnel.priceperf.model import compile_time, fixed_costs
from windtunnel.priceperf.model.engines import Product, products_s
from windtunnel.priceperf.model.memory_need import crowding
from windtunnel.priceperf.model.training_settings import DTYPE_BYTES

from .test_model_properties import INSTANCES, SLACK, described, modelled, settled, whole

DAY = date(2025, 6, 1)
LONGEST_COMPILATION_S = 2 * compile_time.MOST.high_s  # a graph that trains, one that evaluates


@settings(max_examples=1000)
@given(workload=described(), name=INSTANCES, count=st.integers(1, 600), times=st.integers(2, 5))
def test_no_description_is_absurd(workload: DescribedWorkload, name: str, count: int, times: int) -> None:
    """Nothing beats the roofline, outruns its instances, leaves its own interval, or compiles for days.

    More instances are faster than linear only where they relieve a crowded memory, as published rows are.
    """
    count = whole(workload, count)
    item = modelled(workload, name, count)
    training, instance = item.training, item.instance
    assert training is not None
    step_s = item.step.total_s * SLACK
    assert step_s >= least_flops(item) / training.workers / instance.core_peak_flops(training.matmul_dtype)
    state = training.worker_trained * training.optimizer_bytes / training.data_parallel
    if training.lora is not None:  # frozen weights are read forward and backward
        state += 2 * training.worker_parameters * DTYPE_BYTES[training.storage_dtype]
    assert step_s >= state / instance.core_memory_bandwidth
    if item.global_batch >= times * training.data_parallel and not crowding(training, instance):
        more = modelled(settled(workload, item), name, count * times, item.global_batch)
        assert more.step.total_s * times * SLACK >= item.step.total_s
    low, high = item.step_interval_s
    assert 0 < low <= item.step.total_s <= high
    assert item.billable_interval_s[0] <= item.billable_s <= item.billable_interval_s[1]
    assert item.fixed_cost("compile").high_s <= LONGEST_COMPILATION_S


def least_flops(item: Estimate) -> float:
    """Of products alone: flash attention may skip half of the scores, the head's share is counted as it is."""
    training = item.training
    assert training is not None
    model = training.architecture
    per_token = (
        2 * model.layers * model.layer_weights + 2 * model.hidden_size * model.vocabulary * training.head_part
    )
    passes = 3 if training.lora is None else 2
    return passes * per_token * training.global_batch * training.sequence_length


@given(
    sizes=st.tuples(st.integers(1, 8192), st.integers(1, 8192), st.integers(1, 65536)),
    name=st.sampled_from([name for name, entry in CATALOG.items() if not entry.is_neuron]),
)
def test_no_script_is_slower_because_tf32_is_allowed(sizes: tuple[int, int, int], name: str) -> None:
    """An A10G has the same peak in both: a job in TF32 was a sixth dearer there than in fp32."""
    instance = CATALOG[name]
    calibration = CALIBRATIONS[instance.calibration or ""]
    product = Product(*sizes, times=1)
    allowed, full = (
        products_s([product], instance, dtype, calibration.constants) for dtype in ("tf32", "fp32")
    )
    assert allowed <= full


def test_a_thousand_workers_do_not_spend_their_step_in_hops() -> None:
    """512 instances: rings beyond 512 members are joined by a tree, so hops are under a third of a step."""
    job = Workload.transformer("BERT-Large", microbatch=16, sequence_length=128, gradient_accumulation=16)
    item = modelled(job, "ml.trn1.32xlarge", 512)
    assert item.step.exposed_collective_s < item.step.total_s / 3


def test_a_described_plain_script_has_both_in_its_interval() -> None:
    """BERT base, 8 x 128 on trn1: tuned benchmarks say 13 it/s, AWS's plain script did 6.64."""
    job = Workload.transformer("BERT-Base", microbatch=8, sequence_length=128, dtype="fp32")
    item = modelled(job, "ml.trn1.32xlarge", 1)
    slow, fast = sorted(1 / seconds for seconds in item.step_interval_s)
    assert slow < 6.64 < 1 / item.step.total_s < fast
    large = Workload.transformer("Llama2-7B", microbatch=1, sequence_length=4096, tensor_parallel=8)
    low, high = modelled(large, "ml.trn1.32xlarge", 1).step_interval_s
    assert high / low < 2  # its device is slower than any host


@pytest.mark.parametrize("known", ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"])
def test_what_comes_from_a_specification_is_less_sure(known: str) -> None:
    """trn2, the newer GPUs and the small ones: an interval wider than that of any calibrated instance."""
    job = Workload.transformer("Llama2-7B", microbatch=1, sequence_length=4096, zero="optimizer")

    def width(name: str) -> float:
        low, high = modelled(job, name, 4).step_interval_s
        return math.log(high / low)

    specified = [name for name, entry in CATALOG.items() if entry.from_specification]
    assert {name.split(".")[1] for name in specified} == {"trn2", "p5e", "p5en", "p6-b200", "g5", "g6e"}
    assert all(width(name) > width(known) for name in specified)


@pytest.mark.parametrize(
    ("gib", "told"),
    [(2.5e-07, "under 0.001 GiB "), (0.46, "0.46 GiB "), (999.6, "1,000 GiB "), (3e3, "3,000 GiB ")],
)
def test_what_is_transferred_has_no_exponent(gib: float, told: str) -> None:
    """A data set of 3 TiB was 3e+03 GiB, and a small model 2.53e-07."""
    assert fixed_costs.transfer("download", gib).basis.startswith(told)
