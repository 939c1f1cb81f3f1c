"""counters.json from the simulator's files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import START
from tests.unit.service.samples import job, request
from windtunnel.priceperf.workload.counters import Counters
from windtunnel_local.service.ground.lifecycle import DownloadStarted, advance
from windtunnel_local.service.observed.metering import (
    ContainerTimes,
    measure,
    read_counters,
)
from windtunnel_local.service.observed.step_sums import with_their_batches

BASE = START.timestamp()


def start(rank: int, **members: Any) -> dict[str, Any]:
    return {
        "kind": "start",
        "time": BASE,
        "rank": rank,
        "local_rank": rank % 2,
        "world_size": 4,
        "local_world_size": 2,
        "instance_type": "ml.trn1.2xlarge",
        "instance_cores": 2,
        "local_cores": None,
        "framework_version": "2.9",
        **members,
    }


def graph(name: str, flops: float, compile_seconds: float = 2.0) -> dict[str, Any]:
    return {
        "kind": "graph",
        "graph": name,
        "flops": {"bf16": 0, "fp32": flops},
        "bytes_accessed": 10.0,
        "input_bytes": flops * 2,
        "temp_bytes": 7,
        "fp32_products": "bf16",
        "compile_seconds": compile_seconds,
    }


def step(seconds: float, samples: int = 8, optimizer: bool = True, **members: Any) -> dict[str, Any]:
    return {
        "kind": "step",
        "time": BASE + 20,
        "seconds": seconds,
        "optimizer": optimizer,
        "samples": samples,
        "graphs": {"fwd": 1, "opt": 1},
        "collectives": {"all_reduce": {"count": 1, "bytes": 100}},
        "collective_seconds": 0.1,
        "input_wait_seconds": 0.01,
        "compile_seconds": 0.0,
        **members,
    }


QUIET: dict[str, Any] = {"collectives": {}, "compile_seconds": 0.0}
"""A step that neither exchanges nor compiles anything."""
BARE = {**graph("opt", 0.0), "flops": {}}
"""A graph without products."""


def worked(name: str, rows: int, collectives: dict[str, Any] | None = None) -> dict[str, Any]:
    """A graph that tells its work: a product with ``rows`` rows, run twice, and what goes with it."""
    kernels = {"fused_bytes": 10, "unfused_bytes": 30, "vector_elements": 5, "scalar_elements": 1}
    work = {
        "products": [[1, rows, 4, 5, "fp32", 2]],
        "product_bytes": 100,
        "elementwise": {"activations": kernels, "state": {**kernels, "fused_bytes": 7}},
        "gather_bytes": 3,
        "scatter_bytes": 2,
        "collectives": collectives or {},
    }
    return {**graph(name, float(2 * 2 * rows * 20)), "input_bytes": 11, "output_bytes": 13, "work": work}


def write(folder: Path, rank: int, *records: dict[str, Any], tail: str = "") -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / f"rank-{rank}.jsonl").write_text(text + tail)


def document(tmp_path: Path, *hosts: Path) -> dict[str, Any]:
    accepted = job(tmp_path, request(hosts=max(1, len(hosts))))
    begun = advance(accepted.lifecycle, DownloadStarted(), START)
    times = ContainerTimes(START + timedelta(seconds=5), START + timedelta(seconds=65))
    ranks = [rank for host in hosts for rank in read_counters(host)]
    return written(measure(replace(accepted, lifecycle=begun), ranks, times, START + timedelta(seconds=70)))


def counted(tmp_path: Path, *records: dict[str, Any]) -> dict[str, Any]:
    """Of a job of which the first rank alone wrote something."""
    write(tmp_path / "a", 0, start(0), *records)
    return document(tmp_path, tmp_path / "a")


def written(counters: Counters) -> dict[str, Any]:
    """As in the file; what reads it finds the same."""
    found: dict[str, Any] = json.loads(json.dumps(counters.to_dict()))
    assert Counters.read(found) == counters
    return found


def test_instance_groups(tmp_path: Path) -> None:
    """Named where the request has them: the first group's type is not that of all hosts."""
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
    ]
    mixed = job(tmp_path, request(ResourceConfig={"InstanceGroups": groups}))
    found = written(measure(mixed, [], ContainerTimes(), START))
    assert (found["instance_type"], found["instance_count"]) == ("ml.trn1.2xlarge", 3)
    assert found["instance_groups"] == [
        {"instance_type": "ml.trn1.2xlarge", "instance_count": 1},
        {"instance_type": "ml.trn1.32xlarge", "instance_count": 2},
    ]


