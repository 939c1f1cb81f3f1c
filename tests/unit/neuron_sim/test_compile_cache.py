"""The compile cache: where it is, what is in it, and what several writers do to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_sim import settings
from neuron_sim.compiler import cache, cache_entry, cache_location
from neuron_sim.compiler.unsupported import refusals
from neuron_sim.errors import CompilationError, CompilerFlagError, NeuronSimError

HLO = """HloModule SyncTensorsGraph.9, entry_computation_layout={(f32[4]{0})->(f32[4]{0})}

ENTRY %SyncTensorsGraph.9 (p0.1: f32[4]) -> (f32[4]) {
  %p0.1 = f32[4]{0} parameter(0)
  %add.2 = f32[4]{0} add(%p0.1, %p0.1), metadata={op_type="aten__add" op_name="x" source_file="/a/t.py" source_line=7}
  ROOT %tuple.3 = (f32[4]{0}) tuple(%add.2)
}
"""
COMPLEX = HLO.replace("f32[4]{0} add", "c64[4]{0} add")


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "NEURON_CC_FLAGS",
        "NEURON_COMPILE_CACHE_URL",
        "NEURON_EXTRACT_GRAPHS_ONLY",
        "WINDTUNNEL_S3_CACHE_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WINDTUNNEL_COMPILE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> dict[str, set[str]]:
    return {
        item.folder.name: {path.name for path in item.folder.iterdir()}
        for item in cache_entry.entries(folder)
    }


def test_flag_beats_variable_beats_default() -> None:
    """The order that AWS documents."""
    default = settings.compiler_wish({})
    assert cache_location.resolve(None, default).url == "/var/tmp/neuron-compile-cache"
    named = settings.compiler_wish({"NEURON_COMPILE_CACHE_URL": "/by/variable"})
    assert cache_location.resolve(None, named).url == "/by/variable"
    assert cache_location.resolve("/by/flag", named).url == "/by/flag"


def test_an_s3_cache_is_where_the_backend_has_put_it(tmp_path: Path) -> None:
    """Under its own name in the log; one that was not brought in is said not to be there."""
    wish = settings.compiler_wish(
        {"NEURON_COMPILE_CACHE_URL": "s3://bucket/a/b", "WINDTUNNEL_S3_CACHE_DIR": str(tmp_path)}
    )
    assert "not brought into" in cache_location.resolve(None, wish).note
    (tmp_path / "bucket").mkdir()
    found = cache_location.resolve(None, wish)
    assert (found.url, found.folder, found.note) == ("s3://bucket/a/b", tmp_path / "bucket" / "a" / "b", "")
    assert found.shown(found.folder / "x" / "model.neff") == "s3://bucket/a/b/x/model.neff"


@pytest.mark.parametrize("url", ["s3://", "s3://b/../c", "https://host/cache"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """Before a graph is lost in it."""
    with pytest.raises(NeuronSimError, match="cache"):
        cache_location.resolve(url, settings.compiler_wish({}))


def test_a_miss_fills_the_entry_and_the_next_look_up_hits(
    environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Layout and log lines are those of the Neuron cache; the neff says what it is."""
    assert cache.CompileCache().lookup(HLO) is False
    assert cache.CompileCache().lookup(HLO) is True
    (item,) = cache_entry.entries(environment / cache_location.COMPILER)
    name = f"MODULE_{cache_entry.graph_hash(HLO)}+d41d8cd9"
    assert files(environment / cache_location.COMPILER) == {
        name: {
            "model.hlo_module.pb",
            "model.hlo_module.txt",
            "compile_flags.json",
            "model.neff",
            "model.done",
        }
    }
    assert json.loads(item.neff.read_text())["simulated"] is True
    assert json.loads((item.folder / "compile_flags.json").read_text()) == []
    said = capsys.readouterr().out
    assert f"INFO ||NEURON_CACHE||: Compile cache path: {environment}" in said
    assert said.count("Compiler status PASS") == 1
    assert f"INFO ||NEURON_CC_WRAPPER||: Using a cached neff at {item.neff}. Exiting with" in said


