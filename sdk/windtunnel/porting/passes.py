"""What runs in every pass of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from windtunnel.porting.nodes import is_method, names_rank, terms
from windtunnel.porting.tensors import FETCHES


def each_pass(
    nodes: Iterable[ast.AST], ends: tuple[type[ast.stmt], ...] = (ast.Continue,)
) -> Iterator[ast.AST]:
    """What runs in every pass, on one rank at least; nothing behind a `continue`. A step that returns early, as there
    is too little data to learn from yet, does not count.
    """
    for node in nodes:
        yield node
        yield from each_pass(_always(node), ends)
        if isinstance(node, ast.For | ast.While):
            continue  # a `continue` in it is its own
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # and so is a `return`
        if (
            isinstance(node, ast.stmt)
            and not _skips_the_first(node)
            and any(isinstance(part, ends) for part in ast.walk(node))
        ):
            return


def _skips_the_first(statement: ast.stmt) -> bool:
    """Whether a condition only asks how far the loop has come, as ``if step < resumed: continue``: what follows runs in
    all steps except some at the start, or at the end.
    """
    if not isinstance(statement, ast.If):
        return False
    test = statement.test
    if any(_asks_how_far(one) for one in terms(test)):
        return True
    tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else []
    return bool(tests) and all(map(_asks_how_far, tests))


def _asks_how_far(test: ast.expr) -> bool:
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    ordered = isinstance(test, ast.Compare) and isinstance(test.ops[0], orders)
    return ordered and not any(isinstance(part, ast.BinOp) for part in ast.walk(test))


def _always(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of a node that run whenever it does."""
    if isinstance(node, ast.If) and names_rank(ast.unparse(node.test)) and not _varies(node.test):
        return [node.test, *node.body]
    if isinstance(node, ast.If) and _asks_for_a_tensor(node.test):
        return [node.test, *node.body]
    if isinstance(node, ast.If) and all(map(_fetches, (node.body, node.orelse))):
        return [node.test, *node.body, *node.orelse]
    if isinstance(node, ast.If | ast.IfExp):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    if isinstance(node, ast.Try):
        return [*node.body, *node.finalbody]
    if isinstance(node, ast.For):
        return [node.iter, *node.body]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return []
    return ast.iter_child_nodes(node)


def _asks_for_a_tensor(test: ast.expr) -> bool:
    """Whether it is as ``isinstance(value, torch.Tensor)``, below which only tensors are reported."""
    if not isinstance(test, ast.Call):
        return False
    named = {ast.unparse(one).rpartition(".")[2] for one in (test.func, *test.args)}
    return "is_tensor" in named or named >= {"isinstance", "Tensor"}


def _varies(test: ast.expr) -> bool:
    """Whether a test of the rank asks for something else, too, as for every tenth step."""
    return any(isinstance(node, ast.BoolOp | ast.BinOp) for node in ast.walk(test))


def _fetches(branch: list[ast.stmt]) -> bool:
    """Whether a branch of an `if` reads a value, as both do in ``if several: mean(x).item() else: x.item()``."""
    return any(is_method(part, *FETCHES) for part in each_pass(branch))
