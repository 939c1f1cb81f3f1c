"""neuron-monitor's configuration and report, neuron-ls's and neuron-top's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim import cgroup, topology
from neuron_sim.processes import Use
from neuron_sim.runtime import usage_reader
from neuron_sim.tools import monitor_config, monitor_report, neuron_ls, system_stats, tables, top_screen
from neuron_sim.tools.monitor_config import ConfigError
from neuron_sim.tools.neuron_ls import Process

DOCUMENTED = """
{"period": "1s",
 "neuron_runtimes": [{"tag_filter": ".*", "metrics": [
    {"type": "neuroncore_counters"}, {"type": "memory_used"},
    {"type": "neuron_runtime_vcpu_usage"}, {"type": "execution_stats"}]}],
 "system_metrics": [{"type": "vcpu_usage"}, {"type": "memory_info"},
    {"period": "2s", "type": "neuron_hw_counters"}]}
"""


def published(at: float, **counts: float | None) -> dict[str, Any]:
    """What a core publishes."""
    zero = dict.fromkeys(
        ("executions", "execution_seconds", "compilations", "compile_seconds", "steps", "flops"), 0.0
    )
    return {
        "pid": 7,
        "time": at,
        "counts": {**zero, "host_bytes": 100, **counts},
        "before": None,
        "device_memory": {"parameters": 60, "temporaries": 40, "total": 100, "limit": 1000},
        "latencies": [(at, 0.5), (at - 50, 9.0)],
        "graphs": [{"graph": "ab", "source": "train.py:9", "device_bytes": 64}],
    }


def test_the_documented_configuration_is_understood() -> None:
    """A period of the root holds for all groups that name none."""
    config = monitor_config.parse(json.loads(DOCUMENTED))
    assert [runtime.periods for runtime in config.runtimes] == [
        dict.fromkeys(monitor_config.RUNTIME_GROUPS, 1.0)
    ]
    assert config.system == {"vcpu_usage": 1.0, "memory_info": 1.0, "neuron_hw_counters": 2.0}
    assert set(monitor_config.DEFAULT.system.values()) == {5.0}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "must be a JSON object"),
        ({"period": "soon"}, "period 'soon' is not a time"),
        ({"period": "1ms"}, "at least 100ms"),
        ({"system_metrics": [{"type": "weather"}]}, r"'weather' is not a metric group here: vcpu_usage"),
        ({"neuron_runtimes": [{"metrics": [{"type": "inference_stats"}]}]}, "execution_stats"),
        ({"neuron_runtimes": [{"tag_filter": "("}]}, "no regular expression"),
        ({"neuron_runtimes": {}}, "must be a JSON array"),
    ],
)
def test_a_wrong_configuration_is_refused_by_place(document: Any, message: str) -> None:
    """What is valid there is said."""
    with pytest.raises(ConfigError, match=message):
        monitor_config.parse(document)


@given(minutes=st.integers(0, 3), seconds=st.integers(1, 59), milliseconds=st.integers(0, 999))
def test_durations_add_up(minutes: int, seconds: int, milliseconds: int) -> None:
    """1m2s30ms is 62.03 seconds."""
    text = f"{minutes}m{seconds}s{milliseconds}ms"
    assert monitor_config.duration_s(text) == pytest.approx(60 * minutes + seconds + milliseconds / 1000)


def test_utilization_is_the_share_of_time_in_which_graphs_ran() -> None:
    """Two cores: the process computes on the first of them."""
    before = published(100.0, execution_seconds=1.0, flops=0.0)
    after = published(102.0, execution_seconds=1.5, flops=8e9)
    group = monitor_report.neuroncore_counters((2, 3), before, after)
    assert group == {
        "neuroncores_in_use": {
            "2": {"neuroncore_utilization": 25.0, "flops": 4_000_000_000},
            "3": {"neuroncore_utilization": 0.0},
        },
        "error": "",
    }


def test_what_is_not_known_is_left_out_and_named() -> None:
    """No invented figure: FLOPs that nobody counted, a process that published nothing."""
    after = published(102.0, flops=None)
    group = monitor_report.neuroncore_counters((1,), published(100.0, flops=None), after)
    assert "flops" not in group["neuroncores_in_use"]["1"]
    assert group["error"].startswith("flops:")
    group = monitor_report.neuroncore_counters((1,), after, after)
    assert group["error"] == "no step has ended in this period"
    memory = monitor_report.memory_used((0,), None, None)
    assert "neuron_device" not in memory["neuron_runtime_used_bytes"]
    assert memory["error"].startswith("device memory is not known yet")
    assert monitor_report.neuron_hw_counters() == {
        "neuron_devices": [],
        "error": "ECC events are not simulated",
    }


def test_latencies_are_those_of_the_period() -> None:
    """An execution that ended before the last look belongs to the report before."""
    group = monitor_report.execution_stats(published(90.0), published(100.0, executions=3))
    assert group["execution_summary"] == {"completed": 3}
    assert group["latency_stats"]["total_latency"]["p50"] == 0.5
    assert group["latency_stats"]["total_latency"]["p100"] == 0.5
    assert (
        monitor_report.execution_stats(published(100.0), published(100.0))["latency_stats"]["total_latency"]
        is None
    )


@given(seconds=st.lists(st.floats(1e-6, 100), min_size=1))
def test_percentiles_lie_within_what_was_seen_and_rise(seconds: list[float]) -> None:
    """p0 is the least, p100 the greatest."""
    found = list((usage_reader.percentiles(seconds) or {}).values())
    assert found == sorted(found)
    assert (found[0], found[-1]) == (min(seconds), max(seconds))


def test_memory_is_split_under_the_documented_names() -> None:
    """What stays is tensors, what a graph needs is scratchpad; a loaded model is a compiled graph."""
    group = monitor_report.memory_used((3,), published(1.0), Use(0, 0, 500))
    used = group["neuron_runtime_used_bytes"]
    assert (used["host"], used["neuron_device"]) == (500, 100)
    assert used["usage_breakdown"]["neuroncore_memory_usage"] == {
        "3": {"tensors": 60, "model_shared_scratchpad": 40}
    }
    assert group["loaded_models"][0]["subgraphs"]["sg_00"]["neuron_device_index"] == 1


def test_processor_time_becomes_percent() -> None:
    """Half of one of two processors is a quarter of the machine."""
    group = monitor_report.runtime_vcpu_usage(Use(1.0, 0.0, 0), Use(2.0, 0.5, 0), 2.0, 2)
    assert group["vcpu_usage"] == {"user": 25.0, "system": 12.5}
    before = system_stats.processor_ticks("cpu 10 0 10 80 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0\nctxt 5\n")
    after = system_stats.processor_ticks("cpu 60 0 10 130 0 0 0 0\ncpu0 60 0 10 130 0 0 0 0\nctxt 9\n")
    usage = system_stats.processor_usage(before, after)
    assert usage["average_usage"] == {
        "user": 50.0, "nice": 0.0, "system": 0.0, "idle": 50.0, "io_wait": 0.0, "irq": 0.0, "soft_irq": 0.0,
    }  # fmt: skip
    assert (list(usage["usage_data"]), usage["context_switch_count"]) == (["0"], 4)  # type: ignore[call-overload]


def test_this_machine_has_processors_and_memory() -> None:
    """The readers understand the /proc that is here."""
    ticks, switches = system_stats.processor_ticks()
    assert "cpu" in ticks
    assert switches > 0
    memory = system_stats.memory()
    assert 0 < memory["memory_used_bytes"] <= memory["memory_total_bytes"]


# --- neuron-ls ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "limit", "kills"),
    [
        ("", ("memory.max", "memory.events", "memory.peak"), "low 0\noom 3\noom_kill 2\n"),
        (
            "memory",
            ("memory.limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes"),
            "under_oom 0\noom_kill 2\n",
        ),
        ("", None, ""),
    ],
)
def test_a_containers_memory_and_what_was_killed_for_it(
    folder: str,
    limit: tuple[str, str, str] | None,
    kills: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By version 2 of control groups, and by 1; without them it is this machine's, and nobody tells of kills."""
    monkeypatch.setattr(cgroup, "_ROOT", tmp_path)
    if limit is not None:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / limit[0]).write_text("1048576\n")
        (tmp_path / folder / limit[1]).write_text(kills)
        (tmp_path / folder / limit[2]).write_text("4096\n")
    assert cgroup.oom_kills() == (2 if limit else None)
    assert cgroup.memory_peak() == (4096 if limit else None)
    assert (cgroup.memory_limit() == 2**20) == (limit is not None)
    assert cgroup.memory_limit() > 0


