"""What the simulated instances have, and how the tools show it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim import settings, topology
from neuron_sim.errors import NeuronSimError, TopologyError
from neuron_sim.tools import neuron_ls

SIMULATOR = Path(neuron_ls.__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "devices", "cores", "gib"),
    [
        ("ml.trn1.2xlarge", 1, 2, 16),
        ("ml.trn1.32xlarge", 16, 32, 16),
        ("trn1n.32xlarge", 16, 32, 16),
        ("ml.trn2.3xlarge", 1, 4, 24),
        ("ml.trn2.48xlarge", 16, 64, 24),
    ],
)
def test_instances_have_the_documented_devices_and_cores(
    name: str, devices: int, cores: int, gib: int
) -> None:
    """Logical cores, as the tools and torchrun count them, each with its share of a device's HBM."""
    instance = topology.instance(name)
    assert (instance.devices, instance.cores) == (devices, cores)
    assert instance.memory_per_core_bytes == gib * topology.GIB


def test_an_unknown_instance_is_refused_with_the_known_ones() -> None:
    """The error names what is valid."""
    with pytest.raises(TopologyError, match=r"ml\.inf1\.xlarge.*ml\.trn1\.2xlarge, ml\.trn1\.32xlarge"):
        topology.instance("ml.inf1.xlarge")


@given(cores=st.integers(1, 32))
def test_the_sum_of_nc_count_is_what_is_rehearsed(cores: int) -> None:
    """The toolkit starts as many workers as `neuron-ls -j` counts cores."""
    instance = topology.instance("ml.trn1.32xlarge")
    listed = topology.devices(instance, cores)
    assert sum(neuron_ls.as_json(device, instance)["nc_count"] for device in listed) == cores  # type: ignore[misc]
    assert [core for device in listed for core in device.core_ids] == list(range(cores))


@pytest.mark.parametrize("cores", [0, 3, -1])
def test_more_or_fewer_cores_than_there_are_are_refused(cores: int) -> None:
    """The error says what is possible."""
    with pytest.raises(TopologyError, match="Choose 1 to 2"):
        topology.devices(topology.instance("ml.trn1.2xlarge"), cores)


def test_the_torus_connects_each_device_to_four_others_both_ways() -> None:
    """16 devices in a 4x4 torus."""
    listed = topology.devices(topology.instance("ml.trn1.32xlarge"))
    for device in listed:
        assert len(device.connected_to) == 4
        for neighbour in device.connected_to:
            assert device.index in listed[neighbour].connected_to


def test_neuron_ls_prints_the_documented_table() -> None:
    """The example of the Neuron documentation, but for the instance id."""
    output = _neuron_ls()
    assert output.splitlines()[0] == "instance-type: trn1.2xlarge"
    assert output.splitlines()[2:] == [
        "+--------+--------+----------+--------+--------------+----------+------+",
        "| NEURON | NEURON |  NEURON  | NEURON |     PCI      |   CPU    | NUMA |",
        "| DEVICE | CORES  | CORE IDS | MEMORY |     BDF      | AFFINITY | NODE |",
        "+--------+--------+----------+--------+--------------+----------+------+",
        "| 0      | 2      | 0-1      | 32 GB  | 0000:00:1e.0 | 0-7      | -1   |",
        "+--------+--------+----------+--------+--------------+----------+------+",
    ]


def test_neuron_ls_of_trn2_is_the_documented_one() -> None:
    """The first and the last rows of the documentation's example, which is of a trn2n.48xlarge."""
    lines = _neuron_ls(WINDTUNNEL_INSTANCE_TYPE="ml.trn2.48xlarge").splitlines()
    assert lines[2:8] + lines[-2:] == [
        "logical-neuroncore-config: 2",
        "+--------+--------+----------+--------+---------------+--------------+---------------+------+",
        "| NEURON | NEURON |  NEURON  | NEURON |   CONNECTED   |     PCI      |      CPU      | NUMA |",
        "| DEVICE | CORES  | CORE IDS | MEMORY |    DEVICES    |     BDF      |   AFFINITY    | NODE |",
        "+--------+--------+----------+--------+---------------+--------------+---------------+------+",
        "| 0      | 4      | 0-3      | 96 GB  | 12, 3, 4, 1   | 0000:cc:00.0 | 48-95,144-191 | 1    |",
        "| 15     | 4      | 60-63    | 96 GB  | 11, 14, 3, 12 | 0000:f7:00.0 | 48-95,144-191 | 1    |",
        "+--------+--------+----------+--------+---------------+--------------+---------------+------+",
    ]
    (device,) = json.loads(_neuron_ls("-j", WINDTUNNEL_INSTANCE_TYPE="ml.trn2.3xlarge"))
    assert (device["nc_count"], device["logical_neuroncore_config"]) == (4, 2)
    assert (device["memory_size"], device["cpu_affinity"]) == (103079215104, "0-11")


