"""What Python's garbage collector knows, looked through while a script's threads go on.

Of a tensor that only libtorch holds, as a batch that a loader's thread hands on, the Python object is there still,
and is found. A thread may let go of the tensor at any time: whoever still holds the object then has an empty one, with
a warning of PyTorch's in the script's log, and whoever makes the tensor its own just then brings the process down. So
a search is one call of functions in C, within which Python runs no other thread, and leaves only what is asked for.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterable
from typing import Any

_Test = Callable[[Any], Any]


def live(is_wanted_type: _Test, is_wanted: _Test | None = None) -> list[Any]:
    """The objects whose type is wanted, and that are wanted themselves; in milliseconds.

    Both tests must be in C, as a set's ``__contains__`` is: before a function of Python's another thread may run.
    """
    is_enabled = gc.isenabled()
    gc.disable()  # a collection runs code of what it frees, and moves what is left
    try:
        # Under no name: what searches still holds what it has seen.
        return list(itertools.chain(*_search(is_wanted_type, is_wanted)))
    finally:
        if is_enabled:
            gc.enable()


def _search(is_wanted_type: _Test, is_wanted: _Test | None) -> Iterable[Iterable[Any]]:
    """Of each generation. It is listed twice, the second time with the first list at its end."""
    for generation in range(3):
        objects, again = (itertools.chain.from_iterable(map(gc.get_objects, (generation,))) for _ in range(2))
        found = itertools.compress(objects, map(is_wanted_type, map(type, again)))
        yield found if is_wanted is None else filter(is_wanted, found)
        # To its end: a list has in it what goes through it, and would keep all alive.
        yield itertools.compress(again, itertools.repeat(False))
