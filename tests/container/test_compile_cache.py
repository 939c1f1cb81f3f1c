"""The Neuron compile cache and neuron_parallel_compile on real graphs of torch_xla."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import FORKED, INSTANCE, LAUNCHER, SCRIPTS, records

PATIENCE_S = 600
COMPILED = str(SCRIPTS / "compiled.py")
PARALLEL_COMPILE = [sys.executable, "-m", "neuron_sim.tools.neuron_parallel_compile"]


def start(*command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, **INSTANCE, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def two_cores(script: str) -> list[str]:
    return [*LAUNCHER, "--nnodes", "1", "--nproc_per_node", "2", script]


def test_two_jobs_at_once_fill_the_cache_and_a_third_finds_everything(tmp_path):
    """Hashes of graphs are the same in every process; the counters say which graphs were cached."""
    cache = str(tmp_path / "cache")

    def job(name: str, port: str) -> subprocess.Popen[str]:
        command = two_cores(COMPILED)
        command[-1:-1] = ["--master_port", port]
        return start(*command, NEURON_COMPILE_CACHE_URL=cache, WINDTUNNEL_COUNTERS_DIR=str(tmp_path / name))

    cold = [job("one", "29611"), job("two", "29612")]
    outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in cold]
    assert [process.returncode for process in cold] == [0, 0], outputs
    compiled = sum(output.count("Compiler status PASS") for output in outputs)
    entries = sorted(Path(cache).glob("neuronxcc-*/MODULE_*+d41d8cd9"))
    assert compiled == len(entries) > 0, outputs
    assert all({"model.neff", "model.done"} <= {path.name for path in entry.iterdir()} for entry in entries)
    assert all((entry / "model.hlo_module.pb").read_bytes().startswith(b"\x0a") for entry in entries)
    assert not list(Path(cache).rglob("*.lock")) and not list(Path(cache).rglob(".draft-*"))

    warm = job("three", "29613")
    output, _ = warm.communicate(timeout=PATIENCE_S)
    assert warm.returncode == 0, output
    assert f"INFO ||NEURON_CACHE||: Compile cache path: {cache}" in output
    assert "Using a cached neff at" in output
    for lines in (output.splitlines() for output in outputs if "\nCompiler status PASS\n" in output):
        told = next(number for number, line in enumerate(lines) if "neuronx-cc is simulated" in line)
        assert told < lines.index("Compiler status PASS"), "it is said before anything compiles"
    assert "Compiler status PASS" not in output
    assert all(graph["cached"] for graph in records(tmp_path / "three", "graph"))
    assert (
        sum(not graph["cached"] for name in ("one", "two") for graph in records(tmp_path / name, "graph"))
        == compiled
    )


def test_after_parallel_compilation_a_run_only_hits(tmp_path):
    """The trial run is told that it is one, and its loop may be shorter."""
    environment = {"NEURON_CC_FLAGS": f"--cache_dir={tmp_path / 'cache'} --model-typ=transformer"}
    trial = start(*PARALLEL_COMPILE, *two_cores(COMPILED), **environment)
    output, _ = trial.communicate(timeout=PATIENCE_S)
    assert trial.returncode == 0, output
    assert "steps=2" in output
    assert "Extracting graphs (" in output
    assert "Compiler status PASS" in output
    assert "Total failed compilations: 0" in output
    assert output.count("Did you mean --model-type?") == 1
    run = start(*two_cores(COMPILED), **environment)
    output, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, output
    assert "steps=4" in output
    assert "Using a cached neff at" in output
    assert "Compiler status PASS" not in output


def test_analyze_names_the_line_that_the_compiler_refuses(tmp_path):
    """Before any hour is paid for; the run itself would end with the same code."""
    script = str(SCRIPTS / "complex_numbers.py")
    analysis = start(
        *PARALLEL_COMPILE, "--command", "analyze", "--analyze-output", str(tmp_path), *FORKED, script
    )
    output, _ = analysis.communicate(timeout=PATIENCE_S)
    assert analysis.returncode == 0, output
    report = json.loads((tmp_path / "result.json").read_text())
    assert 0 < float(report["support_percentage"].rstrip("%")) < 100
    calls = [item["call"] for item in report["unsupported_operators"]["aten"]]
    assert "complex_numbers.py 9" in calls, report
    run = start(*FORKED, script, NEURON_COMPILE_CACHE_URL=str(tmp_path / "cache"))
    output, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode != 0, output
    assert "NCC_EVRF004" in output


def test_operations_that_the_compiler_refuses(torchrun):
    """What a GPU computes and neuronx-cc documents that it does not; and what is next to it, which compiles."""
    said = torchrun("refused_operators.py", workers=1).said
    assert {each["case"]: each["codes"] for each in said if each["codes"]} == {
        "stride and dilation": ["NCC_EVRF010"],
        "transposed, dilated": ["NCC_EVRF010"],
        "topk of integers": ["NCC_EVRF013"],
        "eigh": ["NCC_EVRF015"],
        "triangular solve": ["NCC_EVRF001"],
        "shift of 16 bits": ["NCC_EVRF022"],
        "scatter_add of integers": ["NCC_EVRF016"],
        "index_add of integers": ["NCC_EVRF016"],
        "index_put, accumulated": ["NCC_EVRF016"],
        "cummax": ["NCC_EVRF019"],
    }
    assert len(said) > 15