def test_other_flags_are_another_entry(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is keyed by graph and flags; the wrapper's own flags are no part of it."""
    ours = cache.CompileCache()
    assert ours.lookup(HLO) is False
    monkeypatch.setenv("NEURON_CC_FLAGS", "--auto-cast=all")
    assert ours.lookup(HLO) is False
    monkeypatch.setenv("NEURON_CC_FLAGS", "--auto-cast=all --retry_failed_compilation")
    assert ours.lookup(HLO) is True
    assert len(files(environment / cache_location.COMPILER)) == 2


def test_where_a_graph_comes_from_does_not_change_its_hash() -> None:
    """An added blank line in the script recompiles nothing; another shape does."""
    assert cache_entry.graph_hash(HLO) == cache_entry.graph_hash(
        HLO.replace("source_line=7", "source_line=8")
    )
    assert cache_entry.graph_hash(HLO) != cache_entry.graph_hash(HLO.replace("f32[4]", "f32[5]"))


def test_unknown_flags_are_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not at every graph; and the effect of auto-cast is said not to be simulated."""
    monkeypatch.setenv("NEURON_CC_FLAGS", "--modle-type=transformer --auto-cast=all")
    ours = cache.CompileCache()
    ours.lookup(HLO)
    ours.lookup(HLO.replace("f32[4]", "f32[5]"))
    said = capsys.readouterr().out
    assert said.count("Did you mean --model-type?") == 1
    assert said.count("effect on results is not simulated") == 1


def test_a_flag_that_the_compiler_refuses_ends_the_first_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on trn1, where the compiler would."""
    monkeypatch.setenv("NEURON_CC_FLAGS", "--auto-cast=bf16")
    with pytest.raises(CompilerFlagError, match="matmult"):
        cache.CompileCache().lookup(HLO)


def test_no_cache_leaves_nothing(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--no_cache` means every job compiles."""
    monkeypatch.setenv("NEURON_CC_FLAGS", "--no_cache")
    assert [cache.CompileCache().lookup(HLO) for _ in range(2)] == [False, False]
    assert not environment.exists()


def test_extraction_collects_without_compiling(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What neuron_parallel_compile's trial run does; even a graph that will not compile is collected."""
    monkeypatch.setenv("NEURON_EXTRACT_GRAPHS_ONLY", "1")
    ours = cache.CompileCache()
    assert [ours.lookup(HLO), ours.lookup(HLO), ours.lookup(COMPLEX)] == [False] * 3
    assert {item.state for item in cache_entry.entries(environment / cache_location.COMPILER)} == {
        "collected"
    }
    assert "No compilation was done." in capsys.readouterr().out


@pytest.mark.parametrize("instance_type", ["ml.trn1.2xlarge", "ml.trn2.3xlarge"])
def test_a_refusal_that_names_devices_holds_on_these(
    monkeypatch: pytest.MonkeyPatch, instance_type: str
) -> None:
    """Trainium1 and 2 have no F8E4M3FN; later devices have, as AWS's page says."""
    monkeypatch.setenv("WINDTUNNEL_INSTANCE_TYPE", instance_type)
    (why,) = refusals(HLO.replace("f32[4]{0} add", "f8e4m3fn[4]{0} add"))
    assert why.code == "NCC_EVRF051"


COMBINE = """%Combine.1 (p0: s64[], p1: s64[]) -> s64[] {
  %p0 = s64[] parameter(0)
  %p1 = s64[] parameter(1)
  ROOT %last.2 = s64[] OPCODE
}

"""
SCATTER = (
    "s64[4]{0} scatter(s64[4]{0} %broadcast.4, s64[4,1] %concatenate.5, s64[4] %p2.1), to_apply=%Combine.1"
)
SOLVE, SHIFT = "f32[4,4] triangular-solve", "shift-right-arithmetic"


@pytest.mark.parametrize(
    ("instruction", "opcode", "code"),
    [
        (SCATTER, "add(s64[] %p0, s64[] %p1)", "NCC_EVRF016"),
        (SCATTER, "parameter(1)", None),
        (SCATTER.replace("s64[4]{0}", "f32[4]{0}"), "add(s64[] %p0, s64[] %p1)", None),
        (
            "f32[2,4,9,9] convolution(f32[2,4,4,4] %a, f32[3,3,4,4] %b), "
            "window={size=3x3 stride=2x2 pad=4_5x4_5 lhs_dilate=2x2}",
            "parameter(1)",
            "NCC_EVRF011",
        ),
        ('f32[4] custom-call(f32[4] %a), custom_call_target="AwsNeuronGelu"', "parameter(1)", None),
        ('f32[4] custom-call(f32[4] %a), custom_call_target="Gelu"', "parameter(1)", "NCC_EVRF015"),
        ('(f32[4,4], f32[4]) custom-call(f32[4,4] %a), custom_call_target="Qr"', "parameter(1)", None),
        (f"{SOLVE}(f32[4,4] %select.20, f32[4,4] %transpose.21), left_side=true", "parameter(1)", None),
        (f"{SOLVE}(f32[4,4] %p0.1, f32[4,4] %transpose.2), left_side=true", "parameter(1)", "NCC_EVRF001"),
        (f"s16[3] {SHIFT}(s16[3] %p0.1, s16[3] %p1.2)", "parameter(1)", "NCC_EVRF022"),
        (f"s32[3] {SHIFT}(s32[3] %p0.1, s32[3] %p1.2)", "parameter(1)", None),
    ],
)
def test_what_an_instruction_is_refused_for(instruction: str, opcode: str, code: str | None) -> None:
    """What it reduces with, on what, and what it calls decide."""
    dumped = re.sub(r"(?<=[(,])( ?)\S+ (?=%)", r"\1", instruction)  # XLA's dumps have no shapes of operands
    for text in (instruction, dumped):
        hlo = f"{COMBINE.replace('OPCODE', opcode)}ENTRY %main (p: f32[4]) -> f32[4] {{\n  ROOT %x.9 = {text}\n}}\n"
        assert [why.code for why in refusals(hlo)] == ([code] if code else [])


def test_a_documented_refusal_fails_and_is_remembered(
    environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Complex numbers do not compile for trn1 (NCC_EVRF004), and a failure is cached too."""
    with pytest.raises(CompilationError, match=r"NCC_EVRF004.*t\.py 7"):
        cache.CompileCache().lookup(COMPLEX)
    (item,) = cache_entry.entries(environment / cache_location.COMPILER)
    assert item.state == "failed"
    with pytest.raises(CompilationError, match="NCC_EVRF004"):
        cache.CompileCache().lookup(COMPLEX)
    assert "Got a cached failed neff at" in capsys.readouterr().out
    # A graph whose failure was another's fault compiles when asked to.
    assert cache.CompileCache().lookup(HLO) is False
    good = next(
        item for item in cache_entry.entries(environment / cache_location.COMPILER) if item.state == "done"
    )
    (good.folder / "model.done").rename(good.folder / "model.log")
    monkeypatch.setenv("NEURON_CC_FLAGS", "--retry_failed_compilation")
    assert [cache.CompileCache().lookup(HLO) for _ in range(2)] == [False, True]


def test_a_named_cache_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not a silent recompilation at every start."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", str(tmp_path / "file" / "cache"))
    with pytest.raises(NeuronSimError, match="cannot be used"):
        cache.CompileCache().lookup(HLO)


def test_the_default_cache_may_be_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container without a writable /var/tmp still trains."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WINDTUNNEL_COMPILE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert cache.CompileCache().lookup(HLO) is False
    assert "Graphs are not cached" in capsys.readouterr().out


def test_many_processes_make_one_whole_entry(environment: Path) -> None:
    """Exactly one of them compiles, the others find it done, and no lock is left."""
    code = (
        "import sys; from neuron_sim.compiler import cache\n"
        "hlo = sys.stdin.read()\n"
        "print('HITS', sum(cache.CompileCache().lookup(hlo.replace('f32[4]', f'f32[{n}]')) for n in range(20)))"
    )
    path = str(Path(cache.__file__).parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": path, "WINDTUNNEL_COMPILE_CACHE_DIR": str(environment)},
        )
        for _ in range(4)
    ]
    outputs = [process.communicate(HLO, timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    made = files(environment / cache_location.COMPILER)
    assert len(made) == 20
    assert all(
        names
        == {"model.hlo_module.pb", "model.hlo_module.txt", "compile_flags.json", "model.neff", "model.done"}
        for names in made.values()
    )
    hits = sum(int(output.split("HITS ")[1]) for output in outputs)
    assert hits == 60


def test_the_lock_of_a_killed_process_holds_nobody_up(environment: Path) -> None:
    """Its file may stay; the lock does not."""
    item = cache_entry.entry(environment / cache_location.COMPILER, HLO, ())
    item.folder.mkdir(parents=True)
    (item.folder / cache_entry.LOCK).touch()
    assert not item.locked
    with item.lock():
        assert item.locked
    assert cache.CompileCache().lookup(HLO) is False


@pytest.mark.parametrize("size", [0, 1, 127, 128, 70_000])
def test_the_module_is_taken_out_of_the_proto_that_xla_writes(size: int) -> None:
    """model.hlo_module.pb holds an HloModuleProto, as the real cache's does."""
    module, length = bytes(size), size
    head = b"\x0a"
    while length >= 0x80:
        head += bytes([length & 0x7F | 0x80])
        length >>= 7
    assert cache_entry.module_of(head + bytes([length]) + module + b"\x1a\x02ab") == module
    assert cache_entry.module_of(b"") == b""