def test_of_several_programs_the_one_that_trains_is_counted(tmp_path: Path) -> None:
    """Its cores, graphs and steps, and not the sum with those of what ran before and after it."""
    other = {**graph("eval", 3.0), "cached": True}
    end = {"kind": "end", "time": BASE + 60, "rank": 0, "exit": "ok"}
    alone = {"world_size": 1, "local_world_size": 1}
    write(
        tmp_path / "a",
        0,
        *[
            start(0, script="prepare.py", **alone),
            other,
            step(9.0, 0, False, graphs={"eval": 1}),
            {"kind": "memory", "total": 99},
            end,
        ],
        *[start(0, script="train.py"), graph("fwd", 8.0), {"kind": "memory", "total": 5}],
        *[step(1.0), step(1.0), end],
        *[start(0, script="evaluate.py", **alone), other, step(1.0, 0, False, graphs={"eval": 1}), end],
    )
    write(tmp_path / "a", 1, start(1, script="train.py"), step(1.0), step(1.0), end)
    found = document(tmp_path, tmp_path / "a")
    assert (found["cores_used"], found["world_size"]) == (2, 4)
    assert found["train"]["steps"] == 2
    assert found["other"] is None
    assert (found["graphs"]["count"], found["graphs"]["cached"]) == (1, None)
    assert found["device_memory_peak_bytes"] == 5
    scripts = [
        (program["script"], program["steps"], program["training_steps"]) for program in found["programs"]
    ]
    assert scripts[0] == ("train.py", 2, 2)
    assert sorted(scripts[1:]) == [("evaluate.py", 1, 0), ("prepare.py", 1, 0)]


def test_the_reference_is_of_a_moment_like_that_of_the_least_tracing(tmp_path: Path) -> None:
    """A machine that is twice or three times as slow in some steps changes nothing."""
    timed = [(0.3, 0.02), (0.15, 0.01), (0.45, 0.03)]
    steps = [step(1.0, trace_seconds=trace, reference_seconds=reference) for trace, reference in timed]
    train = counted(tmp_path, graph("fwd", 8.0), *steps)["train"]
    assert train["least_trace_seconds"] == 0.15
    assert abs(train["reference_seconds"] - 0.01) < 1e-9


def test_a_program_that_began_again_is_one(tmp_path: Path) -> None:
    """torchrun starts workers anew, and an attempt of the job follows another: the steps add up."""
    again = (start(0, script="train.py"), graph("fwd", 8.0), step(1.0))
    write(tmp_path / "a", 0, *again, *again)
    found = document(tmp_path, tmp_path / "a")
    assert found["train"]["steps"] == 2
    assert "programs" not in found


@pytest.mark.parametrize(
    ("ended", "left", "seen", "early"),
    [("ok", True, 1, False), ("error", True, 0, False), ("error", False, 1, True)],
)
def test_a_script_that_failed_within_a_pass_has_not_shown_its_size(
    tmp_path: Path, ended: str, left: bool, seen: int, early: bool
) -> None:
    """Where it broke off says nothing of how far it would have gone; after a pass, as in saving, it is as if ended."""
    loader = {"line": "train.py:3", "batches": 4, "samples": 8, "passes": 1, "taken": 3, "trains": True}
    loaders = {"kind": "loaders", "rehearsed_steps": 8, "loaders": [{**loader, "left": left}]}
    end = {"kind": "end", "time": BASE + 60, "rank": 0, "exit": ended}
    found = counted(tmp_path, graph("fwd", 8.0), step(1.0), loaders, end)
    assert found["input"]["rehearsed_steps"] == 8
    assert len(found["input"]["loaders"]) == seen
    assert found["input"].get("ended_early", False) == early


