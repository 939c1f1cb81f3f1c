"""Hyperparameters that the script's argparse refuses: SageMaker gives each a value, and a flag takes none."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.script import Script, constant, keyword

_WITHOUT_VALUE = ("store_true", "store_false", "store_const", "append_const", "count")

_INSTEAD = 'nargs="?", const=True, default=False, type=lambda text: text.lower() == "true"'
"""Takes what the toolkit gives, and the flag alone as before."""


def refused(script: Script, hyperparameters: Collection[str]) -> Iterator[Finding]:
    """Flags among ``hyperparameters``: AWS's toolkit calls ``script --flag True``, and argparse ends with 2.

    Nothing is said where that may go well: the parser ignores what it does not know, or has positional arguments.
    """
    calls = [call for call, _ in script.calls if _called(call) == "add_argument"]
    if any(_called(call) in ("parse_known_args", "parse_known_intermixed_args") for call, _ in script.calls):
        return
    if not all(_options(call) and all(name.startswith("-") for name in _options(call)) for call in calls):
        return
    for name in sorted(hyperparameters):
        option = f"{'-' if len(name) == 1 else '--'}{name}"
        named = [call for call in calls if option in _options(call)]
        if named and all(map(_takes_none, named)):
            yield Finding(
                named[0].lineno,
                "",
                f"{option} is a flag without a value, and SageMaker gives each hyperparameter one: called with "
                f"{option} True, the script ends with 'unrecognized arguments: True'. Let it take one: "
                f'add_argument("{option}", {_INSTEAD}).',
            )


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _options(call: ast.Call) -> list[str]:
    return [name for one in call.args if isinstance(name := constant(one), str)]


def _takes_none(call: ast.Call) -> bool:
    action = keyword(call, "action")
    if action is None:
        return False
    words = ast.unparse(action.value).rpartition(".")[2]
    return constant(action.value) in _WITHOUT_VALUE or words == "BooleanOptionalAction"