def test_processes_are_columns_of_their_own_as_documented() -> None:
    """Several on one device rule the devices apart; commands are cut to 40 characters, or 80."""
    instance = topology.instance("ml.trn1.32xlarge")
    listed = topology.devices(instance, 4)
    users = {
        0: [Process(268911, f"python3 {'x' * 90}", "2.0.0"), Process(7, "neuron-ls", "NA")],
        1: [],
    }
    lines = neuron_ls.as_text(listed, instance, users, neuron_ls.NARROW).splitlines()
    assert lines[3].startswith("| NEURON | NEURON |  NEURON  | NEURON |  CONNECTED  |")
    assert f"| python3 {'x' * 29}... | 2.0.0   |" in lines[6]
    assert lines[7].startswith("|        |        |          |")
    assert lines[8].startswith("+--------+")
    assert len({len(line) for line in lines[2:]}) == 1
    wide = neuron_ls.as_text(listed, instance, users, neuron_ls.WIDE)
    assert f"python3 {'x' * 69}..." in wide


def test_connections_and_addresses_are_in_the_documented_order() -> None:
    """The rows of `neuron-ls --topology` on a trn1.32xlarge in the Neuron documentation."""
    listed = topology.devices(topology.instance("ml.trn1.32xlarge"))
    assert [(device.connected_to, device.bdf) for device in listed[:6]] == [
        ((12, 3, 4, 1), "0000:10:1c.0"),
        ((13, 0, 5, 2), "0000:10:1d.0"),
        ((14, 1, 6, 3), "0000:a0:1c.0"),
        ((15, 2, 7, 0), "0000:a0:1d.0"),
        ((0, 7, 8, 5), "0000:20:1b.0"),
        ((1, 4, 9, 6), "0000:20:1c.0"),
    ]
    assert len({device.bdf for device in listed}) == 16


