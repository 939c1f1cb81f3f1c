"""Searches all objects that Python's garbage collector tracks, while the script's threads go on.

The search also finds the Python object of a tensor that only libtorch holds, such as a batch that a loader's thread
hands on. A thread may free that tensor at any time: who still holds the object then has an empty one, and PyTorch
warns in the script's log; who takes a reference to the tensor at that moment crashes the process. So a search is one
call of functions in C, during which Python runs no other thread, and it keeps only the objects that are asked for.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterable
from typing import Any

_Test = Callable[[Any], Any]


def live(is_wanted_type: _Test, is_wanted: _Test | None = None) -> list[Any]:
    """The objects whose type passes the first test, and that pass the second test themselves. Takes milliseconds.

    Both tests must be in C, as a set's ``__contains__`` is: a function in Python could let another thread run.
    """
    is_enabled = gc.isenabled()
    gc.disable()  # a collection runs finalizers, and moves objects to the next generation
    try:
        # Not kept in a variable: the iterators still hold objects that they have seen.
        return list(itertools.chain(*_search(is_wanted_type, is_wanted)))
    finally:
        if is_enabled:
            gc.enable()


def _search(is_wanted_type: _Test, is_wanted: _Test | None) -> Iterable[Iterable[Any]]:
    """Search each generation. It is listed twice, for objects and for types; the second list ends with the first."""
    for generation in range(3):
        objects, again = (itertools.chain.from_iterable(map(gc.get_objects, (generation,))) for _ in range(2))
        found = itertools.compress(objects, map(is_wanted_type, map(type, again)))
        yield found if is_wanted is None else filter(is_wanted, found)
        # Read to the end: the list contains the iterator over it, and this cycle would keep all objects alive.
        yield itertools.compress(again, itertools.repeat(False))
