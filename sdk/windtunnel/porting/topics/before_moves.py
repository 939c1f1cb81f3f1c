"""Work on a batch before it moves to the device: MpDeviceLoader moves it sooner, and the work with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.nodes import arguments, calls_in, names_in, receiver
from windtunnel.porting.script import Loop
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.step_ends import ends_of_steps, is_wrapped, within

_DRAWS = re.compile(r"(numpy\.)?random\.(randint|randrange|choices?|sample)|int")
_CHANCE = re.compile(r"\b(rand|uniform|beta|normal)")
"""What is drawn as a number with a fraction is a size or a place only as an `int` of it."""
_AUGMENTS = re.compile(r"augment|cutout|erasing|random_?(crop|erase|resize|mask)", re.IGNORECASE)


def varying_work(subject: Subject) -> Iterator[Finding]:
    """Notes on loops over MpDeviceLoader, now or by an edit, that draw sizes for a batch before they move it.

    Nothing is said of work that is the same in each step, such as ``x.float() / 255``: the device may do that.
    """
    if subject.managed or not subject.uses_device:
        return
    wrapped = {
        finding.line
        for finding in ends_of_steps(subject)
        if any(isinstance(edit, Edit) and "MpDeviceLoader" in edit.text for edit in finding.edits)
    }
    said: set[ast.AST] = set()
    for loop in subject.script.walk(ast.For):
        if loop.lineno not in wrapped and not is_wrapped(subject, loop.iter, set()):
            continue
        for work, move in _work(subject, loop):
            if work not in said:
                said.add(work)
                yield Finding(
                    work.lineno,
                    f"{subject.script.segment(work)} runs on the host, before the move in line {move.lineno}. "
                    "MpDeviceLoader moves each batch at once, so with it this runs on the device: each size or place "
                    "that it draws is a graph to compile. Do it in the data set or in the collate function.",
                    sure=False,
                )


def _work(subject: Subject, loop: Loop) -> Iterator[tuple[ast.expr, ast.Call]]:
    """What varies from step to step and is computed of a batch, and the move of the batch behind it."""
    script = subject.script
    assert isinstance(loop, ast.For)  # noqa: S101 - of the walk
    batch = names_in(loop.target)
    moves = [(move, _moved(subject, move)) for move in subject.moves if loop in script.above(move)]
    for node in (part for statement in loop.body for part in ast.walk(statement)):
        if not isinstance(node, ast.Call | ast.Subscript) or node in subject.moves:
            continue
        parts = arguments(node) if isinstance(node, ast.Call) else [node.value]
        of = {part.id for part in parts if isinstance(part, ast.Name)}
        if not of & batch or not _varies(subject, node):
            continue
        made = script.statement_with(node)
        if isinstance(made, ast.Assign):
            of |= names_in(*made.targets)
        behind = [(move, names) for move, names in moves if of & names]
        if behind and all(script.end(move) > script.end(node) for move, _ in behind):
            yield node, behind[0][0]


def _moved(subject: Subject, move: ast.Call) -> set[str]:
    """The names that a move is of, also as ``t.to(device) for t in (images, labels)``."""
    names = names_in(receiver(move))
    for outer in subject.script.above(move):
        if isinstance(outer, ast.stmt):
            return names
        for one in getattr(outer, "generators", ()):
            names |= names_in(one.iter)
    return names


def _varies(subject: Subject, node: ast.Call | ast.Subscript) -> bool:
    """Whether a function draws sizes or places, or a slice has bounds that are drawn."""
    script = subject.script
    if isinstance(node, ast.Call):
        called = [call for call in within(subject, node) if call[1] is not node]
        unknown = not any(script.called(node) in one.script.functions for one in subject.program)
        augments = unknown and bool(_AUGMENTS.search(script.called(node)))
        return augments or any(_draws(*call) for call in called)
    slices = [part for part in ast.walk(node.slice) if isinstance(part, ast.Slice)]
    names = names_in(*slices)
    values = [one for name in names for one in script.values(name) if script.scope(one) is script.scope(node)]
    return any(_draws(subject, call) for call in calls_in(*slices, *values))


def _draws(one: Subject, call: ast.Call) -> bool:
    name = one.script.dotted(call.func)
    drawn = name != "int" or any(_CHANCE.search(ast.unparse(given)) for given in call.args)
    return bool(_DRAWS.fullmatch(name)) and drawn
