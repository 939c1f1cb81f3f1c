"""How a process that imports torch begins and ends: without the interpreter's work that brings a job nothing.

Of a launcher's 2.9 s this is 0.8: torch has 2,000 modules, which the collector goes through again and again while
they are imported, and which the interpreter takes apart, object by object, when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Without collecting garbage, of which imports make little. What is there at the end is never collected, so that
    forks share its memory: not even the collector writes to it.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def run(main: Callable[[], object]) -> NoReturn:
    """Run a command's function and end the process as the interpreter would, memory left to the system."""
    code = 0
    try:
        main()
    except SystemExit as leaving:
        code = exit_code(leaving)
    except Exception:  # noqa: BLE001 - shown as the interpreter shows it
        sys.excepthook(*sys.exc_info())
        code = 1
    last_words()
    os._exit(code)


def last_words() -> None:
    """What the interpreter does before it takes itself apart, in its order: threads, exit handlers, streams."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def exit_code(leaving: SystemExit) -> int:
    """Of a process that leaves so; what is no number is said, as the interpreter does it."""
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code
    print(leaving.code, file=sys.stderr)
    return 1
