"""By which names AWS's toolkit finds the simulator's errors in a program's output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuron_sim import errors


def with_our_names(run: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """The toolkit's function that runs a program and takes from its output the ErrorMessage of FailureReason.

    That begins where a line has one of ``names``, which are Python's own errors, so one of the simulator would leave
    it empty. Of torchrun it begins with the account of all ranks (`postmortem`), which names one of them.
    """
    ours = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.NeuronSimError)
    ]

    @functools.wraps(run)
    def run_and_look(command: list[str], *arguments: Any, **keywords: Any) -> Any:
        before = list(names)
        names.extend([] if Path(command[0]).name == "torchrun" else ours)
        try:
            return run(command, *arguments, **keywords)
        finally:
            names[:] = before

    return run_and_look