def test_the_torus_is_drawn_as_documented() -> None:
    """Sixteen devices in four rows, wrapped around; one device is connected to nobody."""
    drawing = tables.torus(16, 16).splitlines()
    assert drawing[0] == "Neuron Device Topology"
    assert drawing[1] == drawing[-5] == "        *        *        *        *"
    assert sum("[" in line for line in drawing) == 4
    assert (
        drawing[4]
        == "  *\u2013\u2013►[ 0 ]◄\u2013\u2013►[ 1 ]◄\u2013\u2013►[ 2 ]◄\u2013\u2013►[ 3 ]◄\u2013\u2013*"
    )
    assert "[12 ]" in drawing[16]
    assert tables.torus(1, 1) == "Neuron Device Topology\n  [ 0 ]"


def test_the_hardware_is_named_as_documented() -> None:
    """Of trn2 as in the example of the neuron-monitor guide."""
    found = monitor_report.neuron_hardware_info(topology.instance("ml.trn2.48xlarge"), 16)
    assert found == {
        "neuron_device_type": "trainium2",
        "neuron_device_version": "v4",
        "neuroncore_version": "v3d",
        "neuron_device_count": 16,
        "neuron_device_memory_size": 103079215104,
        "neuroncore_per_device_count": 4,
        "logical_neuroncore_config": 2,
        "error": "",
    }


# --- neuron-top ---------------------------------------------------------------


def report(*runtimes: dict[str, Any]) -> dict[str, Any]:
    """A report of neuron-monitor."""
    instance = topology.instance("ml.trn1.2xlarge")
    return {
        "neuron_runtime_data": list(runtimes),
        "system_data": {"vcpu_usage": {"average_usage": {"user": 40.0, "system": 2.5}}},
        "instance_info": monitor_report.instance_info(instance),
        "neuron_hardware_info": monitor_report.neuron_hardware_info(instance, 1),
    }


def runtime(tag: str, core: int) -> dict[str, Any]:
    """One process of a report."""
    before, after = published(100.0), published(102.0, execution_seconds=1.0, flops=4e12)
    return {
        "pid": 1,
        "neuron_runtime_tag": tag,
        "report": {
            "neuroncore_counters": monitor_report.neuroncore_counters((core,), before, after),
            "memory_used": monitor_report.memory_used((core,), after, Use(0, 0, 2**30)),
            "neuron_runtime_vcpu_usage": {"vcpu_usage": {"user": 5.0, "system": 1.0}, "error": ""},
        },
    }


def test_the_screen_has_the_documented_sections() -> None:
    """All processes together, or one of them; percent or teraflops."""
    both = report(runtime("one", 0), runtime("two", 1))
    text = "\n".join(top_screen.lines(both))
    for part in (
        "NeuronCore v2 Utilization",
        "NC0   [|||||||||||||||               ]  50.00%",
        "System vCPU usage   [ 40.00%,   2.50%]",
        "Runtime vCPU usage  [ 10.00%,   2.00%]",
        "Host Used Memory    2.00 GB",
        "Tensors",
        ">all<   one    two ",
        "train.py:9",
    ):
        assert part in text
    one = top_screen.lines(both, "two", flops=True)
    assert "  NC1   2.0000" in one
    assert not any(line.startswith("  NC0 ") for line in one)
    assert top_screen.tabs(both) == ["all", "one", "two"]


def test_a_screen_without_processes_says_so() -> None:
    """Nothing is shown as zero that nobody measured."""
    text = "\n".join(top_screen.lines(report()))
    assert "no process uses a NeuronCore" in text
    assert "Device Used Memory  not known yet" in text
