"""Advice for a script that fails because a Neuron package is not in the image: what it is, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sagemaker_training.errors import ExecuteUserScriptError  # type: ignore[import-not-found]

from neuron_sim.names.absent_packages import package_of

_MISSING = re.compile(r"\bNo module named '([\w.]+)'")
"""Without the error's name, which may be on a line of its own: Python writes it separately if unbuffered."""


def with_advice(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the toolkit's function that runs a program: add advice to its error, in the log and in FailureReason."""

    def run_and_explain(*arguments: Any, **keywords: Any) -> Any:
        try:
            return run(*arguments, **keywords)
        except ExecuteUserScriptError as error:
            found = list(advice(str(error.output)))
            if found:
                error.output = "\n".join([*found, str(error.output)])
                print("\n".join(found), flush=True)
            raise

    return run_and_explain


def advice(errors: str) -> Iterator[str]:
    """One line for each Neuron package that a script's errors report as missing."""
    for module in dict.fromkeys(_MISSING.findall(errors)):
        package = package_of(module)
        if package is not None:
            yield f"Windtunnel: {package.advice}"
