"""Gradients that are clipped before the cores exchange them, and the optimizer's step behind the clipping."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, replace

from windtunnel.porting.finding import Edit, before, replaced
from windtunnel.porting.nodes import calls_in, computes_gradients, is_method, is_optimizer, receiver
from windtunnel.porting.subject import Subject

_BEFORE = ("reduce_gradients", "all_reduce", "all_reduce_bucketized_gradients", "ZeroRedundancyOptimizer")
"""Calls that exchange gradients before the step."""
_SEVERAL = re.compile(r"optim|(?<![a-z])opts?(?![a-z])", re.IGNORECASE)
"""Names of optimizers, as what a loop goes over has them."""


@dataclass(frozen=True)
class Clipped:
    """A step of an optimizer whose gradients are clipped before it, in the same block of statements."""

    lines: tuple[int, ...]
    """The lines that clip."""
    edits: tuple[Edit, ...]
    """Edits that exchange the gradients before they are clipped."""


def stepped(subject: Subject, call: ast.Call) -> ast.expr | None:
    """The optimizer whose step a call is; None for other calls.

    That is ``x.step()`` where x has "optim" in its name, is made as an optimizer in any file, or goes over several. For
    ``scaler.step(optimizer)``, where the scaler may be a parameter, it is the argument.
    """
    if not is_method(call, "step"):
        return None
    name = ast.unparse(receiver(call))
    if "optim" in name.lower() or any(name in one.optimizers for one in subject.program):
        return receiver(call)
    if _goes_over_optimizers(subject, receiver(call)):
        return receiver(call)
    return call.args[0] if "scaler" in name.lower() and call.args else None


def _goes_over_optimizers(subject: Subject, owner: ast.expr) -> bool:
    """Whether it is the variable of ``for o in opts: o.step()``, or of such a comprehension."""
    script, name = subject.script, ast.unparse(owner)
    for one in script.iterations(owner):
        if ast.unparse(one.target) == name:
            held = [one.iter, *script.values(ast.unparse(one.iter))]
            made = (script.callee(call) for call in calls_in(*held))
            return bool(_SEVERAL.search(ast.unparse(one.iter))) or any(map(is_optimizer, made))
    return False


def early(subject: Subject) -> list[ast.Call]:
    """The calls that clip gradients before the cores have exchanged them."""
    script = subject.script
    exchanged = subject.exchanges and not script.calls_any("optimizer_step")
    if not subject.several or subject.managed or not subject.uses_device or exchanged:
        return []
    if subject.parallel_model or script.calls_any(*_BEFORE) or not subject.training_loops:
        return []
    names = ("clip_grad_norm_", "clip_grad_value_")
    clips = (call for call, name in script.calls if name.rpartition(".")[2] in names)
    return [call for call in clips if not _is_behind_the_step(subject, call)]


def _is_behind_the_step(subject: Subject, clip: ast.Call) -> bool:
    """Whether the gradients that a call clips have been exchanged and used by then."""
    script = subject.script
    block = script.block(statement := script.statement_with(clip))
    for one in reversed(block[: block.index(statement)]):
        if any(map(computes_gradients, calls_in(one))):
            return False
        if any(script.is_call_of(call, "optimizer_step") for call in calls_in(one)):
            return True
    return False


@functools.lru_cache(maxsize=8)
def clipped(subject: Subject) -> dict[ast.Call, Clipped]:
    """The steps behind calls that clip too soon, where only one optimizer steps there."""
    found: dict[ast.Call, Clipped] = {}
    for clip in early(subject):
        pair = _step_behind(subject, clip)
        if pair is not None:
            first = found.get(pair[0]) or Clipped((), _exchanged(subject, *pair))
            found[pair[0]] = replace(first, lines=(*first.lines, clip.lineno))
    return found


def _step_behind(subject: Subject, clip: ast.Call) -> tuple[ast.Call, ast.expr, ast.stmt] | None:
    """The step behind a clip, its optimizer, and the statement of its block that clips; None where not sure."""
    script = subject.script
    first = script.statement_with(clip)
    for one in (first, *script.above(first)):
        if not isinstance(one, ast.stmt) or isinstance(one, ast.FunctionDef):
            return None
        block = script.block(one)
        behind = block[block.index(one) + 1 :]
        steps = [
            (call, optimizer)
            for statement in behind
            if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call)
            if (optimizer := _stepped_alone(subject, call)) is not None
        ]
        if any(map(computes_gradients, calls_in(one, *behind))):
            return None
        if len(steps) == 1:
            return (*steps[0], one)
        if steps:
            return None
    return None


def _stepped_alone(subject: Subject, call: ast.Call) -> ast.expr | None:
    """The optimizer of a plain step, torch's or torch_xla's; None for other calls."""
    if subject.script.is_call_of(call, "optimizer_step"):
        return call.args[0] if len(call.args) == 1 and not call.keywords else None
    optimizer = stepped(subject, call)
    return optimizer if not call.keywords and call.args in ([], [optimizer]) else None


def _exchanged(subject: Subject, step: ast.Call, optimizer: ast.expr, clips: ast.stmt) -> tuple[Edit, ...]:
    script = subject.script
    name = script.segment(optimizer)
    edits = (before(script, clips, f"{subject.names.module('xm')}.reduce_gradients({name})"),)
    plain = isinstance(step.func, ast.Attribute) and step.func.value is optimizer
    return edits if plain else (*edits, replaced(script, step, f"{name}.step()"))
