"""Steps that nothing ends: MpDeviceLoader ends one with each of its batches."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from windtunnel.porting.clips import stepped
from windtunnel.porting.finding import Edit, Finding, replaced
from windtunnel.porting.nodes import (
    arguments,
    calls_in,
    computes_gradients,
    constant,
    is_method,
    names_in,
    receiver,
)
from windtunnel.porting.script import Loop, Scope, Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.tensors import FETCHES

_LOADERS = ("MpDeviceLoader", "per_device_loader", "ParallelLoader")
_ENDS = (*_LOADERS, "mark_step", "torch_xla.sync", "torch_xla.step")
_LEAVES = (ast.Break, ast.Continue, ast.Return)
"""What a step may leave the loop's body by."""


def ends_of_steps(subject: Subject) -> Iterator[Finding]:
    """Findings on loops whose steps nothing ends."""
    if subject.managed or not subject.uses_device:
        return
    script = subject.script
    for node in script.walk(ast.For, ast.While):
        assert isinstance(node, Loop)  # noqa: S101 - of the walk
        loader, trains = subject.loaders.iterated(node), node in subject.training_loops
        if not trains and (loader is None or not _moves_batches(node)):
            continue
        if _is_ended(subject, node, loader):
            continue
        edits: tuple[Edit, ...] = ()
        if loader is None:
            end = _end_of(subject, node)
            edits = () if end is None else (end,)
        elif trains or not _compares_on_the_host(script, node):
            given = f"{script.segment(loader)}, {subject.device_at(node)}"
            wrapped = f"{subject.names.module('pl')}.MpDeviceLoader({given})"
            edits = (replaced(script, loader, wrapped), *_to_numpy(script, node))
        if not edits and _is_read(subject, node):
            continue
        yield Finding(
            node.lineno,
            "nothing ends a step of this loop: all its operations are one graph, which grows. Iterate over "
            f"pl.MpDeviceLoader(loader, device), or call {subject.names.end_of_step()} at the end of each step.",
            edits,
            kind="step_without_end",
        )


def _is_ended(subject: Subject, loop: Loop, loader: ast.expr | None) -> bool:
    """Whether anything ends a loop's steps: in it, in functions that it calls, or in what it goes over.

    This is assumed of a loop over something unknown if other loops have an end, and of a program that looks mark_step
    up by its name, as those for several versions of torch_xla do.
    """
    if any(
        constant(node) == "mark_step" for one in subject.program for node in one.script.walk(ast.Constant)
    ):
        return True
    every = subject.program[0].calls_by_name
    ends = [call for name in _ENDS for call in every.get(name.rpartition(".")[2], ()) if _ends(*call)]
    ends += [call for call in every.get("optimizer_step", ()) if _ends(*call)]
    if not ends:
        return False
    if any(_ends(one, part) for one, part in within(subject, loop)):
        return True
    if loader is None or _is_read(subject, loop):
        return True
    plain = subject.loaders.maker(ast.unparse(loader), loop) is not None
    return not plain or is_wrapped(subject, loader, set())


def _is_read(subject: Subject, loop: Loop) -> bool:
    """Whether a loop only evaluates, and the host reads the results: that runs the step."""
    calls = within(subject, loop)
    return loop not in subject.training_loops and any(is_method(call, *FETCHES) for _, call in calls)


def _ends(one: Subject, call: ast.Call) -> bool:
    name = one.script.dotted(call.func)
    barrier = name.endswith("optimizer_step") and any(given.arg == "barrier" for given in call.keywords)
    return (
        barrier
        or any(name == end or name.endswith(f".{end}") for end in _ENDS)
        or is_method(call, _LOADERS[1])
    )


def within(subject: Subject, place: ast.AST) -> Iterator[tuple[Subject, ast.Call]]:
    """The calls in a place, and in functions of the program that are called there by their names."""
    parts: list[tuple[Subject, ast.AST]] = [(subject, place)]
    seen: set[ast.AST] = set()
    while parts:
        one, part = parts.pop()
        if part in seen:
            continue
        seen.add(part)
        for call in calls_in(part):
            yield one, call
            name = one.script.called(call)
            parts += [
                (other, known) for other in subject.program if (known := other.script.functions.get(name))
            ]


def is_wrapped(one: Subject, node: ast.expr, seen: set[tuple[Scope, str]]) -> bool:
    """Whether this expression of a loop may be an MpDeviceLoader, here or by what its function is called with."""
    scope, name = one.script.scope(node), ast.unparse(node)
    if (scope, name) in seen:
        return False
    seen.add((scope, name))
    given = [*((one, value) for value in one.script.values(name)), *one.passed(scope, name)]
    wraps = any(one.script.is_call_of(part, *_LOADERS) for part in ast.walk(node))
    return wraps or any(is_wrapped(other, value, seen) for other, value in given)


