"""A script that ends because a package of the Neuron world is not here: what that package is, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sagemaker_training.errors import ExecuteUserScriptError  # type: ignore[import-not-found]

from neuron_sim.names.absent_packages import package_of

_MISSING = re.compile(r"\bNo module named '([\w.]+)'")
"""The error's name may stand on a line of its own: unbuffered, it is written apart, and the toolkit makes it a line."""


def with_advice(run: Callable[..., Any]) -> Callable[..., Any]:
    """The toolkit's function that runs a program and reads its errors: they end with advice, in log and failure."""

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
    """A line for each package of the Neuron world that is missed in a script's errors."""
    for module in dict.fromkeys(_MISSING.findall(errors)):
        package = package_of(module)
        if package is not None:
            yield f"Windtunnel: {package.module} is not in the image. It is {package.what}. {package.here}"
