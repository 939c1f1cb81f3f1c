"""Makes AWS's toolkit recognise the simulator's errors in a program's output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuron_sim import errors


def with_our_names(run: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """Wrap the toolkit's function that runs a program and takes FailureReason's ErrorMessage from its output.

    The message begins at a line with one of ``names``. These are Python's own errors, so after an error of the
    simulator it would be empty. torchrun's output has the account of all ranks (`postmortem`), which names one of them.
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
