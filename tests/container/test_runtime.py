"""A core belongs to one process at a time, as on trn1, and whoever asks for it meanwhile learns why not."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import FORKED, LAUNCHER, SCRIPTS

PATIENCE_S = 600


@pytest.fixture
def start(tmp_path):
    """Start a script on the cores of one host; what still runs at the end is killed."""
    started = []

    def run(script: str, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [*FORKED, str(SCRIPTS / script), *arguments],
            env={**os.environ, "WINDTUNNEL_COUNTERS_DIR": str(tmp_path / "counters")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with process:
            process.kill()


def wait_until_holding(process: subprocess.Popen) -> int:
    """Read on until the script says that it uses its core; its process id."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("holding"):
            return int(line.split()[-1])
    raise AssertionError("".join(lines))


def test_a_core_is_refused_while_its_process_lives_and_free_once_it_is_dead(start, tmp_path):
    """By number, by count and by default; cores that the instance lacks; and no trace after SIGKILL."""
    never, now = str(tmp_path / "never"), str(Path(__file__))
    holder = start("holding.py", never, "NEURON_RT_VISIBLE_CORES=0")
    pid = wait_until_holding(holder)
    refused = {
        "lnc0-lnc0 Available:0": start("holding.py", now, "NEURON_RT_VISIBLE_CORES=0"),
        "2 Available:1": start("holding.py", now),
    }
    absent = start("holding.py", now, "NEURON_RT_VISIBLE_CORES=1,5-6")
    for requested, process in refused.items():
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        text = f"Logical Neuron Core(s) not available - Requested:{requested} Logical Core size:1"
        assert f"ERROR   NRT:nrt_allocate_neuron_cores               {text}" in output
        assert f"CoreBusyError: {text}. Process {pid} (" in output
        assert "holding.py" in output.partition("CoreBusyError")[2] and "holds NeuronCore 0." in output
    # Not before: it is the one that was available.
    free = start("holding.py", now, "NEURON_RT_NUM_CORES=1")
    assert free.communicate(timeout=PATIENCE_S) and free.returncode == 0
    output, _ = absent.communicate(timeout=PATIENCE_S)
    assert absent.returncode == 1 and "names NeuronCore 5, but ml.trn1.2xlarge has cores 0 to 1" in output

    os.kill(pid, signal.SIGKILL)
    holder.wait(PATIENCE_S)
    again = start("holding.py", now)
    output, _ = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, output


def test_a_script_may_start_torchrun_unless_it_has_used_the_device(start):
    """Importing torch_xla holds nothing; DataLoader's forked workers share their script's cores."""
    process = start("nesting.py", *LAUNCHER)
    output, _ = process.communicate(timeout=PATIENCE_S)
    said = {
        line.split()[0]: line.split()[1]
        for line in output.splitlines()
        if line.startswith(("I", "B", "L", "A"))
    }
    assert (said["BEFORE"], said["LOADED"], said["AFTER"]) == ("0", "28.0", "1"), output
    assert f"Process {said['IN']} (" in output
    assert "a script that starts others for the device must not use the device itself before" in output
