"""What a process asks of its host's cores, and who holds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim import settings
from neuron_sim.errors import CoreBusyError, TopologyError
from neuron_sim.runtime import busy_message, claims, cores, usage_reader
from neuron_sim.runtime.cores import CoreRequest
from neuron_sim.settings import CoreWish

SIMULATOR = Path(cores.__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from neuron_sim.runtime import claims
from neuron_sim.runtime.cores import CoreRequest
cores = tuple(map(int, sys.argv[2].split(",")))
print(claims.claim(Path(sys.argv[1]), CoreRequest(cores, len(cores)), 4), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,2,4-6", (0, 2, 4, 5, 6)),
        (" 3 , 1-2", (1, 2, 3)),
        ("1,1", (1,)),
    ],
)
def test_visible_cores_have_the_documented_forms(text: str, expected: tuple[int, ...]) -> None:
    """A core, a range, or a list of both."""
    assert cores.visible_cores(text) == expected


@pytest.mark.parametrize("text", ["a", "3-1", "0,,1", "-1", "0-", "0 1"])
def test_other_forms_are_refused_with_the_valid_ones(text: str) -> None:
    """The error shows what cannot be read."""
    with pytest.raises(TopologyError, match=r"cannot be read at .* a range \(0-3\)"):
        cores.visible_cores(text)


@given(wanted=st.sets(st.integers(0, 31), min_size=1))
def test_spans_are_the_same_cores(wanted: set[int]) -> None:
    """What a message shows is what was asked for."""
    text = ",".join(f"{first}-{last}" for first, last in cores.spans(tuple(sorted(wanted))))
    assert set(cores.visible_cores(text)) == wanted


def test_the_defaults_are_those_of_the_neuron_runtime() -> None:
    """All cores; NEURON_RT_VISIBLE_CORES before NEURON_RT_NUM_CORES, in which 0 is all."""
    assert cores.request(CoreWish("", ""), 2, "ml.trn1.2xlarge") == CoreRequest(None, 2)
    assert cores.request(CoreWish("", "0"), 2, "ml.trn1.2xlarge") == CoreRequest(None, 2)
    assert cores.request(CoreWish("", "1"), 2, "ml.trn1.2xlarge") == CoreRequest(None, 1)
    assert cores.request(CoreWish("1", "2"), 2, "ml.trn1.2xlarge") == CoreRequest((1,), 1)
    assert settings.core_wish({"NEURON_RT_VISIBLE_CORES": " 0-1 "}) == CoreWish("0-1", "")


def test_cores_that_the_instance_lacks_are_refused() -> None:
    """The message says which there are."""
    with pytest.raises(TopologyError, match=r"NEURON_RT_VISIBLE_CORES=1-2 names NeuronCore 2.* cores 0 to 1"):
        cores.request(CoreWish("1-2", ""), 2, "ml.trn1.2xlarge")
    with pytest.raises(TopologyError, match="NEURON_RT_NUM_CORES='two'"):
        cores.request(CoreWish("", "two"), 2, "ml.trn1.2xlarge")


def test_the_runtime_writes_ranges_as_documented() -> None:
    """``lnc0-lnc3`` for cores, a number for a number."""
    assert CoreRequest((0, 1, 2, 3), 4).text == "lnc0-lnc3"
    assert CoreRequest((0, 2, 3), 3).text == "lnc0-lnc0,lnc2-lnc3"
    assert CoreRequest(None, 2).text == "2"


def test_jobs_on_one_machine_have_cores_of_their_own(tmp_path: Path) -> None:
    """The `process` runner's jobs do not meet; nor do several hosts that one launch plays on one machine."""
    one = settings.read({"WINDTUNNEL_COUNTERS_DIR": "/a"}).cores_dir
    other = settings.read({"WINDTUNNEL_COUNTERS_DIR": "/b"}).cores_dir
    second = settings.read(
        {"WINDTUNNEL_COUNTERS_DIR": "/a", "GROUP_WORLD_SIZE": "2", "GROUP_RANK": "1"}
    ).cores_dir
    assert len({one, other, second}) == 3
    assert second.parent == one.parent
    by_ray = settings.read({"WINDTUNNEL_COUNTERS_DIR": "/a", "GROUP_WORLD_SIZE": "1.0", "GROUP_RANK": "0"})
    assert by_ray.cores_dir == one
    assert settings.read({"TMPDIR": str(tmp_path)}).cores_dir.parent.parent == tmp_path


