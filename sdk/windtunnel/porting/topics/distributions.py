"""torch.distributions, which read the values of their arguments to check them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding, with_argument
from windtunnel.porting.nodes import arguments, constant, is_method, keyword
from windtunnel.porting.subject import Subject

_OTHERS = ("torch.distributions.kl", "torch.distributions.constraints", "torch.distributions.transforms")
"""Modules without distributions; classes of the last are exported by `torch.distributions`, too: ...Transform."""
_SETTING = "set_default_validate_args"


def checked(subject: Subject) -> Iterator[Finding]:
    """Distributions that a training program makes of the device's tensors, unless it turns the checks off."""
    script = subject.script
    if not subject.trains or not subject.uses_device:
        return
    if any(one.script.calls_any(_SETTING) for one in subject.program):
        return
    asked = any(is_method(call, "log_prob", "cdf") for one in subject.program for call, _ in one.script.calls)
    for call, name in script.calls:
        given = arguments(call)
        package, _, made = name.rpartition(".")
        known = (
            package.startswith("torch.distributions")
            and made[:1].isupper()
            and not made.endswith("Transform")
        )
        if (
            not known
            or package in _OTHERS
            or keyword(call, "validate_args")
            or any(isinstance(constant(one), bool) for one in call.args)  # which is validate_args
            or not given
            or (all(map(_is_number, given)) and not asked)
        ):
            continue
        bare = script.end(given[-1]) == script.end(call)  # a generator in the call's own parentheses
        yield Finding(
            call.lineno,
            f"{made} looks at what it is given, and the host waits for the device, here and where a value's "
            "probability is asked for: validate_args=False, or once "
            f"torch.distributions.Distribution.{_SETTING}(False).",
            (with_argument(script, call, "validate_args=False"),)
            if all(one.arg for one in call.keywords) and not bare
            else (),
            kind="host_read",
        )


def _is_number(node: ast.expr) -> bool:
    """Whether a distribution makes a tensor on the host of an argument: it is a number."""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(constant(number), int | float)