def test_two_hosts(tmp_path: Path) -> None:
    """Work is that of one core, samples those of all ranks, and a step's compile time is no step time."""
    one, two = tmp_path / "one", tmp_path / "two"
    write(
        one,
        0,
        start(0),
        graph("fwd", 1000.0),
        graph("opt", 10.0, compile_seconds=1.0),
        step(3.5, compile_seconds=3.0),
        step(0.4),
        step(0.3, samples=2),
        step(0.2, optimizer=False, graphs={"fwd": 1}, collectives={}),
        {"kind": "end", "exit": "ok"},
    )
    write(one, 1, start(1), {"kind": "end", "exit": "ok"})
    write(two, 2, start(2), graph("fwd", 1000.0), step(9.9))
    found = document(tmp_path, one, two)
    train = found.pop("train")
    assert abs(train.pop("seconds") - 1.2) < 1e-9
    assert train == {
        "steps": 3,
        "samples": 18 * 4,
        "samples_per_step_per_core": 8,
        "flops": {"bf16": 0, "fp32": 3030.0},
        "bytes_accessed": 60.0,
        "collectives": {"all_reduce": {"count": 3, "bytes": 300}},
        "median_step_seconds": 0.4,
        "collective_seconds": 0.1 + 0.1 + 0.1,
        "input_wait_seconds": 0.03,
        # Records of an older simulator.
        "work": None,
        "trace_seconds": None,
        "least_trace_seconds": None,
        "reference_seconds": None,
        "launches": None,
        "steps_with_host_reads": 0,
        "repeated": None,
        "updates": None,
    }
    ledger = found["graphs"]["ledger"]
    assert [(entry["graph"], entry["runs"]) for entry in ledger] == [("fwd", 4), ("opt", 3)]
    assert found.pop("other")["flops"] == {"bf16": 0, "fp32": 1000.0}
    assert found == {
        "schema": "windtunnel.counters/1",
        "job": "job",
        "instance_type": "ml.trn1.2xlarge",
        "instance_count": 2,
        "instance_cores": 2,
        "cores_used": 2,
        "world_size": 4,
        "framework_version": "2.9",
        "local_cores": None,
        "host_cpu": None,
        "parameters": None,
        "input": None,
        "graphs": {
            "count": 2,
            "compile_seconds": 3.0,
            "largest": {"flops": 1000.0, "input_bytes": 2000.0, "temp_bytes": 7, "fp32_products": "bf16"},
            "cached": None,
            "ledger": ledger,
            "ledger_left_out": 0,
            "uncut": None,
            "uncut_left_out": 0,
        },
        "device_memory": None,
        "diagnostics": [],
        "device_memory_peak_bytes": None,
        "seconds": {"training_total": 70.0, "container": 60.0, "first_step_after": 15.0},
    }


def test_what_is_no_text_costs_no_report(tmp_path: Path) -> None:
    """A script can write into its records; the rest of them counts."""
    found = counted(tmp_path, {**graph("fwd", 1000.0), "fp32_products": ["bf16"]}, step(1.0))
    largest = found["graphs"]["largest"]
    assert (largest["flops"], largest["fp32_products"]) == (1000.0, None)


def test_what_a_collective_cut_is_one_graph(tmp_path: Path) -> None:
    """With the FLOPs and operations of all its pieces; cached where all were. One that a restart tells again is counted
    once.
    """
    pieces = [{"fwd": 2, "opt": 1}, {"opt": 1}, {"fwd": 2, "opt": 1}, {"gone": 1}, "odd"]
    told = [{"kind": "uncut", "pieces": piece} for piece in pieces]
    forward = {**graph("fwd", 1000.0), "cached": False, "instructions": 30}
    forward["work"] = {"convolutions": [[1, 10, 3, 2, "fp32", 4], "odd"]}
    update = {**graph("opt", 5.0), "cached": True, "instructions": 4, "work": {"convolutions": []}}
    found = counted(tmp_path, forward, update, *told, step(1.0))["graphs"]
    assert found["uncut"] == [
        {"flops": 2005.0, "cached": False, "instructions": 64, "convolution_flops": 960.0},
        {"flops": 5.0, "cached": True, "instructions": 4, "convolution_flops": 0.0},
    ]
    assert found["uncut_left_out"] == 0
    assert found["ledger"][0]["convolution_flops"] == 480.0
    untold = [{**forward, "instructions": "many", "work": None}, update, *told, step(1.0)]
    of_all = counted(tmp_path, *untold)["graphs"]["uncut"][0]
    assert (of_all["instructions"], of_all["convolution_flops"]) == (None, None)


