"""Which expressions are objects of a class of the program, or hold one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from windtunnel.porting.nodes import parameters
from windtunnel.porting.subject import Subject


def that_hold(program: Sequence[Subject], name: str) -> set[str]:
    """The class of this name, those derived from it or with an object of it, and functions that return one."""
    known = {name}
    made = [
        (one, node)
        for one in program
        for node in one.script.nodes
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name != "__init__"
    ]
    while more := {node.name for one, node in made if node.name not in known and _holds(one, node, known)}:
        known |= more
    return known


def _holds(one: Subject, node: ast.ClassDef | ast.FunctionDef, known: set[str]) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = {one.script.dotted(base).rpartition(".")[2] for base in node.bases}
        made = (part.value for part in ast.walk(node) if isinstance(part, ast.Assign))
        return bool(bases & known) or any(is_made_by(one, value, known) for value in made)
    given = (part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None)
    return any(is_made_by(one, value, known) for value in given)


def is_made_by(one: Subject, node: ast.expr, known: set[str], seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether an expression is an object of one of these classes, or what one of these functions returns."""
    if node in seen:
        return False
    if isinstance(node, ast.Call):
        by_method = isinstance(node.func, ast.Attribute) and is_made_by(
            one, node.func.value, known, seen | {node}
        )
        return one.script.called(node) in known or by_method
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    name, scope = ast.unparse(node), one.script.scope(node) if node in one.script.parents else None
    if scope is not None and name in parameters(scope):
        given = one.passed(scope, name)
    else:
        given = [(one, value) for value in one.script.values(name)]
    return any(is_made_by(other, value, known, seen | {node}) for other, value in given)
