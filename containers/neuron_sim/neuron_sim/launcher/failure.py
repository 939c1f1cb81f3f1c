"""How a script has failed: its traceback for the log, and the same in short for the launcher's account of all ranks."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import time
import traceback
from pathlib import Path

from neuron_sim import atomic_file
from neuron_sim.counters import script_lines
from neuron_sim.errors import NeuronSimError


def traceback_of(error: BaseException) -> str:
    """The traceback as the interpreter prints it, without the simulator's frames: they say nothing of the script."""
    shown = error.__traceback__
    while shown is not None and script_lines.is_ours(shown.tb_frame.f_code.co_filename):
        shown = shown.tb_next
    trace = traceback.TracebackException(type(error), error, shown)
    _leave_ours_out(trace, error)
    return "".join(trace.format())


def tell_launcher(error: BaseException) -> None:
    """Write the exception to the error file that torch's agent reads, in its format and atomically."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    details = {
        "py_callstack": traceback_of(error),
        "timestamp": str(int(time.time())),
        "place": place_of(error),
    }
    text = json.dumps({"message": {"message": _in_short(error), "extraInfo": details}})
    with contextlib.suppress(OSError):
        atomic_file.write(Path(path), text)


def place_of(error: BaseException) -> str:
    """``model.py:24 in forward``: the script's innermost line that led to the error; empty when there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if script_lines.is_users(frame.filename)]
    if not mine:
        return ""
    function = "" if mine[-1].name == "<module>" else f" in {mine[-1].name}"
    return f"{Path(mine[-1].filename).name}:{mine[-1].lineno}{function}"


def _leave_ours_out(trace: traceback.TracebackException, error: BaseException) -> None:
    """Drop the simulator's frames, also from causes and contexts. A fault of the simulator itself keeps all frames."""
    in_ours = bool(trace.stack) and script_lines.is_ours(trace.stack[-1].filename)
    if not in_ours or isinstance(error, NeuronSimError) or _raised_in_c(error, trace.stack[-1]):
        frames = [frame for frame in trace.stack if not script_lines.is_ours(frame.filename)]
        trace.stack = traceback.StackSummary.from_list(frames)
    groups = zip(getattr(trace, "exceptions", None) or (), getattr(error, "exceptions", ()), strict=False)
    for other, its in ((trace.__cause__, error.__cause__), (trace.__context__, error.__context__), *groups):
        if other is not None and its is not None:
            _leave_ours_out(other, its)


def _raised_in_c(error: BaseException, shown: traceback.FrameSummary) -> bool:
    """Whether the innermost frame is in a call of torch's function that it stands around, which is in C: that has none.

    Such a function is a local name, and nothing else is called on the line.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    called = [frame.f_locals.get(name) for name in re.findall(r"([\w.]+)\(", shown.line or "")]
    return bool(called) and all(callable(one) and not hasattr(one, "__code__") for one in called)


def _in_short(error: BaseException) -> str:
    """``KeyError: 'img'``. For `sys.exit`: its code, with argparse's message or the exception that was caught."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        caught = error.__context__
        why = _said_by_argparse(error) or (f"after {type(caught).__name__}: {caught}" if caught else "")
        return f"SystemExit: {error.code}" + (f", {why}" if why else "")
    return f"{type(error).__name__}: {error}"


def _said_by_argparse(error: SystemExit) -> str:
    """The last line that argparse printed before it called `sys.exit`; its SystemExit has only the exit code."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is argparse.ArgumentParser.exit.__code__:
            lines = str(frame.f_locals.get("message") or "").strip().splitlines()
            return lines[-1] if lines else ""
    return ""
