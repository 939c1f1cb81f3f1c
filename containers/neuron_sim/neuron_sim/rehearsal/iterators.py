"""Finds iterators between a loader and the loop over it: ``zip``, and those of itertools, which may end or repeat it.

They are searched among all live objects, so it does not matter where the script made them: in the loop's header, on a
line before it, in a function that returns them.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable
from types import FrameType, GeneratorType
from typing import Any, NamedTuple

from neuron_sim import live_objects
from neuron_sim.counters.script_lines import is_users
from neuron_sim.rehearsal.loops import Count, yields

_ENDING = (zip, itertools.islice, itertools.cycle, itertools.chain, itertools.takewhile)
_OTHERS = (enumerate, map, filter, itertools.filterfalse, itertools.dropwhile, itertools.starmap)
_LIVE = frozenset((*_ENDING, *_OTHERS, GeneratorType))


class Between(NamedTuple):
    """``wrapped``: the iterator that may end or repeat the loader's batches, at a point that is not known.

    ``sliced``: the count of an `islice`, whose end is known.
    """

    wrapped: str | None = None
    sliced: Count | None = None


def between(iterator: Any) -> Between:
    """What lies between ``iterator``, which is asked for a batch now, and the loop that asks."""
    wrapped: str | None = None
    sliced: Count | None = None
    for found in _around(iterator):
        end = _count(found) if isinstance(found, itertools.islice) else None
        if end is not None:
            sliced = end if sliced is None or _left(end) < _left(sliced) else sliced
        elif isinstance(found, _ENDING):
            wrapped = wrapped or type(found).__name__
        if isinstance(found, itertools.cycle):
            sliced = None  # it repeats what the slice gives
    return Between(wrapped, sliced)


def _around(iterator: Any) -> list[Any]:
    """The iterators that are asking ``iterator``, the innermost first."""
    asking = {id(iterator)}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (not is_users(frame.f_code.co_filename) or yields(frame)):
        asking.add(id(frame))
        if frame.f_code.co_name == "__next__":
            asking.update(id(frame.f_locals[name]) for name in frame.f_code.co_varnames[:1])  # self
        frame = frame.f_back
    live = live_objects.live(_LIVE.__contains__)
    order: list[Any] = []
    while (outer := next((found for found in live if _asks(found, asking)), None)) is not None:
        live = [found for found in live if found is not outer]
        asking.add(id(outer))
        order.append(outer)
    return order


def _asks(found: Any, asking: set[int]) -> bool:
    if isinstance(found, GeneratorType):
        return found.gi_running and id(found.gi_frame) in asking
    inner = gc.get_referents(found)
    inner += [part for parts in inner if type(parts) is tuple for part in parts]  # those of zip and map
    return any(id(part) in asking for part in inner)


def _count(slice_: itertools.islice[Any]) -> Count | None:
    """The position and end of an `islice`; None: it has no end, or this Python does not tell."""
    reduce: Callable[[], Any] = slice_.__reduce__
    try:
        _, (_, _, stop, _), position = reduce()
    except (TypeError, ValueError):
        return None
    return None if stop is None else Count(position, stop, decides=False)


def _left(count: Count) -> float:
    return count.limit - count.value