def test_only_the_simulated_logical_cores_may_be_asked_for() -> None:
    """Eight small cores instead of four are not simulated, and that is said."""
    trn2 = {"WINDTUNNEL_INSTANCE_TYPE": "ml.trn2.3xlarge"}
    assert settings.read({**trn2, "NEURON_LOGICAL_NC_CONFIG": "2"}).cores == 4
    with pytest.raises(NeuronSimError, match="NEURON_LOGICAL_NC_CONFIG='1' is not simulated"):
        settings.read({**trn2, "NEURON_LOGICAL_NC_CONFIG": "1"})
    with pytest.raises(NeuronSimError, match="set it to 1"):
        settings.read({"NEURON_LOGICAL_NC_CONFIG": "2"})


def test_neuron_ls_json_has_the_documented_keys() -> None:
    """One object a device, indented by four spaces, as the toolkit parses it."""
    output = _neuron_ls("-j")
    assert output.startswith('[\n    {\n        "neuron_device": 0,')
    assert json.loads(output) == [
        {
            "neuron_device": 0,
            "bdf": "0000:00:1e.0",
            "cpu_affinity": "0-7",
            "numa_node": "-1",
            "connected_to": None,
            "nc_count": 2,
            "memory_size": 34359738368,
            "neuroncore_ids": [0, 1],
            "neuron_processes": [],
        }
    ]


def test_neuron_ls_fails_on_a_wrong_setting() -> None:
    """A non-zero exit makes the toolkit start one worker; the reason is on stderr."""
    done = _run("-j", WINDTUNNEL_LOCAL_CORES="7")
    assert done.returncode == 2
    assert "Choose 1 to 2" in done.stderr


def test_settings_name_the_wrong_variable() -> None:
    """A value that is no number is not taken for an absent one."""
    with pytest.raises(NeuronSimError, match="WINDTUNNEL_LOCAL_CORES='two'"):
        settings.read({"WINDTUNNEL_LOCAL_CORES": "two"})
    with pytest.raises(NeuronSimError, match="WINDTUNNEL_FRAMEWORK_VERSION='new'"):
        settings.read({"WINDTUNNEL_FRAMEWORK_VERSION": "new"})


def test_identity_comes_from_torchrun_or_from_xmp_spawn() -> None:
    """torchrun numbers hosts in blocks; without either, the process is alone."""
    torchrun = {
        "TORCHELASTIC_RUN_ID": "x",
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
    }
    assert settings.identity(torchrun) == settings.Identity(5, 8, 1, 4)
    assert list(settings.identity(torchrun).local_ranks) == [4, 5, 6, 7]
    spawn = {"NEURON_PJRT_PROCESSES_NUM_DEVICES": "1,1", "NEURON_PJRT_PROCESS_INDEX": "1"}
    assert settings.identity(spawn) == settings.Identity(1, 2, 1, 2)
    assert settings.identity({}) == settings.Identity(0, 1, 0, 1)


def _neuron_ls(*arguments: str, **environment: str) -> str:
    done = _run(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "neuron_sim.tools.neuron_ls", *arguments],
        env={"PYTHONPATH": str(SIMULATOR), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_who_asks_for_all_cores_gets_those_that_are_rehearsed() -> None:
    """AWS's toolkit starts 64 workers on trn2.48xlarge, whatever neuron-ls says; other numbers stay."""
    environment = {"WINDTUNNEL_INSTANCE_TYPE": "ml.trn2.48xlarge"}
    assert settings.read(environment).workers("64") == "64"
    fewer = settings.read({**environment, "WINDTUNNEL_LOCAL_CORES": "2"})
    assert [fewer.workers(asked) for asked in ("64", "4", "auto")] == ["2", "4", "auto"]


def test_devices_that_make_no_square_are_not_linked_as_if_they_did() -> None:
    """Six of them, say: a type that is new must say how its chips are linked."""
    six = replace(topology.instance("ml.trn1.32xlarge"), devices=6)
    with pytest.raises(TopologyError, match=r"6 devices of .* make no square"):
        topology.devices(six)
