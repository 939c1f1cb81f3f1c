"""A core knows who it is, by every name that Trainium scripts use."""

from __future__ import annotations

import os
import subprocess

from conftest import FORKED


def test_every_api_tells_of_the_same_neuron_core(torchrun):
    """torch_xla, torch.distributed and torchrun agree on world and ordinal; kind and variables are those of trn1. The
    log says that it is a rehearsal, and how large.
    """
    launch = torchrun("world.py", workers=4, WINDTUNNEL_LOCAL_CORES="4")
    # Nobody shall take a rehearsal with fewer cores for the whole instance.
    assert (
        "Windtunnel: 4 of the 32 NeuronCores of ml.trn1.32xlarge, simulated; local_cores=4: a"
        in launch.output
    )
    assert "came with" not in launch.output
    said = launch.said
    assert [entry["rank"] for entry in said] == [0, 1, 2, 3]
    for rank, entry in enumerate(said):
        assert entry["world"] == [4, 4, 4, 4]
        assert entry["ordinal"] == [rank] * 4
        assert entry["master"] is (rank == 0)
        assert entry["visible_cores"] == str(rank)
        assert (entry["kind"], entry["hardware"], entry["device_type"]) == ("NC_v2", "NEURON", "NEURON")
        assert entry["platform"] == "trn1"
        assert (entry["device"], entry["computed"], entry["bucket"]) == ("xla:0", 6.0, "50")
        assert entry["root"] == "62182"
        # Gone from torch_xla 2.7 on, as on the real thing.
        assert entry["old"] == {}


def test_the_device_is_that_of_the_instance(torchrun):
    """trn2 joins two physical cores to a logical one, which has a name of its own."""
    (entry,) = torchrun("world.py", workers=1, WINDTUNNEL_INSTANCE_TYPE="ml.trn2.3xlarge").said
    assert (entry["kind"], entry["platform"]) == ("NC_v3d", "trn2")


def test_names_follow_the_framework_version(torchrun):
    """xrt_world_size and get_ordinal exist up to 2.6. Of a newer name than the framework has the script is warned, with
    the version that brought it: on SageMaker the job would fail there.
    """
    launch = torchrun("world.py", workers=2, WINDTUNNEL_FRAMEWORK_VERSION="2.1.0")
    expected = [{"xrt_world_size": 2, "get_ordinal": rank} for rank in (0, 1)]
    assert [entry["old"] for entry in launch.said] == expected
    assert (
        "torch_xla.device came with torch_xla 2.3: a job with framework_version 2.1 does not" in launch.output
    )


def test_what_is_not_simulated_raises_by_whatever_name(torchrun):
    """Never a silent no-op. The names of the table: test_api_table.py."""
    (entry,) = torchrun("refused.py", workers=1).said
    for feature in ("registered", "call"):
        assert entry[feature].startswith("NotSimulatedError: "), entry[feature]
        assert "not simulated" in entry[feature]
        assert "written in NKI" in entry[feature] and "scaled_dot_product_attention" in entry[feature]


def test_spmd_by_its_variable_is_refused_like_its_function(torchrun, tmp_path):
    """Not by the busy cores of the other worker, for which torch_xla has each worker ask."""
    script = tmp_path / "first_use.py"
    script.write_text("import torch_xla\ntorch_xla.device()\n")
    launch = torchrun(str(script), check=False, XLA_USE_SPMD="1")
    assert launch.code == 1
    assert "NotSimulatedError: SPMD (XLA_USE_SPMD) is not simulated" in launch.output
    assert "Unset XLA_USE_SPMD." in launch.output and "CoreBusyError" not in launch.output


def test_more_workers_than_cores_are_refused(torchrun):
    """As on the instance: each worker needs a core of its own."""
    launch = torchrun("world.py", workers=3, check=False, WINDTUNNEL_INSTANCE_TYPE="ml.trn1.2xlarge")
    assert launch.code == 1
    assert "3 workers need a NeuronCore each, but ml.trn1.2xlarge has 2 here" in launch.output


WITHOUT_CORES = """
import torch_xla
import torch_xla.core.xla_model as xm
print("imported", flush=True)
xm.xla_device()
"""


def test_a_host_without_cores_can_import_and_nothing_more(tmp_path):
    """A cluster's head node, as on AWS: transformers imports torch_xla wherever it is installed."""
    script = tmp_path / "without.py"
    script.write_text(WITHOUT_CORES)
    done = subprocess.run(
        [*FORKED, str(script)],
        env={**os.environ, "WINDTUNNEL_INSTANCE_TYPE": "ml.c5.4xlarge"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("imported\n", 1), done.stderr
    assert "TopologyError: instance type 'ml.c5.4xlarge' is not simulated" in done.stderr
