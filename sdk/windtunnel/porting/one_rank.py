"""What one process does alone: the tests of the rank around a call, and the call without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from windtunnel.porting.finding import Edit
from windtunnel.porting.script import arguments, constant, keyword
from windtunnel.porting.subject import Subject, names_rank

_ON_ONE = re.compile("distributed|parallel", re.IGNORECASE)
"""Beside the rank in ``not args.distributed or rank == 0``."""


def is_by_one(subject: Subject, call: ast.Call) -> bool:
    """Whether a test of the rank stands around it, or around each call of the function that it stands in."""
    calls = _callers(subject, call)
    within = bool(calls) and all(_is_of_one_rank(one, to) for one, to in calls)
    return within or _is_of_one_rank(subject, call)


def is_in_a_step(subject: Subject, call: ast.Call) -> bool:
    """Whether it stands in the loop that trains, or the function that it stands in is called there."""
    return any(
        part in one.steps
        for one, to in [(subject, call), *_callers(subject, call)]
        for part in one.script.above(to)
    )


def taken_out(
    subject: Subject, call: ast.Call, is_for_all: Callable[[ast.Call], bool]
) -> tuple[Edit, ...] | None:
    """The edits after which all processes come to a call that a test of the rank in its function keeps for one; None
    where that is not sure. ``is_for_all``: whether all of them may make another call that stands beside it.
    """
    script = subject.script
    guard = next(
        (one for one in script.above(call) if isinstance(one, ast.If) and names_rank(ast.unparse(one.test))),
        None,
    )
    if guard is None or guard.orelse or script.before(guard).strip() or _is_elif(subject, guard):
        return None
    if _is_of_one_rank(subject, guard) or any(_is_of_one_rank(*to) for to in _callers(subject, call)):
        return None  # one alone comes to the test
    stays = script.statement(call) not in guard.body or not all(map(script.is_alone, guard.body[1:]))
    stays = stays or not all(_is_harmless(subject, one, is_for_all) for one in guard.body)
    if stays or _lacks_a_name(subject, guard) or "#" in script.segment(guard.test):
        return None
    terms = guard.test.values if _is_and(guard.test) else [guard.test]  # type: ignore[attr-defined]
    rest = [one for one in terms if not names_rank(ast.unparse(one))]
    if not all(_asks_for_rank_alone(one) for one in terms if one not in rest):
        return None
    if rest:
        kept = " and ".join(_as_term(script.segment(one), one, len(rest)) for one in rest)
        return (Edit(script.start(guard.test), script.end(guard.test), kept),)
    indent = script.before(guard)
    before = script.text[script.start(guard) : script.start(guard.test)]
    behind = script.text[script.end(guard.test) : script.start(guard.body[0])]
    found = re.findall(r"#[^\r\n]*", (before + behind).decode())
    comments = "".join(f"{one.rstrip()}{script.newline}{indent}" for one in found)
    return (
        Edit(script.start(guard), script.start(guard.body[0]), comments),
        *(Edit(script.lines[one.lineno - 1], script.start(one), indent) for one in guard.body[1:]),
    )


def _callers(subject: Subject, call: ast.Call) -> list[tuple[Subject, ast.Call]]:
    """The program's calls of the function that a call stands in."""
    function = subject.script.scopes(call)[0]
    return subject.calls_of(function) if isinstance(function, ast.FunctionDef) else []


def _is_of_one_rank(subject: Subject, node: ast.AST) -> bool:
    """Whether a test of the rank stands around it, or a return before it."""
    above = list(subject.script.above(node))
    tests = [one.test for one in above if isinstance(one, ast.If)]
    for block in above:
        for statement in getattr(block, "body", ()) if not isinstance(block, ast.Lambda | ast.IfExp) else ():
            leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return)
            if leaves and statement.lineno < getattr(node, "lineno", 0):
                tests.append(statement.test)
    return any(names_rank(ast.unparse(test)) for test in tests)


def _is_elif(subject: Subject, guard: ast.If) -> bool:
    return subject.script.text[subject.script.start(guard) :].startswith(b"elif")


def _is_harmless(subject: Subject, statement: ast.stmt, is_for_all: Callable[[ast.Call], bool]) -> bool:
    """Whether all processes may do what stands beside the call: make a value, or a folder that may be there."""
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    if any(subject.script.called(one) == "open" for one in calls):
        return False
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        there = keyword(statement.value, "exist_ok")
        return is_for_all(statement.value) or bool(there and constant(there.value) is True)
    return isinstance(statement, ast.Assign)


def _lacks_a_name(subject: Subject, guard: ast.If) -> bool:
    """Whether something in it has its value on one process alone."""
    used = {node.id for one in guard.body for node in ast.walk(one) if isinstance(node, ast.Name)}
    return any(
        target in used and guard not in subject.script.above(node) and _is_of_one_rank(subject, node)
        for target, node in subject.script.assigned
    )


def _is_and(test: ast.expr) -> bool:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _asks_for_rank_alone(test: ast.expr) -> bool:
    """Whether it is as ``rank == 0``, ``is_main_process()``, ``not rank`` or ``not distributed or rank in (-1, 0)``."""
    if isinstance(test, ast.BoolOp):
        return all(
            _asks_for_rank_alone(one) if names_rank(text := ast.unparse(one)) else bool(_ON_ONE.search(text))
            for one in test.values
        )
    if isinstance(test, ast.UnaryOp):
        return _asks_for_rank_alone(test.operand)
    if isinstance(test, ast.Compare):
        plain = (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Set)
        return isinstance(test.ops[0], ast.Eq | ast.In) and isinstance(test.comparators[0], plain)
    return isinstance(test, ast.Name | ast.Attribute) or (
        isinstance(test, ast.Call) and not any(isinstance(one, ast.Call) for one in arguments(test))
    )


def _as_term(text: str, node: ast.expr, count: int) -> str:
    """An expression among several that `and` joins; its own brackets are not in its text."""
    loose = isinstance(node, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) or "\n" in text
    return f"({text})" if loose and (count > 1 or "\n" in text) else text