def test_work_is_summed_over_steps_and_equal_products_are_one(tmp_path: Path) -> None:
    """The sums of what each graph does in one run, times its runs; FLOPs and products agree."""
    found = counted(
        tmp_path,
        worked("a", rows=3),
        worked("b", rows=3, collectives={"all_reduce": {"count": 1, "bytes": 50}}),
        worked("c", rows=6),
        step(1.0, graphs={"a": 1, "b": 2}, sdpa={"scores": 7}),
        step(1.0, graphs={"a": 1, "c": 1}, sdpa={"scores": 7, "causal_scores": 4}),
        step(1.0, optimizer=False, graphs={"c": 1}, sdpa="none"),
    )
    work = found["train"]["work"]
    assert work["products"] == [[1, 3, 4, 5, "fp32", 8], [1, 6, 4, 5, "fp32", 2]]
    flops = sum(2 * b * r * i * c * times for b, r, i, c, _, times in work["products"])
    assert flops == found["train"]["flops"]["fp32"]
    assert work["elementwise"]["activations"]["fused_bytes"] == 5 * 10
    assert work["elementwise"]["state"] == {
        "fused_bytes": 35, "unfused_bytes": 150, "vector_elements": 25, "scalar_elements": 5,
    }  # fmt: skip
    sizes = [work[key] for key in ("product_bytes", "gather_bytes", "scatter_bytes")]
    assert sizes == [500, 15, 10]
    assert (work["input_bytes"], work["output_bytes"]) == (55, 65)
    assert work["collectives"] == {"all_reduce": {"count": 2, "bytes": 100}}
    assert found["other"]["work"]["products"] == [[1, 6, 4, 5, "fp32", 2]]
    assert work["sdpa"] == {"scores": 14, "causal_scores": 4}
    assert found["other"]["work"]["sdpa"] is None


def test_what_is_computed_again_is_told_apart(tmp_path: Path) -> None:
    """Of the graphs that a step repeats, by how often it does: also where it is joined with its batch."""
    train = counted(
        tmp_path,
        graph("fwd", 100.0),
        graph("all", 300.0),
        step(1.0, graphs={"fwd": 2, "all": 1}, repeated={"fwd": 2}),
        step(0.1, samples=8, optimizer=False, graphs={}),
        step(1.0, samples=0, graphs={"fwd": 1, "all": 1}, repeated={"fwd": 1}),
    )["train"]
    assert train["flops"]["fp32"] == 900.0
    assert train["repeated"] == {"flops": 300.0, "fused_bytes": 0}


def test_work_that_a_script_made_up_breaks_nothing(tmp_path: Path) -> None:
    """The file lies in a folder that the script can write to."""
    broken = {"products": [[1, "x", 4, 5, "fp32", 2], 7, [1, 2, 3, 4, "fp32", 5]], "elementwise": 3}
    parameters = {"kind": "parameters", "count": "many", "dtypes": {"parameters": 3}}
    graphs = [{**graph("fwd", 1.0), "work": broken}, {**graph("opt", 1.0), "work": 5}]
    found = counted(tmp_path, *graphs, parameters, step(1.0))
    assert found["train"]["work"]["products"] == [[1, 2, 3, 4, "fp32", 5]]
    assert found["parameters"]["count"] == 0


def test_later_passes_of_a_short_rehearsal_do_not_count(tmp_path: Path) -> None:
    """They are one step long: a script that logs with the first step of each would seem to wait in most."""
    reads: Any = {"accessed": {"a.py:1": 1}}
    later = step(1.0, **reads, late=True)
    train = counted(tmp_path, step(1.0, **reads), *[step(1.0)] * 5, *[later] * 6)["train"]
    assert (train["steps"], train["steps_with_host_reads"]) == (6, 1)
    assert counted(tmp_path, later, later)["train"]["steps_with_host_reads"] == 2


