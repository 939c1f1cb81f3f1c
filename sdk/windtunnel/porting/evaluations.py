"""Loops that evaluate a model: they call it, and compute no gradients."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from windtunnel.porting.nodes import calls_in, computes_gradients, constant, is_method, receiver
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_OFF = ("torch.no_grad", "torch.inference_mode")


def evaluated_models(script: Script) -> set[str]:
    """The names of models that a file evaluates or trains."""
    return {
        *script.models,
        *(ast.unparse(receiver(call)) for call, _ in script.calls if is_method(call, "eval")),
    }


@functools.lru_cache(maxsize=64)
def evaluation_loops(subject: Subject) -> Sequence[ast.For]:
    """The innermost loops around calls of a model, where gradients are off or the model is told to evaluate."""
    script, found = subject.script, dict[ast.For, None]()
    models = evaluated_models(script)
    for call, _ in script.calls:
        if ast.unparse(call.func) not in models:
            continue
        loop = next((one for one in subject.loops_around(call) if isinstance(one, ast.For)), None)
        if loop is None or loop in found or not _is_off(script, call, loop):
            continue
        if not any(map(computes_gradients, calls_in(loop))) and loop not in subject.training_loops:
            found[loop] = None
    return [*found]


def _is_off(script: Script, call: ast.Call, loop: ast.For) -> bool:
    """Whether a model is called without gradients, or in a function that tells one to evaluate before the loop."""
    if has_no_gradients(script, call):
        return True
    told = (one for one, _ in script.calls if is_method(one, "eval", "train") and one.lineno < loop.lineno)
    here = [one for one in told if script.scope(one) is script.scope(call)]
    return bool(here) and is_method(here[-1], "eval") and not here[-1].args


def has_no_gradients(script: Script, node: ast.AST) -> bool:
    """Whether a `with` or a decorator around a node turns gradients off."""
    for outer in script.above(node):
        made = [item.context_expr for item in outer.items] if isinstance(outer, ast.With) else []
        made += getattr(outer, "decorator_list", ())
        for one in made:
            off = isinstance(one, ast.Call) and script.callee(one).endswith("set_grad_enabled")
            if script.dotted(one.func if isinstance(one, ast.Call) else one) in _OFF:
                return True
            if off and isinstance(one, ast.Call) and constant(one.args[0] if one.args else None) is False:
                return True
    return False
