"""What stands above torch_xla (ZeRO-1, FSDP, xser, DDP, torch.compile, accelerate) does here what it does there."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from conftest import FORKED, INSTANCE, SCRIPTS

ON_FOUR = ["zero_1", "process_groups"]
"""Checks of cores that form groups."""
NAMES = re.findall(r"@check\ndef (\w+)", (SCRIPTS / "libraries.py").read_text())
ON_TWO = [name for name in NAMES if name != "process_groups"]


def failures(launch, workers, names) -> str:
    """What each check said that failed, or that did not say anything."""
    said = {(entry["check"], entry["rank"]): entry.get("failure") for entry in launch.said}
    missing = "did not get so far"
    results = [(name, rank, said.get((name, rank), missing)) for name in names for rank in range(workers)]
    failed = [f"{name}, rank {rank}: {what}" for name, rank, what in results if what]
    # The script stops at its first failure: that first.
    return "\n".join(sorted(failed, key=lambda text: text.endswith(missing)))


def test_libraries_train_as_plain_pytorch_does(torchrun, tmp_path):
    """On two cores; those that train end with the parameters of PyTorch on the whole batch."""
    launch = torchrun("libraries.py", str(tmp_path), *ON_TWO, workers=2, check=False)
    failed = failures(launch, 2, ON_TWO)
    assert not failed, f"{failed}\n{launch.output[-2000:]}"
    assert launch.code == 0


def test_groups_of_four_cores(torchrun, tmp_path):
    """ZeRO-1 within groups, process groups."""
    launch = torchrun("libraries.py", str(tmp_path), *ON_FOUR, workers=4, check=False)
    failed = failures(launch, 4, ON_FOUR)
    assert not failed, f"{failed}\n{launch.output[-2000:]}"


def spawning(how, tmp_path, cores="2", script="spawned.py", **environment):
    """A plain script that starts its own cores; its exit code and output."""
    finished = subprocess.run(
        [*FORKED, str(SCRIPTS / script), how],
        env={
            **os.environ,
            **INSTANCE,
            "NEURONCORE_NUM_DEVICES": cores,
            "WINDTUNNEL_COUNTERS_DIR": str(tmp_path),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return finished.returncode, finished.stdout


@pytest.mark.parametrize("how", ["spawn-fails", "launch"])
def test_processes_that_a_script_starts_are_cores(how, tmp_path):
    """`xmp.spawn` with both start methods and `torch_xla.launch`: ordinals, collectives and counters of each core.

    A core that fails ends those that wait for it, though torch_xla keeps its process: its own error is shown, and
    nobody waits for ever.
    """
    fails = how.endswith("-fails")
    code, output = spawning(how, tmp_path)
    assert code == fails, output
    assert sorted(re.findall(r"core (\d) of 2: sum 3.0", output)) == ["0", "1"], output
    for rank in (0, 1):
        records = (tmp_path / f"rank-{rank}.jsonl").read_text()
        assert f'"rank":{rank},"local_rank":{rank},"world_size":2' in records
        assert re.findall(r'"kind":"end".*"exit":"(\w+)"', records) == ["error" if fails else "ok"]
    # The first core of a host counts for all: also batches and readings, of torch_xla's thread for the function.
    first = (tmp_path / "rank-0.jsonl").read_text()
    assert '"kind":"graph"' in first
    assert '"batches":4' in first
    assert re.search(r"warning: spawned\.py:\d+: \.item\(\)", output), output
    if fails:
        assert "rank 1 has failed:" in output and "ValueError: the reason of rank 1" in output, output
        lost = r"rank 1 ended: its script has failed, .*; rank 0 waited in all_reduce at spawned\.py:\d+"
        assert re.search(f"PeerLostError: {lost}", output), output


def test_a_long_step_is_told_by_the_core_that_makes_it(tmp_path):
    """With its place in the script, which torch_xla runs in another thread than the first. The process that has started
    it, and a worker of its loader, have no steps; both said that theirs took long.
    """
    code, output = spawning(
        "spawn", tmp_path, cores="1", script="long_spawned.py", WINDTUNNEL_REHEARSE_STEPS="2"
    )
    assert code == 0 and "the end" in output, output
    told = re.findall(r"short rehearsal: training step 1 has not ended .*", output)
    lines = (SCRIPTS / "long_spawned.py").read_text().splitlines()
    (here,) = (number for number, line in enumerate(lines, 1) if line.endswith("# line: waits"))
    assert told and all(line.endswith(f"The script is at long_spawned.py:{here}.") for line in told), output
    waited = [int(one) for one in re.findall(r"ended after (\d+) s", output)]
    assert waited == sorted(set(waited)), output  # by one process


def test_a_number_of_processes_is_passed_over_before_2_6(tmp_path):
    """With a warning, as on trn1 from PyTorch 2.1 on; since 2.6 it is an error."""
    code, output = spawning("fork-numbered", tmp_path, WINDTUNNEL_FRAMEWORK_VERSION="2.5.1")
    assert code == 0, output
    assert sorted(re.findall(r"core (\d) of 2: sum 3.0", output)) == ["0", "1"], output
    assert "xmp.spawn passes over nprocs=8, here and on trn1; PyTorch 2.6 and later raise of it" in output
    code, output = spawning("fork-numbered", tmp_path)
    assert code == 1 and "ValueError: Unsupported nprocs (8)" in output


def test_cores_that_stay_idle_are_told(tmp_path):
    """Without NEURONCORE_NUM_DEVICES torch_xla starts one process, whatever the instance has."""
    code, output = spawning("fork", tmp_path, cores="1")
    assert code == 0, output
    assert "starts 1 process, here and on trn1, and 31 of 32 NeuronCores stay idle" in output


@pytest.mark.parametrize(("how", "plain"), [("spawn", "0"), ("launch", "0"), ("fork", "1")])
def test_what_a_worker_of_torchrun_starts_is_its_core(how, plain, torchrun, tmp_path):
    """Each starts a process, twice unless it takes an import of torch_xla each time, and those of one launch meet; also
    of torch's own launcher.
    """
    environment = {"WINDTUNNEL_COUNTERS_DIR": str(tmp_path), "NEURON_SIM_PLAIN_TORCHRUN": plain}
    times = [] if how == "spawn" else ["twice"]
    launch = torchrun("spawned.py", how, *times, **environment)
    found = sorted(re.findall(r"core (\d) of 2: sum 3.0", launch.output))
    assert found == sorted(["0", "1"] * (1 + len(times))), launch.output
    assert '"kind":"graph"' in (tmp_path / "rank-0.jsonl").read_text()