def test_tracing_is_summed_and_each_kind_of_step_counts_at_its_least(tmp_path: Path) -> None:
    """Host reads are counted by step; parameters and processor are those that the first rank tells."""
    held = {"count": 10, "parameter_bytes": 40, "gradient_bytes": 40, "optimizer_bytes": 80}
    dtypes = {"parameters": {"fp32": 40}}
    write(
        tmp_path / "c",
        0,
        start(0, host_cpu="AMD EPYC"),
        {"kind": "parameters", **held, "count": 5},
        {
            "kind": "parameters",
            **held,
            "model": 30,
            "frozen": 15,
            "dtypes": dtypes,
            "sdpa_elsewhere": False,
            "is_causal": False,
        },
        step(1.0, trace_seconds=0.9, compile_seconds=0.05),
        step(1.0, trace_seconds=0.2, accessed={"a.py:1": 2}),
        step(1.0, trace_seconds=0.4, waited=True),
        step(0.1, samples=8, optimizer=False, trace_seconds=0.1, accessed={"a.py:2": 1}),
        step(1.0, samples=0, trace_seconds=0.2),
    )
    found = document(tmp_path, tmp_path / "c")
    train = found["train"]
    assert abs(train["trace_seconds"] - 1.8) < 1e-9
    # Two steps of one kind, the quicker at 0.2 s; one of another kind that was joined with its batch: 0.3 s.
    assert abs(train["least_trace_seconds"] - (2 * 0.2 + 0.3) / 3) < 1e-9
    assert train["steps_with_host_reads"] == 3
    assert found["other"] is None
    assert found["parameters"] == {
        **held,
        "tensors": None,
        "model": 30,
        "frozen": 15,
        "cores": 1,
        "split": None,
        "dtypes": dtypes,
        "sdpa_elsewhere": False,
        "is_causal": False,
    }
    assert found["host_cpu"] == "AMD EPYC"


def test_a_script_without_the_device(tmp_path: Path) -> None:
    """Nothing is made up: train is null, what is known from the request stays."""
    found = document(tmp_path, tmp_path / "no such folder")
    assert found["train"] is None
    assert found["other"] is None
    assert found["world_size"] is None
    assert found["device_memory_peak_bytes"] is None
    assert (found["instance_cores"], found["framework_version"]) == (2, "2.9")
    assert found["seconds"]["first_step_after"] is None


def test_a_killed_worker_leaves_half_a_line(tmp_path: Path) -> None:
    """Whole lines count; foreign ones do not hurt."""
    write(tmp_path / "c", 0, start(0), step(0.5), tail='[1]\n{"kind":"later"}\n{"kind":"step","sec')
    (tmp_path / "c" / "rank-x.jsonl").write_text("{}")
    train = document(tmp_path, tmp_path / "c")["train"]
    assert train["steps"] == 1
    # The graph's own record is missing: its work is unknown, and not guessed.
    assert train["flops"] == {}


def test_a_batch_that_came_in_a_step_of_its_own_belongs_to_the_training_step() -> None:
    """As Hugging Face's Trainer steps: batch, count gathered, step ended; then training without a batch."""
    evaluation = step(0.2, samples=8, optimizer=False, graphs={"g": 1})
    arrival = step(0.1, samples=8, optimizer=False, graphs={"g": 1}, collectives={}, sdpa={"scores": 4})
    gathered = step(0.1, samples=0, optimizer=False, graphs={})
    training = step(0.5, samples=0, graphs={"g": 2}, sdpa={"scores": 3})
    own = step(0.5, samples=8, graphs={"g": 2})
    joined = with_their_batches([evaluation, arrival, gathered, training, evaluation, own, evaluation], {})
    assert [(s["optimizer"], s["samples"], round(s["seconds"], 3)) for s in joined] == [
        (False, 8, 0.2),
        (True, 8, 0.7),
        (False, 8, 0.2),
        (True, 8, 0.5),
        (False, 8, 0.2),
    ]
    assert (joined[1]["graphs"], joined[1]["sdpa"]) == ({"g": 3}, {"scores": 7})
    assert sum(s["samples"] for s in joined) == 8 * 5


def test_parts_of_a_pass_are_one_step_with_what_ends_it(tmp_path: Path) -> None:
    """A script may end steps within its forward and backward pass: that is no accumulation, nor an evaluation."""
    part = step(0.2, samples=0, optimizer=False, graphs={"part": 1}, part=True)
    whole = step(0.3, samples=4, graphs={"end": 1}, updated=True)
    found = counted(tmp_path, graph("part", 8.0), graph("end", 2.0), *[part, part, whole] * 3, part)
    train = found["train"]
    assert (train["steps"], train["samples_per_step_per_core"], train["updates"]) == (3, 4, None)
    assert sum(train["flops"].values()) == 3 * (8.0 + 8.0 + 2.0) * sum(graph("g", 1.0)["flops"].values())


