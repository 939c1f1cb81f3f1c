"""Makes the process group once, if a newer transformers stands in for the one that a script pins."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from neuron_sim import settings
from neuron_sim.diagnostics import log


def around_init_process_group(initialise: Callable[..., None]) -> Callable[..., None]:
    """Decorate `torch.distributed.init_process_group`: a script that pins an older transformers calls it itself, which
    would raise if the newer transformers has made the group already.
    """
    is_made = False
    """Whether transformers has made the group, and the script has not called for it yet."""

    @functools.wraps(initialise)
    def initialise_once(*arguments: Any, **keywords: Any) -> None:
        nonlocal is_made
        if is_made and dist.is_initialized() and (asked := settings.older_transformers()):
            is_made = False
            log.say(
                f"init_process_group: the transformers that stands in for {asked} has made this group already."
            )
            return
        initialise(*arguments, **keywords)
        is_made = str(sys._getframe(1).f_globals.get("__name__")).startswith("transformers.")

    return initialise_once