def _end_of(subject: Subject, loop: Loop) -> Edit | None:
    """Insert a line that ends a step, behind the last statement that computes gradients, or changes weights by them.

    Where the text does not tell what changes the weights, it may be anything that is called behind the gradients. None
    where the loop may be left before all of that has run.
    """
    script, line = subject.script, subject.names.end_of_step()
    calls = list(calls_in(loop))
    changes = [call for call in calls if _changes_weights(subject, call)]
    last = max(
        [*changes, *(call for call in calls if _is_of_a_step(subject, call))], key=script.start, default=None
    )
    around = {last, *script.above(last)} if last else set()
    statement = next((one for one in loop.body if one in around), loop.body[-1])
    if last and not changes:
        behind = loop.body[loop.body.index(statement) + 1 :]
        called = [number for number, one in enumerate(behind, 1) if any(map(_may_step, calls_in(one)))]
        behind = behind[: called[-1]] if called else []
        if any(isinstance(part, _LEAVES) for one in behind for part in ast.walk(one)):
            return None
        statement = [statement, *behind][-1]
    place = script.end(statement)
    if not script.is_alone(statement):
        return Edit(place, place, f"; {line}")
    return Edit(place, place, f"{script.newline}{script.before(statement)}{line}")


def _may_step(call: ast.Call) -> bool:
    """Whether a call is of more than Python's own functions, such as `print`."""
    return not hasattr(builtins, ast.unparse(call.func))


def _is_of_a_step(subject: Subject, call: ast.Call) -> bool:
    """Whether a call computes gradients, or is of a function that does, or is given one."""
    functions = {getattr(step, "name", "") for one in subject.program for step in one.steps}
    passes = any(isinstance(given, ast.Name) and given.id in functions for given in arguments(call))
    return passes or subject.script.called(call) in functions or computes_gradients(call)


def _changes_weights(subject: Subject, call: ast.Call) -> bool:
    """Whether a call steps something, or is of a function of the program that steps an optimizer."""
    return is_method(call, "step") or any(
        stepped(one, part) is not None
        or (one.script.called(part).startswith("step") and "opt" in ast.unparse(part).lower())
        for one, part in within(subject, call)
    )


def _moves_batches(part: ast.AST) -> bool:
    return any(is_method(node, "cuda", "to") for node in ast.walk(part))


def _to_numpy(script: Script, loop: Loop) -> Iterator[Edit]:
    """Edits for parts of the batch that the loop hands to numpy: they were on the host, and now come on the device."""
    for name in _batch(loop):
        read = _read(script, name)
        if read is not None and is_method(read, "numpy"):
            place = script.end(receiver(read))
            yield Edit(place, place, ".cpu()")


def _compares_on_the_host(script: Script, loop: Loop) -> bool:
    """Whether a loop compares a result fetched from the device with a part of the batch that it left on the host, as
    ``model(x.to(device)).cpu() == y``: from MpDeviceLoader that part would come on the device.
    """
    if not any(is_method(node, "cpu") for node in ast.walk(loop)):
        return False
    left, moved = set(), set()
    for name in _batch(loop):
        outer = script.parents[name]
        part = ast.unparse(outer if isinstance(outer, ast.Subscript) else name)
        if _moves_batches(_side(script, name)):
            moved |= {part}
        elif _read(script, name) is None:
            left |= {(name.id, part)}
    return any(name not in moved and part not in moved for name, part in left)


def _side(script: Script, name: ast.Name) -> ast.AST:
    """The side of a comparison or a sum that a name is in, else its statement: in ``model(x.to(device)).cpu() == y``
    only the left side is moved.
    """
    node: ast.AST = name
    for outer in script.above(name):
        if isinstance(node, ast.stmt) or isinstance(outer, ast.Compare | ast.BinOp):
            break
        node = outer
    return node


def _batch(loop: Loop) -> Iterator[ast.Name]:
    """The uses of a loop's variables in its body, without the number that enumerate() counts."""
    if isinstance(loop, ast.For):
        names = names_in(loop.target)
        if "enumerate" in ast.unparse(loop.iter) and isinstance(loop.target, ast.Tuple):
            names -= {ast.unparse(loop.target.elts[0])}
        for node in (node for statement in loop.body for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
                yield node


def _read(script: Script, name: ast.Name) -> ast.Call | None:
    """The call that fetches a variable, or a part of it: ``batch["labels"].numpy()``."""
    node: ast.AST = name
    for outer in script.above(name):
        if isinstance(outer, ast.Call) and outer.func is node:
            if is_method(outer, *FETCHES, "size", "numel"):
                return outer
        elif not isinstance(outer, ast.Attribute | ast.Subscript) or outer.value is not node:
            return None
        node = outer
    return None
