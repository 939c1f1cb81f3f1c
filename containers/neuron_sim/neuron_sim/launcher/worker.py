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
"""Workers per processor from which on each worker is pinned to one processor."""

_MAIN_PROCESS = multiprocessing.current_process()
"""multiprocessing's object for a process that it has not started: the launcher, which imports this module."""


def run(script: str, *arguments: str) -> None:
    """Run the script to its end; raises SystemExit when it fails.

    torch's agent calls this in the forked child, with RANK and the rest set.
    """
    # Imported here because it needs torch_xla, which the next lines hide.
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
            import torch_xla  # noqa: F401 - makes it a core, at the latest here: peers would wait for it for ever
    finally:
        if code:
            lifetime.failed()
        interpreter.last_words()
    if os.getpid() != process:
        # The script has called `os.fork`, and this is the child, which is not a worker.
        os._exit(code)
    lifetime.leave(failed=bool(code) or termination.received)
    if termination.received:
        # The agent is shutting down: it waits for the end of this process, and reads no result.
        os._exit(code)
    if code:
        raise SystemExit(code)


class _Termination:
    """Notices when a SIGTERM handler of the script's own is called."""

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
    # multiprocessing sees a child process whose start method is fixed; libraries look at both.
    multiprocessing.process._current_process = _MAIN_PROCESS  # type: ignore[attr-defined]
    multiprocessing.process._parent_process = None  # type: ignore[attr-defined]
    multiprocessing.set_start_method(None, force=True)
    sys.stdin = sys.__stdin__
    log.by_lines()
    _pin_to_processor()
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and "torch" in sys.modules:
        # torch read the variable when it was imported, before torchrun set it.
        sys.modules["torch"].set_num_threads(int(threads))


def _pin_to_processor() -> None:
    """With many workers per processor, pin this one to one processor: XLA then makes pools of one thread.

    With few, pinning would leave a processor idle while another has two workers left. Python goes
    on seeing all processors: DataLoader warns if it has more workers than there are processors.
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
    """Execute the file as `__main__` and return the exit code."""
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
            # In one write: the lines of ranks that fail together would mix.
            print(failure.traceback_of(error), end="", file=sys.stderr)
        if left_with and os.getpid() == process:
            failure.tell_launcher(error)
        return left_with
    return 0