def test_batches_that_are_fetched_together_are_one_for_each_pass(tmp_path: Path) -> None:
    """As optimum-neuron's trainer accumulates: all batches, so many passes, then the optimizer in a step of its own."""
    fetched, passed = (step(1.0, samples=samples, graphs={"fwd": 1}, **QUIET) for samples in (6, 0))
    updated = step(0.5, samples=0, graphs={"opt": 1}, updated=True)
    train = counted(tmp_path, graph("fwd", 8.0), BARE, *[fetched, passed, passed, updated] * 3)["train"]
    assert (train["steps"], train["samples"], train["samples_per_step_per_core"]) == (9, 9 * 2 * 4, 2)
    assert (train["updates"]["steps"], train["updates"]["passes"]) == (3, 3)


def test_an_optimizer_in_a_step_of_its_own_belongs_to_the_batch_before(tmp_path: Path) -> None:
    """As AWS's BERT script accumulates: so many backward passes, then reduction and optimizer without a batch."""
    passed = step(1.0, graphs={"fwd": 1}, trace_seconds=0.1, **QUIET)
    updated = step(0.5, samples=0, graphs={"opt": 1}, trace_seconds=0.4, updated=True)
    train = counted(tmp_path, graph("fwd", 8.0), BARE, *[passed, passed, updated] * 3)["train"]
    assert (train["steps"], train["samples"], train["samples_per_step_per_core"]) == (6, 6 * 8 * 4, 8)
    assert train["flops"] == {"bf16": 0, "fp32": 6 * 8.0}
    assert train["updates"]["steps"] == 3
    assert (
        train["updates"]["collectives"] == {"all_reduce": {"count": 3, "bytes": 300}} == train["collectives"]
    )
    assert abs(train["updates"]["least_trace_seconds"] - 0.4) < 1e-9
    assert abs(train["seconds"] - 7.5) < 1e-9


def test_microbatches_under_way_belong_to_the_passes_that_end_them(tmp_path: Path) -> None:
    """As NxD Core's pipelines step: forward and backward apart, two forward before the first backward. One whose
    forward pass is never ended (it looked for shapes) is none, and the optimizer belongs to the pass before it.
    """
    forward = step(0.2, samples=1, optimizer=False, graphs={"fwd": 1}, microbatch=True, **QUIET)
    backward = step(0.4, samples=0, graphs={"bwd": 1}, **QUIET)
    updated = step(0.5, samples=0, graphs={"opt": 1}, updated=True)
    batch = [forward, forward, backward, forward, backward, forward, backward, backward, updated]
    config = {
        "model_type": "llama",
        "hidden_size": 8,
        "tie": False,
        "rope": {"factor": 2},
        "pad": None,
        "eps": -1.5,
        "limit": math.inf,
    }
    split = {"tensor_parallel": 2, "pipeline_parallel": 1, "zero1": True, "config": config, "lora_rank": 4}
    held = {"kind": "parameters", "count": 10, "cores": 2, "split": split, "sdpa_elsewhere": True}
    found = counted(tmp_path, graph("fwd", 8.0), graph("bwd", 16.0), BARE, held, forward, *batch, *batch)
    train = found["train"]
    assert (train["steps"], train["updates"]["steps"], train["updates"]["passes"]) == (8, 2, 4)
    assert (train["samples_per_step_per_core"], train["samples"]) == (1, 8 * 2)  # two copies on four cores
    assert train["flops"]["fp32"] == 8 * (8.0 + 16.0)
    kept = {"model_type": "llama", "hidden_size": 8, "tie": False, "eps": -1.5}
    assert (found["parameters"]["cores"], found["parameters"]["split"]) == (2, {**split, "config": kept})
    assert (found["parameters"]["sdpa_elsewhere"], found["parameters"]["is_causal"]) == (True, False)


@pytest.mark.parametrize(
    "rehearsed",
    [
        pytest.param("...u...u...", id="ended in the middle of an accumulation"),
        pytest.param(
            "...u...u...u.u.u.u.u", id="later passes over the loader were cut, and updated at their end"
        ),
        pytest.param("......u...u...u", id="begun again in the middle of an accumulation"),
        pytest.param("...u", id="one update"),
    ],
)
def test_an_accumulation_is_as_long_as_the_scripts(tmp_path: Path, rehearsed: str) -> None:
    """Wherever a short rehearsal ended, or began again: a mean over all steps would be longer, or shorter."""
    records = [step(1.0, **({"updated": True} if each == "u" else {})) for each in rehearsed]
    train = counted(tmp_path, graph("fwd", 8.0), *records)["train"]
    assert (train["steps"], train["updates"]["steps"]) == (len(rehearsed), rehearsed.count("u"))
    assert train["updates"]["passes"] == 4


