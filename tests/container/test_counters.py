"""The counters say what ran: steps, samples, FLOPs, collectives, compilations."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest
from conftest import SCRIPTS, records


def trained(folder: Path) -> list[dict]:
    """The steps that train."""
    return [step for step in records(folder, "step") if step["optimizer"]]


def test_steps_samples_flops_and_collectives_are_counted(torchrun, tmp_path):
    """Five steps of 8 samples; forward and weight gradient of a 32x16 layer; 2 KiB of gradients a step."""
    torchrun(
        "counted.py",
        WINDTUNNEL_COUNTERS_DIR=str(tmp_path),
        WINDTUNNEL_LOCAL_CORES="2",
        SM_CURRENT_HOST="algo-1",
        WINDTUNNEL_INSTANCE_TYPE="ml.trn1.2xlarge",
    )
    first = records(tmp_path)
    start, end = first[0], first[-1]
    assert (start["kind"], start["world_size"], start["instance_type"]) == ("start", 2, "ml.trn1.2xlarge")
    assert "trial" not in start  # not under neuron_parallel_compile
    assert (start["local_cores"], start["instance_cores"], start["host"]) == (2, 2, "algo-1")
    assert (end["kind"], end["exit"]) == ("end", "ok")
    fullest = [record for record in first if record["kind"] == "memory"][-1]
    assert fullest["total"] > 2 * 32 * 16 * 4

    graphs = {record["graph"]: record for record in first if record["kind"] == "graph"}
    training = [record for record in first if record["kind"] == "step" and record["optimizer"]]
    assert {graph["fp32_products"] for graph in graphs.values()} == {"fp32"}  # no flag asks for less
    assert [step["samples"] for step in training] == [8] * 5
    assert all(step["updated"] for step in training)
    for before, step in itertools.pairwise(training):
        # A step's time is that of its end, so where it began follows: where the one before ended.
        assert abs(step["time"] - step["seconds"] - before["time"]) < 0.1
    for step in training:
        flops = sum(graphs[graph]["flops"].get("fp32", 0) * count for graph, count in step["graphs"].items())
        assert flops == 2 * (2 * 8 * 32 * 16)
        assert step["collectives"] == {"all_reduce": {"count": 1, "bytes": 32 * 16 * 4}}
    # The gradients' reduction cuts a step here; trn1 compiles it as one graph, the first and the later ones.
    uncut = [record["pieces"] for record in first if record["kind"] == "uncut"]
    assert len(training[-1]["graphs"]) == 2
    assert uncut.count(training[-1]["graphs"]) == 1
    assert len(uncut) < len(graphs)
    work = [
        product
        for graph, runs in training[-1]["graphs"].items()
        for product in graphs[graph]["work"]["products"] * runs
    ]
    # Forward, and the gradient of the weights: samples are the rows of one, and inner of the other.
    assert sorted(tuple(product[1:4]) for product in work) == [(8, 32, 16), (16, 8, 32)] or sorted(
        tuple(product[1:4]) for product in work
    ) == [(8, 32, 16), (32, 8, 16)]
    (held,) = [record for record in first if record["kind"] == "parameters"]
    size = 32 * 16 * 4
    assert (held["count"], held["parameter_bytes"], held["gradient_bytes"]) == (32 * 16, size, size)
    assert (held["optimizer_bytes"], held["dtypes"]["gradients"]) == (0, {"fp32": size})
    other = [record for record in first if record["kind"] == "step" and not record["optimizer"]]
    evaluated = [
        step
        for step in other
        if any(graphs[graph]["flops"].get("fp32") == 2 * 8 * 32 * 16 for graph in step["graphs"])
    ]
    assert sum(step["samples"] for step in evaluated) == 16
    assert not any("updated" in step for step in other)
    assert all(record["compile_seconds"] > 0 for record in graphs.values())
    assert any(record["source"].startswith("counted.py:") for record in graphs.values())
    # The second step compiles the graph of the steady state at the latest; the last ones compile nothing.
    assert training[-1]["compile_seconds"] == 0.0
    # One core a host counts the graphs: all run the same. Each looks at its own memory.
    kinds = [record["kind"] for record in records(tmp_path, rank=1)]
    assert [kind for kind in kinds if kind != "memory"] == ["start", "end"]


def test_a_script_that_sends_its_batches_to_the_device_itself_is_counted_alike(torchrun, tmp_path):
    """Without MpDeviceLoader, as many first scripts are: samples and the wait for them are known as well."""
    torchrun("counted.py", "plain", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    steps = records(tmp_path, "step")
    training = [step for step in steps if step["optimizer"]]
    assert [step["samples"] for step in training] == [8] * 5
    assert all(step["input_wait_seconds"] > 0 for step in training)
    assert sum(step["samples"] for step in steps if not step["optimizer"]) == 16


def test_the_cpu_time_of_tracing_is_the_scripts_own(torchrun, tmp_path):
    """50 ms of Python in a step are there; sleep, waiting for another core, and compiling are not."""
    torchrun("host_time.py", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    first = records(tmp_path)
    assert "host_cpu" in first[0]
    steps = [record for record in first if record["kind"] == "step" and record["optimizer"]]
    traced = {
        size: statistics.median(
            step["trace_seconds"] for step in steps if step["samples"] == size and not step["compile_seconds"]
        )
        for size in (4, 5, 6, 7, 8)
    }
    assert traced[4] > 0
    assert 0.045 < traced[5] - traced[4] < 0.1, traced
    # Autograd records the backward pass in a thread of its own.
    assert 0.045 < traced[8] - traced[4] < 0.1, traced
    # Of 50 ms that the thread does not run, next to nothing may count.
    assert traced[6] - traced[4] < 0.02, traced
    assert traced[7] - traced[4] < 0.02, traced
    waited = [step["seconds"] for step in steps if step["samples"] == 7]
    assert statistics.median(waited) > 0.045
    compiling = [step for step in steps if step["compile_seconds"] > 0.1]
    assert all(step["trace_seconds"] < step["seconds"] for step in compiling)
    (held,) = [record for record in first if record["kind"] == "parameters"]
    count = 32 * 16 + 16
    assert (held["count"], held["optimizer_bytes"] // (2 * 4 * count)) == (count, 1)


def test_what_tracing_is_held_against_runs_nothing_whatever_the_script_sets(torchrun, tmp_path):
    """It is traced like a step, and a graph that is open meanwhile stays the same. Dtype, autocast and own functions
    are none of its; where a mode or a profiler would see it, it is left out.
    """
    script = tmp_path / "sets.py"
    script.write_text(
        "import torch, torch_xla\n"
        "import torch_xla.debug.metrics as met\n"
        "from torch.nn import functional\n"
        "from torch.utils._python_dispatch import TorchDispatchMode\n"
        "from neuron_sim.counters import host_reference\n"
        "value = torch.ones(3, device=torch_xla.device()) * 2\n"
        "before = torch_xla._XLAC._get_xla_tensors_hlo([value])\n"
        "assert 0 < host_reference.seconds(0) < 1\n"
        "assert torch_xla._XLAC._get_xla_tensors_hlo([value]) == before\n"
        "assert met.metric_data('ExecuteTime') is None\n"
        "assert value.tolist() == [2.0] * 3\n"
        "torch.set_default_dtype(torch.bfloat16)\n"
        "torch.set_default_device('xla')\n"
        "functional.gelu = None\n"
        "with torch.autocast('xla', dtype=torch.bfloat16):\n"
        "    assert host_reference.goes_unseen() and host_reference.seconds(0) > 0\n"
        "with TorchDispatchMode():\n"
        "    assert not host_reference.goes_unseen()\n"
        "with torch.profiler.profile():\n"
        "    assert not host_reference.goes_unseen()\n"
        "assert host_reference.goes_unseen()\n"
    )
    torchrun(str(script), workers=1, NEURON_RT_STOCHASTIC_ROUNDING_EN="1")


def test_what_tracing_is_held_against_is_timed_before_and_after_it(torchrun, tmp_path):
    """Of 1 and 3 seconds, were it so slow, a step's reference is 2; and none of it counts as tracing."""
    script = tmp_path / "timed.py"
    script.write_text(
        "import itertools, runpy, sys\n"
        "from neuron_sim.counters import host_reference\n"
        "seconds = itertools.cycle([1.0, 3.0])\n"
        "host_reference.seconds = lambda _: [sum(range(2_000_000)), next(seconds)][1]\n"
        f"sys.path[0] = {str(SCRIPTS)!r}\n"
        f"runpy.run_path({str(SCRIPTS / 'counted.py')!r}, run_name='__main__')\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    steps = [record for record in records(tmp_path) if record.get("reference_seconds")]
    assert [step["reference_seconds"] for step in steps] == [2.0] * 3
    assert all(step["updated"] and step["trace_seconds"] < 0.02 for step in steps), steps


def test_what_runs_where_a_value_is_read_is_in_the_fullest_moment(torchrun, tmp_path):
    """No synchronisation of the script's looks at memory there."""
    script = tmp_path / "reads.py"
    script.write_text(
        "import torch, torch_xla\n"
        "value = torch.ones(512, 512, device=torch_xla.device())\n"
        "(value @ value).sum().item()\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = records(tmp_path)
    (fullest,) = [record for record in found if record["kind"] == "memory"][-1:]
    graphs = [record for record in found if record["kind"] == "graph"]
    assert fullest["total"] >= max(graph["temp_bytes"] + graph["output_bytes"] for graph in graphs) > 0


def test_sharded_state_counts_as_this_rank_holds_it(torchrun, tmp_path):
    """ZeRO-1 over two cores: all of the parameters and gradients, half of the moments."""
    torchrun("sharded.py", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    held = records(tmp_path, "parameters")[-1]
    size = 64 * 32 * 4
    assert (held["count"], held["parameter_bytes"], held["gradient_bytes"]) == (64 * 32, size, size)
    assert 0 <= held["optimizer_bytes"] - 2 * size // 2 <= 16  # beside them the steps' number


@pytest.mark.parametrize(
    ("part", "stepped", "model", "frozen"),
    [("frozen", 8 * 64, 64 * 64 + 8 * 64, 64 * 64), ("shards", 30 * 65 / 2, 30 * 65, 0)],
)
def test_the_model_is_more_than_what_a_rank_trains(torchrun, tmp_path, part, stepped, model, frozen):
    """Frozen parameters are the model's too, and other ranks' shards; an average kept of it is another model."""
    torchrun("parts.py", part, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    held = records(tmp_path, "parameters")[-1]
    assert stepped <= held["count"] < 1.2 * stepped  # a shard is padded
    assert (held["model"], held["frozen"]) == (model, frozen)


def test_accumulation_and_what_follows_the_last_mark_step_are_counted(torchrun, tmp_path):
    """A batch whose gradients are only accumulated is training, not evaluation."""
    torchrun("counted.py", "accumulate", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    first = records(tmp_path)
    graphs = {record["graph"]: record for record in first if record["kind"] == "graph"}
    steps = [record for record in first if record["kind"] == "step"]
    training = [step for step in steps if step["optimizer"]]
    assert sum(step["samples"] for step in training) == 3 * 8
    flops = sum(
        graphs[graph]["flops"].get("fp32", 0) * count
        for step in training
        for graph, count in step["graphs"].items()
    )
    assert flops == 4 * 2 * (2 * 8 * 32 * 16)
    assert sum(step["collectives"].get("all_reduce", {"count": 0})["count"] for step in training) == 2
    assert sum(step.get("updated", False) for step in training) == 2
    assert not [step for step in steps if not step["optimizer"] and step["samples"]]


def test_batches_that_a_script_makes_itself_are_counted(torchrun, tmp_path):
    """By what most of its tensors have first, once for each backward pass; parameters are no batch."""
    torchrun("own_batches.py", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert [step["samples"] for step in trained(tmp_path)] == [16] * 5


def test_a_value_read_behind_a_collective_costs_what_it_costs_on_one_core(torchrun, tmp_path):
    """Here the collective has computed it by then; on trn1 it computes the forward pass again, on any number of cores.
    The first time goes unseen.
    """

    def steps(workers: int) -> list[tuple[float, tuple[int, int], bool]]:
        folder = tmp_path / str(workers)
        torchrun("read_early.py", workers=workers, WINDTUNNEL_COUNTERS_DIR=str(folder))
        first = records(folder)
        flops = {
            record["graph"]: sum(record["flops"].values()) for record in first if record["kind"] == "graph"
        }
        return [
            (
                sum(flops[graph] * runs for graph, runs in record["graphs"].items()),
                (sum(record.get("cut", {}).values()), sum(record.get("computed_again", {}).values())),
                record.get("waited", False),
            )
            for record in first
            if record["kind"] == "step" and record["optimizer"]
        ]

    alone, exchanging = steps(1), steps(2)
    assert len(alone) == 32
    assert [flops for flops, _, _ in exchanging[1:]] == [flops for flops, _, _ in alone[1:]]
    # A teacher's pass that is exchanged, with the loss read behind its gradients and before them.
    assert len({flops for flops, _, _ in alone[-8:]}) == 1
    # DistributedDataParallel on one core makes its buckets anew behind its first step.
    assert [cuts for _, cuts, _ in exchanging[6:]] == [cuts for _, cuts, _ in alone[6:]]
    # What is read right behind the end of a step, also in a closure, is waited for in the next one.
    for steps_of in alone, exchanging:
        assert [waited for _, _, waited in steps_of] == [False] * 13 + [True] * 4 + [False] * 15


def test_a_batch_of_which_gradients_are_computed_several_times_is_one(torchrun, tmp_path):
    """Each checkpointed layer computes its own within the backward pass: three were four batches. So it is of a batch
    that is cut up, and of several losses.
    """
    torchrun("sent_batches.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert [step["samples"] for step in trained(tmp_path)] == [8] * 9


def test_buckets_of_ddp_cost_about_what_xm_optimizer_step_costs(torchrun, tmp_path):
    """8 gradients in one bucket are one bucket, not 8 versions of it: in memory, and in the bytes of a step."""
    planned, moved, biases = {}, {}, {}
    for way in ("xm", "views", "copies"):
        folder = tmp_path / way
        biases[way] = torchrun("bucketed.py", way, WINDTUNNEL_COUNTERS_DIR=str(folder)).said[0]["bias"]
        first = records(folder)
        planned[way] = max(record["temporaries"] for record in first if record["kind"] == "memory")
        graphs = {record["graph"]: record for record in first if record["kind"] == "graph"}
        last = [record for record in first if record["kind"] == "step"][-1]
        moved[way] = sum(graphs[graph]["bytes_accessed"] * runs for graph, runs in last["graphs"].items())
    assert biases["views"] == biases["copies"] == pytest.approx(biases["xm"], rel=1e-5)
    assert planned["views"] < 1.5 * planned["xm"]
    assert moved["views"] < 1.5 * moved["xm"]
    # A bucket is held beside the gradients.
    assert planned["copies"] < 2 * planned["xm"]
    assert moved["copies"] < 2 * moved["xm"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [("", [(True, True), (True, False)]), (", attn_implementation='eager'", [(None, None)] * 2)],
)
def test_attention_that_transformers_chose_because_of_torch_xla_is_told(torchrun, tmp_path, asked, told):
    """Elsewhere it takes scaled dot product attention, where the script asks for none. One model generates text."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, torch_xla\n"
        "from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel\n"
        "for model in (\n"
        f"    GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16{asked})),\n"
        f"    BertModel(BertConfig(8, 8, 1, 2, 16{asked})),\n"
        "):\n"
        "    model.to('xla')\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    model(torch.ones(1, 4, dtype=torch.int64, device='xla'))[0].sum().backward()\n"
        "    optimizer.step()\n"
        "    torch_xla.sync()\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = records(tmp_path, "parameters")
    assert [(held.get("sdpa_elsewhere"), held.get("is_causal")) for held in found] == told


def test_attention_that_a_gpu_has_a_kernel_for_is_told(torchrun, tmp_path):
    """Scores of scaled_dot_product_attention, whoever calls it, and causal ones; none that a script writes out."""
    (said,) = torchrun("attending.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path)).said
    assert said["same"] and said["refused"]  # in torch's own words
    steps = trained(tmp_path)
    told = [record["line"] for record in records(tmp_path, "finding") if record["finding"] == "torch_compile"]
    compiled = (SCRIPTS / "attending.py").read_text().partition("torch.compile(")[0].count("\n") + 1
    assert set(told) == {f"attending.py:{compiled}"}, "and not the line of the first call, which compiles"
    scores = 2 * 4 * 16 * 16
    every, causal = {"scores": scores}, {"scores": scores, "causal_scores": scores}
    assert [step.get("sdpa") for step in steps][:10] == [
        None,
        every,
        causal,
        causal,
        every,  # with a mask
        every,  # torch.nn.MultiheadAttention
        {"scores": 2 * scores},  # recomputed in the backward pass
        {"scores": 2 * scores, "causal_scores": scores},
        every,  # one query for all samples
        None,  # in torch.compile
    ]


def test_a_module_that_is_compiled_first_meets_no_hook(torchrun, tmp_path):
    """Calls of modules are looked at until a step has trained; torch.compile warns of that, and would compile it."""
    script = tmp_path / "compiled_first.py"
    script.write_text(
        "import warnings\n"
        "import torch, torch_xla\n"
        "torch_xla.device()\n"
        "warnings.filterwarnings('error', 'Using .torch.compile.module')\n"
        "torch.compile(torch.nn.Linear(2, 2), backend='eager')(torch.ones(2))\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))


LAUNCHING = """
import torch, torch_xla, torch_xla.core.xla_model as xm, torch_xla.distributed.xla_backend
from torch.optim import AdamW, SGD
torch.distributed.init_process_group("xla")
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)).to("xla")
optimizer = {optimizer}(model.parameters(), lr=0.1)
def gradients():
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2, 4, device="xla").transpose(1, 2).reshape(4, 8)).pow(2).mean()
    loss.backward()
    return loss
for _ in range(6):
    {step}
    torch_xla.sync()
"""


CLIPPING = "; ".join(
    f"torch.nn.utils.clip_grad_{what}_(model.parameters(), 1.0)" for what in ("norm", "value")
)


@pytest.mark.parametrize(
    ("optimizer", "step", "workers"),
    [
        ("SGD", "gradients(); optimizer.step()", 1),
        ("AdamW", "gradients(); xm.optimizer_step(optimizer)", 2),
        ("AdamW", "optimizer.step(gradients)", 1),  # as Lightning does
        ("SGD", "xm.optimizer_step(optimizer, optimizer_args={'closure': gradients})", 1),
        ("SGD", f"gradients(); {CLIPPING}; optimizer.step()", 1),
    ],
)
def test_operations_that_a_gpu_would_launch_are_counted(torchrun, tmp_path, optimizer, step, workers):
    """Of the model alone, forward and backward; not views, the optimizer, what is done to gradients, our own work."""
    script = tmp_path / "train.py"
    script.write_text(LAUNCHING.format(optimizer=optimizer, step=step))
    torchrun(str(script), workers=workers, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    steps = trained(tmp_path)
    launches = [step["launches"] for step in steps if "launches" in step]
    assert launches and len(set(launches)) == 1
    # Forward: full, addmm, gelu, addmm, pow, mean. Backward: the rest.
    assert launches[0] == 17
    (held,) = records(tmp_path, "parameters")
    assert held["tensors"] == 4


def test_a_gradient_is_written_into_its_bucket_by_one_launch(torchrun, tmp_path):
    """XLA, which cannot write into a view, puts the bucket together anew; a GPU has no launch for that."""
    script = tmp_path / "train.py"
    bucketed = "model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)\n"
    text = LAUNCHING.format(optimizer="SGD", step="gradients(); optimizer.step()")
    script.write_text(text.replace("optimizer =", f"{bucketed}optimizer ="))
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert {step["launches"] for step in trained(tmp_path) if "launches" in step} == {17 + 4}


RECURRENT = """
import sys, torch, torch_xla
before, lstm, after = torch.nn.Linear(8, 8), torch.nn.LSTM(8, 8, 2, batch_first=True), torch.nn.Linear(8, 1)
parts = torch.nn.ModuleList([before, lstm, after]).to("xla")
before.requires_grad_("frozen" not in sys.argv)
optimizer = torch.optim.SGD([each for each in parts.parameters() if each.requires_grad], lr=0.1)
for length in (2,) * 4 + (9,) * 4:
    optimizer.zero_grad()
    hidden, (last, cell) = lstm(before(torch.ones(4, length, 8, device="xla")))
    chosen = {"hidden": hidden[:, -1], "last": last[-1], "cell": cell[-1]}[sys.argv[1]]
    after(chosen).pow(2).mean().backward()
    optimizer.step()
    torch_xla.sync()
"""


@pytest.mark.parametrize(("words", "expected"), [(["hidden"], 22), (["cell", "frozen"], 20)])
def test_an_lstm_launches_nothing_of_its_own_however_long_it_is(torchrun, tmp_path, words, expected):
    script = tmp_path / "recurrent.py"
    script.write_text(RECURRENT)
    torchrun(str(script), *words, workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    steps = trained(tmp_path)
    assert [step.get("launches", expected) for step in steps] == [expected] * 8
    assert sum("launches" in step for step in steps) > 4, "none counted of one of the two lengths"
