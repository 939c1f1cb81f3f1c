"""The process group, where a newer transformers than the one that a script pins stands in for it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from neuron_sim import settings
from neuron_sim.diagnostics import log


def around_init_process_group(initialise: Callable[..., None]) -> Callable[..., None]:
    """Around `torch.distributed.init_process_group`: a script that pins an older transformers makes the group itself,
    and would end where the version that stands in has made it.
    """
    is_made = False
    """By transformers, and not yet asked for by the script."""

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