def test_a_second_pass_over_a_batch_is_a_step(tmp_path: Path) -> None:
    """A training step with products of its own, but no batch, is no optimizer's."""
    found = counted(tmp_path, graph("fwd", 8.0), graph("opt", 0.0), step(1.0), step(1.0, samples=0))
    assert found["train"]["steps"] == 2


def test_what_was_run_for_its_graphs_stands_behind_what_trained(tmp_path: Path) -> None:
    """Of one job that compiles with neuron_parallel_compile, then trains: the second run counts, though shorter."""
    trial = (start(0, script="train.py", trial=True), graph("fwd", 8.0), step(9.0), step(9.0))
    write(tmp_path / "a", 0, *trial, start(0, script="train.py"), graph("fwd", 8.0), step(1.0))
    found = document(tmp_path, tmp_path / "a")
    assert found["train"]["steps"] == 1
    assert [(program["trial"], program["steps"]) for program in found["programs"]] == [(False, 1), (True, 2)]
    write(tmp_path / "b", 0, *trial)
    assert [program["trial"] for program in document(tmp_path, tmp_path / "b")["programs"]] == [True]


def finding(line: str, severity: str = "warning", seconds: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"kind": "finding", "finding": "host_read", "severity": severity, "line": line, "message": "m",
            "advice": "a", "count": 1, "seconds": seconds, **more}  # fmt: skip


def test_what_was_found_is_copied_worst_first(tmp_path: Path) -> None:
    """The last record of a finding has its final figures; a second host finds the same and adds nothing."""
    one, two = tmp_path / "one", tmp_path / "two"
    first = [finding("a.py:1", seconds=1.0), finding("b.py:1", seconds=2.0), finding("d.py:1", "invented")]
    write(one, 0, start(0), *first, finding("a.py:1", seconds=3.0, count=7), finding("c.py:1", "error"))
    write(two, 2, start(2), finding("a.py:1", seconds=50.0))
    found = document(tmp_path, one, two)["diagnostics"]
    assert [(entry["line"], entry["seconds"], entry["count"]) for entry in found] == [
        ("c.py:1", 0.0, 1),
        ("a.py:1", 3.0, 7),
        ("b.py:1", 2.0, 1),
    ]
    assert set(found[0]) == {"kind", "severity", "line", "message", "advice", "count", "seconds"}


def test_the_fullest_moment_of_any_core_is_the_device_memory(tmp_path: Path) -> None:
    """By use, with the line."""
    write(tmp_path / "one", 0, start(0), {"kind": "memory", "total": 5, "parameters": 5, "line": "a.py:1"})
    write(
        tmp_path / "two",
        1,
        start(1),
        {"kind": "memory", "total": 9, "parameters": 4, "temporaries": 5, "limit": 16},
    )
    found = document(tmp_path, tmp_path / "one", tmp_path / "two")
    memory = found["device_memory"]
    assert found["device_memory_peak_bytes"] == 9
    assert (memory["total"], memory["parameters"], memory["temporaries"], memory["limit"]) == (9, 4, 5, 16)


def test_the_ledger_is_bounded_and_says_so(tmp_path: Path) -> None:
    """A job that compiles at every step makes no document without end."""
    reason = {"kind": "shape", "detail": "input 0 was f32[8] and is f32[3]", "than": "g0"}
    graphs = [
        {**graph(f"g{n}", 1.0, compile_seconds=float(n)), "reason": reason, "cached": n == 149}
        for n in range(150)
    ]
    described = counted(tmp_path, *graphs, step(1.0))["graphs"]
    assert (len(described["ledger"]), described["ledger_left_out"], described["cached"]) == (100, 50, 1)
    worst = described["ledger"][0]
    assert (worst["graph"], worst["cached"], worst["reason"]["kind"]) == ("g149", True, "shape")


def test_a_figure_larger_than_any_float_counts_as_nothing(tmp_path: Path) -> None:
    """A script can write where the simulator does; the job's upload does not fail for it."""
    lines = [start(0), step(10**400, samples=10**400), step(2.0)]
    (tmp_path / "rank-0.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    train = measure(job(tmp_path), read_counters(tmp_path), ContainerTimes(), START).train
    assert train is not None
    assert (train.steps, train.seconds) == (2, 2.0)
