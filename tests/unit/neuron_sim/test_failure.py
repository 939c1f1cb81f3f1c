"""What is said of a script that has failed: its own lines, and the cause in a few words."""

from __future__ import annotations

import argparse
import json
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import neuron_sim
from neuron_sim.counters import script_lines
from neuron_sim.errors import PeerLostError
from neuron_sim.launcher import error_names, failure

PYTHONS = ["KeyError", "RuntimeError"]
"""What AWS's toolkit looks for in a program's output: its ErrorMessage begins there."""
SIMULATOR = str(Path(neuron_sim.__file__).with_name("hook.py"))
SCRIPT = "/opt/ml/code/train.py"


def made(filename: str, source: str, **names: Any) -> Any:
    """The function ``f`` of a file."""
    space: dict[str, Any] = names
    exec(compile(source, filename, "exec"), space)  # noqa: S102 - a frame of that file is the purpose
    return space["f"]


def raised(function: Callable[[], Any]) -> BaseException:
    """What it raises."""
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - SystemExit too
        return error
    raise AssertionError("it has raised nothing")


def through_a_hook(function: Callable[[], Any]) -> BaseException:
    """What a script sees that calls a function which the simulator stands around."""
    hook = made(SIMULATOR, "def f():\n    return function()\n", function=function)
    return raised(made(SCRIPT, "def f():\n\n    return hook()\n", hook=hook))


def test_the_simulators_frames_are_left_out_of_a_traceback() -> None:
    """Also of the error that led to it. Line and function in the script are as they were."""

    def fail() -> None:
        try:
            int("x")
        except ValueError as first:
            raise KeyError("img") from first

    error = through_a_hook(fail)
    first = through_a_hook(lambda: int("y"))
    error.__context__ = error.__cause__ = first
    text = failure.traceback_of(error)
    assert f'File "{SCRIPT}", line 3, in f' in text
    assert text.endswith("KeyError: 'img'\n") and "int() with base 10: 'y'" in text
    assert "hook.py" not in text
    # The test's own function is innermost, and no library's.
    assert failure.place_of(error).startswith("test_failure.py:")


def test_what_the_simulator_says_needs_none_of_its_frames_and_a_fault_of_its_own_does() -> None:
    """PeerLostError is about the script; a KeyError within a hook is ours, and is told from its frames."""
    refuse = made(SIMULATOR, "def f():\n    raise error\n", error=PeerLostError("rank 1 ended"))
    said = through_a_hook(refuse)
    assert "hook.py" not in failure.traceback_of(said)
    assert failure.place_of(said) == "train.py:3 in f"
    fault = made(SIMULATOR, "def f():\n    return {}['x']\n")
    assert failure.traceback_of(through_a_hook(fault)).count("hook.py") == 2


def test_what_torch_raises_in_c_behind_a_hook_is_no_fault_of_the_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `float(tensor)` does: C has no frame, so the hook's is innermost. A hook's own call may fail in C as well."""
    monkeypatch.setattr(script_lines, "_OURS", str(tmp_path))
    hook = tmp_path / "hook.py"
    for call, count in (("original(\n        text\n    )", 0), ("original(int(text))", 1)):
        hook.write_text(f"def made(original):\n    def f(text):\n        return {call}\n    return f\n")
        space: dict[str, Any] = {}
        exec(compile(hook.read_text(), hook, "exec"), space)  # noqa: S102 - a frame of that file is the purpose
        linecache.checkcache(str(hook))
        error = raised(made(SCRIPT, "def f():\n\n    return hook('x')\n", hook=space["made"](int)))
        assert failure.traceback_of(error).count("hook.py") == count, call


def by_argparse() -> None:
    """With its usage, of several lines, before the last one."""
    argparse.ArgumentParser("train.py").parse_args(["--learning_rate", "0.1"])


def caught() -> None:
    """A script that prints its own error and leaves."""
    try:
        int("x")
    except ValueError:
        sys.exit(1)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (lambda: sys.exit("epochs must be 2"), "SystemExit: epochs must be 2"),
        (lambda: sys.exit(3), "SystemExit: 3"),
        (by_argparse, "SystemExit: 2, train.py: error: unrecognized arguments: --learning_rate 0.1"),
        (caught, "SystemExit: 1, after ValueError: invalid literal for int() with base 10: 'x'"),
        (lambda: int("x"), "ValueError: invalid literal for int() with base 10: 'x'"),
    ],
)
def test_the_launcher_is_told_why(
    leave: Callable[[], Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the form of torch's own error file: a message, and the time and place of it."""
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    failure.tell_launcher(raised(leave))
    message = json.loads(path.read_text())["message"]
    assert message["message"] == words
    assert message["extraInfo"]["place"].startswith("test_failure.py:")
    assert message["extraInfo"]["timestamp"].isdigit()


def test_the_place_of_a_syntax_error_is_in_the_file_that_has_it() -> None:
    """No frame is there."""
    error = raised(lambda: compile("x = 1\ny = (\n", SCRIPT, "exec"))
    assert failure.place_of(error) == "train.py:2"


def test_the_toolkit_finds_an_error_of_the_simulator() -> None:
    """Also where its name stands alone in a line, as the interpreter writes it unbuffered."""
    names = list(PYTHONS)
    seen: list[list[str]] = []

    def run(command: list[str], words: str) -> str:
        seen.append(list(names))
        return f"{command[0]} {words}"

    assert error_names.with_our_names(run, names)(["python3", "--", "train.py"], words="ran") == "python3 ran"
    assert set(seen[0]) > {*PYTHONS, "NeuronSimError", "DeviceMemoryError", "CompilationError"}
    assert names == PYTHONS


def test_of_torchrun_the_toolkit_finds_the_account_of_all_ranks() -> None:
    """It names one of Python's errors; a rank that lost another would be the first otherwise."""
    names, seen = list(PYTHONS), list[str]()
    error_names.with_our_names(lambda _: seen.extend(names), names)(["torchrun", "train.py"])
    assert seen == PYTHONS
