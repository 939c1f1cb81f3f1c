"""Programs forked from a process that has imported what they need: as good as started anew, or refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runner.test_kept_containers import mark
from tests.waiting import wait_for

from neuron_sim.warm import fork_client, keeper, wire

SIMULATOR = Path(keeper.__file__).parents[2]
PATIENCE_S = 20.0
SERVER = """
import colorsys, json, os, resource, signal, sys, time
from neuron_sim.warm import wire
from neuron_sim.warm.fork_server import ForkServer
from neuron_sim.warm.likeness import Likeness

likeness = Likeness()
with likeness.watching():
    os.environ.get("READ_AT_IMPORT")
    os.environ["SET_AT_IMPORT"] = "yes"
likeness.imported()
listener = wire.listen(sys.argv[1], "program")
print("ready", flush=True)
ForkServer(listener, likeness).serve()
if "wait" in sys.argv:
    print("waiting", os.getpid(), flush=True)
    time.sleep(60)
names = ("A", "SET_AT_IMPORT", "OF_THE_SERVER")
said = {"env": [os.environ.get(n) for n in names], "argv": sys.argv, "cwd": os.getcwd(), "path": sys.path}
said["files"] = resource.getrlimit(resource.RLIMIT_NOFILE)
said["processors"] = sorted(os.sched_getaffinity(0))
print(json.dumps(said), flush=True)
print("error", file=sys.stderr)
sys.exit(int(sys.argv[-1]))
"""
CLIENT = """
import sys
from neuron_sim.warm import fork_client
code = fork_client.run("program", ["/bin/program", *sys.argv[1:]])
if code is None:
    sys.exit("started in the ordinary way")
sys.exit(code)
"""


def environment(**more: str) -> dict[str, str]:
    """A small one, in which the simulator's modules are found."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SIMULATOR), **more}


@pytest.fixture
def token() -> Iterator[str]:
    """The name of a server that is ready."""
    name = uuid.uuid4().hex
    command = [sys.executable, "-c", SERVER, name]
    server = subprocess.Popen(command, env=environment(OF_THE_SERVER="1"), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    yield name
    server.kill()
    server.wait()
    server.stdout.close()


def command(token: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """Arguments of `subprocess.run` for the client."""
    given = environment(**{"OF_THE_SERVER": "1", **variables, wire.VARIABLE: token})
    return {"args": [sys.executable, "-c", CLIENT, *arguments], "env": given, "text": True}


def test_a_fork_is_as_good_as_a_new_process(token: str, tmp_path: Path) -> None:
    """Its words, variables, folder, streams and exit code are the client's, in every one of them."""
    for number in (0, 3):
        done = subprocess.run(
            **command(token, "x", str(number), A=f"a{number}"), capture_output=True, cwd=tmp_path, check=False
        )
        said = json.loads(done.stdout)
        assert said["env"] == [f"a{number}", "yes", "1"]
        assert said["argv"] == ["/bin/program", "x", str(number)]
        assert said["cwd"] == str(tmp_path)
        assert said["path"][:2] == ["/bin", str(SIMULATOR)]
        assert (done.stderr, done.returncode) == ("error\n", number)


def test_limits_and_processors_are_those_of_who_asks(token: str) -> None:
    """As `ulimit -n 64; taskset -c 0 torchrun train.py` in a shell script has them."""
    one = min(os.sched_getaffinity(0))
    given = command(token, "0")
    given["args"] = ["sh", "-c", 'ulimit -n 64; exec taskset -c "$0" "$@"', str(one), *given["args"]]
    said = json.loads(subprocess.run(**given, capture_output=True, check=True).stdout)
    assert said["files"] == [64, 64]
    assert said["processors"] == [one]


def test_signals_reach_the_process(token: str) -> None:
    """And what ends it ends the client."""
    client = subprocess.Popen(**command(token, "wait", "0"), stdout=subprocess.PIPE)
    assert client.stdout is not None
    assert client.stdout.readline().startswith("waiting")
    client.send_signal(signal.SIGTERM)
    assert client.wait(PATIENCE_S) == -signal.SIGTERM
    client.stdout.close()


def test_a_client_that_is_killed_takes_the_process_along(token: str) -> None:
    """Nobody would know of it any more."""
    client = subprocess.Popen(**command(token, "wait", "0"), stdout=subprocess.PIPE)
    assert client.stdout is not None
    pid = int(client.stdout.readline().split()[1])
    client.kill()
    client.wait()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "its end", patience_s=PATIENCE_S)
    client.stdout.close()


@pytest.mark.parametrize(
    "different",
    [{"READ_AT_IMPORT": "1"}, {"OMP_NUM_THREADS": "2"}, {"LD_PRELOAD": ""}, {"PYTHONHASHSEED": "1"}],
)
def test_what_imports_would_have_seen_is_refused(token: str, different: dict[str, str]) -> None:
    """The modules are there already: the program is started in the ordinary way instead."""
    done = subprocess.run(**command(token, "0", **different), capture_output=True, check=False)
    assert "started in the ordinary way" in done.stderr


def test_a_module_that_would_have_been_found_first_is_refused(token: str, tmp_path: Path) -> None:
    """As a script's own `colorsys` beside it; other modules of its own do not matter."""
    paths = f"{SIMULATOR}{os.pathsep}{tmp_path}"
    (tmp_path / "mine.py").touch()
    done = subprocess.run(**command(token, "0", PYTHONPATH=paths), capture_output=True, check=False)
    assert done.returncode == 0
    (tmp_path / "colorsys.py").touch()
    done = subprocess.run(**command(token, "0", PYTHONPATH=paths), capture_output=True, check=False)
    assert "started in the ordinary way" in done.stderr


def test_a_clean_up_waits_for_what_the_servers_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it takes torch's folder of generated modules for the job's, while they are written."""
    kept = keeper.Keeper(None)  # type: ignore[arg-type]  # it takes no order
    kept._told, tell = os.pipe2(os.O_NONBLOCK)
    os.write(tell, b"1234567 1\n")
    monkeypatch.setattr(keeper, "_IMPORTS_S", 0.1)
    begun = time.monotonic()
    kept.await_servers()
    assert time.monotonic() - begun >= 0.1, "they are at it"
    assert (1234567, 1) in kept._spared
    monkeypatch.setattr(keeper, "_IMPORTS_S", 60.0)
    threading.Timer(0.1, os.close, (tell,)).start()
    kept.await_servers()
    kept.await_servers()
    assert time.monotonic() - begun < 30


def test_without_a_server_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where none was ever named, nor where it has ended."""
    monkeypatch.delenv(wire.VARIABLE, raising=False)
    assert fork_client.run("program", ["/bin/program"]) is None
    monkeypatch.setenv(wire.VARIABLE, uuid.uuid4().hex)
    assert fork_client.run("program", ["/bin/program"]) is None


def test_both_sides_know_the_same_mark() -> None:
    """The keeper writes it, the backend looks for it."""
    assert keeper.end_mark("a" * 32, 2) == mark("a" * 32, 2)
