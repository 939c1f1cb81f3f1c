"""neuron_parallel_compile: its commands, its lines, its exit codes. The script here compiles three graphs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.unit.neuron_sim.test_compile_cache import COMPLEX, HLO

from neuron_sim.compiler import analyze_report, cache_entry, cache_location
from neuron_sim.tools import neuron_parallel_compile as tool

SCRIPT = """
import os, sys
from neuron_sim.compiler import cache
print("EXTRACTING", os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY"))
hlo = open(sys.argv[1]).read()
for size in (4, 5, 6):
    cache.CompileCache().lookup(hlo.replace("f32[4]", f"f32[{size}]"))
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NEURON_CC_FLAGS", "NEURON_COMPILE_CACHE_URL", "NEURON_EXTRACT_GRAPHS_ONLY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(tool.__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def command(tmp_path: Path, hlo: str = HLO, code: int = 0) -> list[str]:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "hlo.txt").write_text(hlo)
    return [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "hlo.txt"), str(code)]


def states(folder: Path) -> list[str]:
    return [item.state for item in cache_entry.entries(folder / cache_location.COMPILER)]


def test_a_trial_run_then_all_its_graphs_compiled(
    tmp_path: Path, cache_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The summary has the documented form, and a run of the script finds everything in the cache."""
    assert tool.main(command(tmp_path)) == 0
    said = capfd.readouterr().out
    assert "EXTRACTING 1" in said
    assert said.count("Extracting graphs (") == 3
    assert "Current remaining items are 3, locked are 0, failed are 0, done are 0, total is 3" in said
    assert "Current remaining items are 0, locked are 0, failed are 0, done are 3, total is 3" in said
    assert "||NEURON_PARALLEL_COMPILE||: Total graphs: 3" in said
    assert "||NEURON_PARALLEL_COMPILE||: Total successful compilations: 3" in said
    assert "||NEURON_PARALLEL_COMPILE||: Total failed compilations: 0" in said
    report = json.loads(said[said.index("{\n") : said.index("\n}") + 2])
    assert report["compilation_summary"] == {"true": 3}
    assert list(report["compilation_report"].values()) == [{"status": True, "retry": 0}] * 3
    assert states(cache_folder) == ["done"] * 3
    # Once more, as AWS's samples give the number of compilers: there is nothing left to do.
    assert tool.main(["--num_parallel", "10", *command(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert said.count("Using a cached neff at") == 3
    assert "Total graphs: 0" in said


def test_a_cache_that_the_script_names_by_itself_is_compiled_too(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As AWS's scripts for clusters do: `--cache_dir` with the host's name, below the shared home."""
    own = tmp_path / "home" / "node-1"
    (tmp_path / "run.sh").write_text(f'#!/bin/sh\nexport NEURON_CC_FLAGS="--cache_dir={own}"\nexec "$@"\n')
    (tmp_path / "run.sh").chmod(0o755)
    assert tool.main([str(tmp_path / "run.sh"), *command(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert f"Compile cache path: {own}" in said
    assert "Total successful compilations: 3" in said
    assert (states(own), states(cache_folder)) == (["done"] * 3, [])


def test_collect_and_compile_are_two_halves(tmp_path: Path, cache_folder: Path) -> None:
    """So several tasks may share one compilation."""
    assert tool.main(["--command", "collect", *command(tmp_path)]) == 0
    assert states(cache_folder) == ["collected"] * 3
    assert tool.main(["--command", "compile", *command(tmp_path)]) == 0
    assert states(cache_folder) == ["done"] * 3


def test_a_failing_script_is_not_compiled_unless_asked(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its exit code is the command's; NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE goes on."""
    assert tool.main(command(tmp_path, code=7)) == 7
    assert states(cache_folder) == ["collected"] * 3
    assert "NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE=1" in capfd.readouterr().out
    monkeypatch.setenv("NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE", "1")
    assert tool.main(command(tmp_path, code=7)) == 0
    assert states(cache_folder) == ["done"] * 3


def test_a_graph_that_the_compiler_refuses_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; tried again as often as asked."""
    monkeypatch.setenv("NEURON_PARALLEL_COMPILE_MAX_RETRIES", "2")
    assert tool.main(command(tmp_path, COMPLEX)) == 1
    said = capfd.readouterr().out
    assert "Total failed compilations: 3" in said
    assert '"retry": 2' in said
    assert "NCC_EVRF004" in said


def test_clean_removes_entries_and_nothing_else(tmp_path: Path, cache_folder: Path) -> None:
    """A cache may be in a folder with other things."""
    tool.main(command(tmp_path))
    (cache_folder / "mine.txt").write_text("x")
    assert tool.main(["--command", "clean"]) == 0
    assert [path.name for path in cache_folder.iterdir()] == ["mine.txt"]


def test_clear_locks_leaves_those_that_are_held(
    tmp_path: Path, cache_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file of a killed process goes, the lock of a living one stays."""
    tool.main(command(tmp_path))
    first, second, _ = cache_entry.entries(cache_folder / cache_location.COMPILER)
    (first.folder / cache_entry.LOCK).touch()
    with second.lock():
        assert tool.main(["--command", "clear-locks"]) == 0
        assert not (first.folder / cache_entry.LOCK).exists()
        assert (second.folder / cache_entry.LOCK).exists()
    assert "Locks removed: 1; held by a running process and left: 1." in capfd.readouterr().out


def test_analyze_says_what_is_supported(
    tmp_path: Path, cache_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A report in the documented form, from graphs that do not touch the real cache."""
    assert tool.main(["--command", "analyze", "--analyze-verbosity", "1", *command(tmp_path, COMPLEX)]) == 0
    path = tmp_path / "model_analysis_result" / "result.json"
    report = json.loads(path.read_text())
    assert report["support_percentage"] == "0.00%"
    assert report["unsupported_operators"]["aten"] == [
        {"kind": "aten::add", "failureAt": "neuronx-cc", "call": "t.py 7"}
    ]
    assert report["unsupported_operators"]["xla"][0]["aten_op"] == "aten::add"
    assert not cache_folder.exists()
    assert tool.main(["--command", "analyze", *command(tmp_path)]) == 0
    report = json.loads(path.read_text())
    assert report["support_percentage"] == "100.00%"
    assert report["supported_operators"] == {"aten": {"aten::add": 3}}
    said = capfd.readouterr().out
    assert f"||ANALYZE||: Removing existing report {path}" in said
    assert f"||ANALYZE||: Model analysis completed. Report - {path}" in said


def test_the_percentage_is_of_hlo_instructions() -> None:
    """Half of the instructions refused is half."""
    assert analyze_report.analyze([HLO, COMPLEX])["support_percentage"] == "50.00%"
    assert analyze_report.analyze([])["support_percentage"] == "100.00%"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs the command"),
        (["--command", "collect"], "needs the command"),
        (["no-such-x"], "no such command"),
    ],
)
def test_wrong_arguments_are_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, as argparse has it."""
    with pytest.raises(SystemExit) as leaving:
        tool.main(arguments)
    assert leaving.value.code == 2
    assert said in capsys.readouterr().err
