"""What Python's garbage collector knows, found while a script's threads go on.

Of a tensor that only libtorch holds, as a batch that a loader's thread hands on, the Python object is there still,
and is found. A thread that frees the tensor then leaves an empty object to whoever has found it, with a warning of
PyTorch's in the script's log.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

_UNTIL_DONE_S = 60.0


def live_objects() -> list[Any]:
    """All objects; each tensor lives at least as long as it is held. Milliseconds, in which other threads wait."""
    torch = sys.modules.get("torch")
    kinds = () if torch is None else (torch.Tensor, torch.nn.Parameter)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_UNTIL_DONE_S)
    try:
        found = gc.get_objects()
        for thing in found:
            if type(thing) in kinds:
                thing._fix_weakref()
    finally:
        sys.setswitchinterval(interval)
    return found
