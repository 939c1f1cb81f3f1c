"""One forked worker: becomes the core that its environment names, and runs the script.

To the script it looks as if `python -u script.py` had started it.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import multiprocessing
import multiprocessing.process
import os
import signal
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from neuron_sim.diagnostics import log
from neuron_sim.diagnostics.host_training import training as host_training
from neuron_sim.hooks import activation
from neuron_sim.launcher import failure, fresh, interpreter, preload

_CROWDED = 4
"""Workers to a processor from which on each has its fixed place."""

_MAIN_PROCESS = multiprocessing.current_process()
"""What multiprocessing calls a process that it has not made: here, while this is imported, the launcher."""


def run(script: str, *arguments: str) -> None:
    """Run the script to its end; leaves by SystemExit when it fails.

    torch's agent calls this in the forked child, with RANK and the rest set.
    """
    # It needs torch_xla, which is no longer there after the next lines.
    from neuron_sim.runtime import lifetime

    def become_core() -> None:
        activation.activate()
        lifetime.join()

    _like_a_new_process()
    host_training.watch()
    termination = _Termination()
    process = os.getpid()
    preload.until_imported(become_core)
    sys.argv = [script, *arguments]
    sys.orig_argv = [sys.executable, "-u", *sys.argv]
    code = 1
    try:
        code = _execute(script)
        if not code and os.getpid() == process:
            import torch_xla  # noqa: F401 - at the latest here, or peers would wait for this core for ever
    finally:
        if code:
            lifetime.failed()
        interpreter.last_words()
    if os.getpid() != process:
        # The script has called `os.fork`, and this is the child: it is no worker, and nobody's peer.
        os._exit(code)
    lifetime.leave(failed=bool(code) or termination.received)
    if termination.received:
        # The agent is shutting down: it waits for this process, no longer for its result.
        os._exit(code)
    if code:
        raise SystemExit(code)


class _Termination:
    """Notices that a handler of the script's own has been given SIGTERM."""

    def __init__(self) -> None:
        self.received = False
        self._signal = signal.signal
        signal.signal = self._install  # type: ignore[assignment]

    def _install(self, number: int, handler: Any) -> Any:
        if number != signal.SIGTERM or not callable(handler):
            return self._signal(number, handler)

        def noticed(received: int, frame: FrameType | None) -> Any:
            self.received = True
            return handler(received, frame)

        return self._signal(number, noticed)


def _like_a_new_process() -> None:
    """Undo what the fork inherits and a fresh interpreter would not have."""
    fresh.begin()
    os.setsid()
    # To multiprocessing this is a helper, and its start method is settled. Libraries look at that.
    multiprocessing.process._current_process = _MAIN_PROCESS  # type: ignore[attr-defined]
    multiprocessing.process._parent_process = None  # type: ignore[attr-defined]
    multiprocessing.set_start_method(None, force=True)
    sys.stdin = sys.__stdin__
    log.by_lines()
    _pin_to_processor()
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and "torch" in sys.modules:
        # Read by torch when it was imported, which was before torchrun set it.
        sys.modules["torch"].set_num_threads(int(threads))


def _pin_to_processor() -> None:
    """With many workers to a processor, stay on one: XLA then makes its pools one thread wide.

    With few, a fixed place would leave a processor idle while another has two workers left.
    Python goes on seeing all processors: DataLoader warns of more helpers than it counts there.
    """
    allowed = os.sched_getaffinity
    processors = allowed(0)
    if int(os.environ["LOCAL_WORLD_SIZE"]) < _CROWDED * len(processors):
        return
    mine = {sorted(processors)[int(os.environ["LOCAL_RANK"]) % len(processors)]}
    os.sched_setaffinity(0, mine)

    def seen(pid: int, /) -> set[int]:
        found = allowed(pid)
        return set(processors) if pid in (0, os.getpid()) and found == mine else found

    os.sched_getaffinity = seen


def _execute(script: str) -> int:
    """Execute the file as `__main__`; the exit code."""
    path = os.path.abspath(script)  # noqa: PTH100 - as the interpreter does it: links stay
    main = ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(main).update(
        __file__=path, __cached__=None, __builtins__=builtins, __loader__=loader, __annotations__={}
    )
    sys.modules["__main__"] = main
    sys.path[0] = str(Path(path).resolve().parent)
    process = os.getpid()
    try:
        code = compile(Path(path).read_bytes(), path, "exec")
        exec(code, main.__dict__)  # noqa: S102 - running the script is the purpose
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would, then exit 1
        if isinstance(error, SystemExit):
            left_with = interpreter.exit_code(error)
        else:
            left_with = 1
            # At once: the lines of ranks that fail together would mix.
            print(failure.traceback_of(error), end="", file=sys.stderr)
        if left_with and os.getpid() == process:
            failure.tell_launcher(error)
        return left_with
    return 0
