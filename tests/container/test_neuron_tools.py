"""The Neuron tools beside running cores: what they show is what runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LAUNCHER, SCRIPTS

CONFIG = {
    # Twice as long as from one publication of a core to its next.
    "period": "2s",
    "neuron_runtimes": [
        {"tag_filter": "^work", "metrics": [{"type": "neuroncore_counters"}, {"type": "execution_stats"}]},
        {"tag_filter": ".*", "metrics": [{"type": "memory_used"}, {"type": "neuron_runtime_vcpu_usage"}]},
    ],
    "system_metrics": [{"type": "vcpu_usage"}, {"type": "memory_info"}, {"type": "neuron_hw_counters"}],
}
READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


def test_the_tools_are_where_aws_s_images_have_them():
    """Scripts and Ray call them by this path. neuron-ls answers with the cores of the instance."""
    for name in ("neuron-ls", "neuron-monitor", "neuron-top"):
        assert os.access(f"/opt/aws/neuron/bin/{name}", os.X_OK), name
    environment = {**os.environ, "WINDTUNNEL_INSTANCE_TYPE": "ml.trn1.2xlarge"}
    listed = subprocess.check_output(["/opt/aws/neuron/bin/neuron-ls", "--json-output"], env=environment)
    assert sum(device["nc_count"] for device in json.loads(listed)) == 2


def tool(name: str, *arguments: str, environment: dict[str, str]) -> str:
    """The output of a tool."""
    command = [sys.executable, "-m", f"neuron_sim.tools.{name}", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=True
    ).stdout


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Two workers on two cores, until the tests are over; the environment of their host."""
    folder = tmp_path_factory.mktemp("host")
    environment = {
        **os.environ,
        "WINDTUNNEL_COUNTERS_DIR": str(folder / "counters"),
        "WINDTUNNEL_TENSORBOARD_DIR": str(folder / "tensorboard"),
        "NEURON_PROCESS_TAG": "worker",
    }
    until = folder / "over"
    command = [*LAUNCHER, "--nproc_per_node", "2", str(SCRIPTS / "holding.py"), str(until)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as launcher:
        lines: list[str] = []
        while sum(line.startswith("holding") for line in lines) < 2:
            line = launcher.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
        yield environment, launcher, until
        launcher.kill()


def test_neuron_ls_shows_the_processes_of_a_running_job(running):
    """Each worker on its device, under the command that its script was started with."""
    environment, launcher, _ = running
    (device,) = json.loads(tool("neuron_ls", "-j", environment=environment))
    assert device["nc_count"] == 2
    processes = device["neuron_processes"]
    assert len(processes) == 2 and launcher.pid not in [process["pid"] for process in processes]
    for process in processes:
        assert process["command"].startswith("python") and process["neuron_runtime_version"].endswith(
            "-simulated"
        )
    text = tool("neuron_ls", "--show-all-procs", "--wide", "--topology", environment=environment)
    assert "holding.py" in text and "| NA " in text and "Neuron Device Topology" in text
    for process in processes:
        assert str(process["pid"]) in text


def test_neuron_monitor_streams_what_the_configuration_asks_for(running, tmp_path):
    """The first line at once; rates when a core has told again what it did; what the simulator lacks is named."""
    environment, _, _ = running
    config = tmp_path / "monitor.json"
    config.write_text(json.dumps(CONFIG))
    command = [sys.executable, "-m", "neuron_sim.tools.neuron_monitor", "-c", str(config)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as monitor:
        first = json.loads(monitor.stdout.readline())
        # A busy machine may let a core wait for longer than a period, in which it then has done nothing.
        reports = [json.loads(monitor.stdout.readline())]
        while len(reports) < 2 or not all(map(has_worked, reports[-2:])):
            assert len(reports) < 100, reports[-2:]
            reports.append(json.loads(monitor.stdout.readline()))
        second, third = reports[-2:]
        seen = tool("neuron_ls", "-a", "-w", environment=environment)
        monitor.stdout.close()
        assert monitor.wait(600) == 0, "it ends when nobody reads any more"
    assert "neuron_monitor" in seen
    assert set(first["system_data"]) == {"memory_info", "neuron_hw_counters"}
    assert first["neuron_hardware_info"]["neuron_device_memory_size"] == 32 * 2**30
    used = {}
    for report in (second, third):
        for entry in report["neuron_runtime_data"]:
            assert (entry["neuron_runtime_tag"], entry["error"]) == ("worker", "")
            groups = entry["report"]
            if "neuroncore_counters" in groups:
                used.update(groups["neuroncore_counters"]["neuroncores_in_use"])
                assert groups["execution_stats"]["latency_stats"]["total_latency"]["p50"] > 0
            else:
                assert groups["memory_used"]["neuron_runtime_used_bytes"]["neuron_device"] >= 64 * 64 * 4
                assert groups["neuron_runtime_vcpu_usage"]["vcpu_usage"]["user"] >= 0
    assert set(used) == {"0", "1"}
    assert all(0 < core["neuroncore_utilization"] <= 100 for core in used.values())
    assert used["0"]["flops"] > 0
    assert third["system_data"]["vcpu_usage"]["average_usage"]["idle"] <= 100


def has_worked(report: dict) -> bool:
    """Whether both cores have executed something in its period."""
    counted = [
        entry["report"]["execution_stats"]["execution_summary"]["completed"]
        for entry in report["neuron_runtime_data"]
        if "execution_stats" in entry["report"]
    ]
    return len(counted) == 2 and all(counted)


def test_neuron_top_is_one_look_without_a_terminal(running):
    """Both cores, both processes."""
    text = tool("neuron_top", environment=running[0])
    assert "NC0 " in text and "NC1 " in text and ">all<" in text and "holding.py:" in text


def test_nothing_is_left_when_the_job_has_ended_but_its_scalars(running):
    """Cores are free, live usage is gone, and TensorBoard's own reader finds a scalar for each step."""
    environment, launcher, until = running
    until.touch()
    assert launcher.wait(600) == 0
    assert json.loads(tool("neuron_ls", "-j", environment=environment))[0]["neuron_processes"] == []
    cores = Path(environment["WINDTUNNEL_COUNTERS_DIR"]) / "cores"
    assert sorted(path.name for path in cores.iterdir()) == ["core-0.lock", "core-1.lock"]
    (folder,) = (Path(environment["WINDTUNNEL_TENSORBOARD_DIR"]) / "neuron").iterdir()
    done = subprocess.run(
        [sys.executable, "-c", READ_EVENTS, str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    scalars = json.loads(done.stdout)
    steps = [step for step, _ in scalars["neuron/step_seconds"]]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 5
    assert scalars["neuron/graphs_compiled"][-1][1] >= 1
    assert scalars["neuron/flops_per_second_per_core"][-1][1] > 0
    assert scalars["neuron/samples_per_second_per_core"][-1][1] > 0


def test_neuron_ls_stays_quick_to_start():
    """The toolkit runs it before each job: it must not import torch."""
    code = "import sys; from neuron_sim.tools import neuron_ls; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_job_whose_packages_do_not_fit_tensorboard_runs_without_scalars(torchrun, tmp_path):
    """As where a requirements.txt asks for an older protobuf than tensorboard's messages were made with."""
    package = tmp_path / "old" / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('cannot import name \\'runtime_version\\'')\n")
    script = tmp_path / "train.py"
    script.write_text("import torch, torch_xla\nkept = torch.ones(2, device='xla') + 1\ntorch_xla.sync()\n")
    launch = torchrun(
        str(script),
        workers=1,
        PYTHONPATH=str(package.parent),
        WINDTUNNEL_COUNTERS_DIR=str(tmp_path / "counters"),
        WINDTUNNEL_TENSORBOARD_DIR=str(tmp_path / "board"),
    )
    assert launch.output.count("no scalars for TensorBoard") == 1 and "'runtime_version'" in launch.output
    assert "Traceback" not in launch.output