def test_a_launcher_that_is_none_of_trainiums_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As DeepSpeed's: a core for each of its processes would let each train alone."""
    holder = _hold(tmp_path, "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    why = busy_message.explain(tmp_path, CoreRequest(None, 2), 2)
    _kill(holder)
    assert "WORLD_SIZE=2, but torch_xla knows of no other worker" in why
    assert why.endswith("Start the workers with torchrun.")
    torchrun = {
        "TORCHELASTIC_RUN_ID": "x",
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "2",
    }
    assert not settings.says_of_others(torchrun)
    assert not settings.says_of_others({"WORLD_SIZE": "1"})


def test_a_held_core_is_refused_until_its_process_dies(tmp_path: Path) -> None:
    """Also by SIGKILL: nothing stale is left; and whoever asks learns who is in the way."""
    holder = _hold(tmp_path, "0,2")
    assert claims.holders(tmp_path) == {0: holder.pid, 2: holder.pid}
    with pytest.raises(CoreBusyError, match=r"Requested:lnc0-lnc1 Available:1 Logical Core size:1"):
        claims.claim(tmp_path, CoreRequest((0, 1), 2), 4)
    assert 1 not in claims.holders(tmp_path), "what was taken of a refused claim is given back"
    with pytest.raises(CoreBusyError, match="Requested:3 Available:2"):
        claims.claim(tmp_path, CoreRequest(None, 3), 4)
    why = busy_message.explain(tmp_path, CoreRequest((0, 1), 2), 4)
    assert f"Process {holder.pid} (" in why
    assert "holds NeuronCores 0,2" in why
    assert "NEURON_RT_VISIBLE_CORES" in why
    _kill(holder)
    assert claims.holders(tmp_path) == {}
    taken = claims.claim(tmp_path, CoreRequest((0, 1), 2), 4)
    assert taken == (0, 1)
    assert claims.holders(tmp_path) == {0: os.getpid(), 1: os.getpid()}
    claims.release()
    assert claims.holders(tmp_path) == {}


def test_a_number_of_cores_takes_the_free_ones(tmp_path: Path) -> None:
    """NEURON_RT_NUM_CORES=2 beside a process that holds core 0 gets cores 1 and 2."""
    holder = _hold(tmp_path, "0")
    try:
        assert claims.claim(tmp_path, CoreRequest(None, 2), 4) == (1, 2)
        assert [(core.pid, core.cores) for core in usage_reader.running(tmp_path)] == [
            (holder.pid, (0,)),
            (os.getpid(), (1, 2)),
        ]
    finally:
        claims.release()
        _kill(holder)


def test_observers_are_listed_while_they_look(tmp_path: Path) -> None:
    """And a killed one leaves nothing behind."""
    (tmp_path / "observer-1-neuron-top.lock").touch()
    code = "import sys\nfrom pathlib import Path\nfrom neuron_sim.runtime import claims\n" + (
        "with claims.observing(Path(sys.argv[1]), 'neuron-monitor'):\n    print('on', flush=True); sys.stdin.read()\n"
    )
    observer = _start(code, str(tmp_path))
    assert claims.observers(tmp_path) == [observer.pid]
    assert [path.name for path in tmp_path.iterdir()] == [f"observer-{observer.pid}-neuron-monitor.lock"]
    _kill(observer)
    assert claims.observers(tmp_path) == []


def _kill(process: subprocess.Popen[str]) -> None:
    with process:  # closes its pipes
        process.kill()


def _hold(folder: Path, wanted: str) -> subprocess.Popen[str]:
    return _start(HOLD, str(folder), wanted)


def _start(code: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": str(SIMULATOR)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process
