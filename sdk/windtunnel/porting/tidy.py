"""What the edits of a script make needless: conditions that are now always true, and those that decide nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from windtunnel.porting.finding import Edit, Removal, replaced, without_lines
from windtunnel.porting.nodes import constant
from windtunnel.porting.script import Script

_OF_THE_FUNCTION = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
"""Code with one of these stays: without it the function around would be another, as a generator without `yield`."""


def needless(before: Script, edited: Script) -> Sequence[Edit | Removal]:
    """Edits that take out one condition, or part of one; empty: none is left, or the script had such before."""
    for is_one, without in (
        (_is_of_parts, _of_parts),
        (_is_settled, _of_settled),
        (_decides_nothing, _of_nothing),
    ):
        if any(map(is_one, before.nodes)):
            continue
        for node in edited.walk(ast.BoolOp, ast.If, ast.IfExp):
            if is_one(node) and (edits := without(edited, node)):
                return edits
    return ()


def _is_settled(node: ast.AST) -> bool:
    """Whether a node is an ``if True`` or ``if not True``."""
    return isinstance(node, ast.If | ast.IfExp) and _truth(node.test) is not None


def _truth(node: ast.AST) -> bool | None:
    """The truth of ``True`` and ``not True``; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return False if constant(node.operand) is True else None
    return True if constant(node) is True else None


def _is_of_parts(node: ast.AST) -> bool:
    """Whether a node has a constant part, as ``x and True``."""
    return isinstance(node, ast.BoolOp) and any(_truth(one) is not None for one in node.values)


def _of_parts(script: Script, node: ast.AST) -> Sequence[Edit]:
    """Edits that remove a constant part without effect, or that write the result where the rest has no side effects."""
    assert isinstance(node, ast.BoolOp)  # noqa: S101 - of parts
    if any(isinstance(one, ast.JoinedStr) for one in script.above(node)):
        return ()
    values, neutral = node.values, isinstance(node.op, ast.And)
    index = next(index for index, one in enumerate(values) if _truth(one) is not None)
    if _truth(values[index]) is not neutral:
        text = "not True" if neutral else "True"
        whole = replaced(script, node, text)
        return (whole,) if all(map(_is_only_looked_at, values[:index])) and _is_test(script, node) else ()
    if not _is_test(script, node) and not all(map(_is_truth, (one for one in values if _truth(one) is None))):
        return ()
    if index:
        before = script.behind(script.end(values[index - 1]), script.start(values[index]))
        return (Edit(before, script.end(values[index]), ""),)
    between = script.text[script.end(values[0]) : script.start(values[1])]
    word = re.fullmatch(rb"(\s*(?:and|or)\s*)[^#]*", between)
    return (Edit(script.start(values[0]), script.end(values[0]) + word.end(1), ""),) if word else ()


def _is_test(script: Script, node: ast.expr) -> bool:
    """Whether only the truth of an expression matters."""
    outer = script.parents[node]
    if isinstance(outer, ast.BoolOp):
        return _is_test(script, outer)
    if isinstance(outer, ast.UnaryOp):
        return isinstance(outer.op, ast.Not)
    return isinstance(outer, ast.If | ast.IfExp | ast.While) and outer.test is node


def _is_truth(node: ast.expr) -> bool:
    """Whether an expression is True or False, or is a variable for that, as an option ``args.cuda``."""
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated or isinstance(node, ast.Compare | ast.Name | ast.Attribute)


def _is_only_looked_at(node: ast.AST) -> bool:
    return not any(isinstance(one, ast.Call | ast.NamedExpr | ast.Await) for one in ast.walk(node))


def _decides_nothing(node: ast.AST) -> bool:
    """Whether a node decides nothing, as ``if x: pass``."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) > 1:
        return False
    return isinstance(node.body[0], ast.Pass) and _is_only_looked_at(node.test)


def _of_nothing(script: Script, node: ast.AST) -> Sequence[Edit | Removal]:
    assert isinstance(node, ast.If)  # noqa: S101 - decides nothing
    if script.is_elif(node):
        return (without_lines(script, node),)
    return (Removal(node),) if script.is_alone(node) else ()


def _of_settled(script: Script, node: ast.AST) -> Sequence[Edit | Removal]:
    if isinstance(node, ast.If):
        return _of_statement(script, node)
    true = isinstance(node, ast.IfExp) and constant(node.test) is True
    return _of_expression(script, node) if true else ()  # type: ignore[arg-type]


def _of_expression(script: Script, node: ast.IfExp) -> tuple[Edit, ...]:
    if any(isinstance(one, ast.JoinedStr) for one in script.above(node)):
        return ()  # Python gives no positions for their parts
    end = script.behind(script.end(node.body), script.start(node.test))
    return (Edit(end, script.end(node), ""),)


def _of_statement(script: Script, node: ast.If) -> Sequence[Edit | Removal]:
    true = constant(node.test) is True
    kept, gone = (node.body, node.orelse) if true else (node.orelse, node.body)
    if any(isinstance(part, _OF_THE_FUNCTION) for one in gone for part in ast.walk(one)):
        return ()
    if script.is_elif(node):
        return _of_elif(script, node) if true else _without_elif(script, node)
    if not script.is_alone(node):
        return ()
    return _alone(script, node, kept) if kept else (Removal(node),)


def _of_elif(script: Script, node: ast.If) -> tuple[Edit, ...]:
    """The `elif` becomes the `else`, and nothing follows it."""
    end = script.behind(script.end(node.test), script.start(node.body[0]))
    return (Edit(script.start(node), end, "else"), *_rest(script, node))


def _without_elif(script: Script, node: ast.If) -> tuple[Edit, ...]:
    """What follows the `elif` takes its place."""
    end = script.lines[node.end_lineno or 0]
    if not node.orelse:
        return (Edit(script.lines[node.lineno - 1], end, ""),)
    first = script.start(node.orelse[0])
    more = script.is_elif(node.orelse[0])
    return (Edit(script.start(node), first if more else script.text.rindex(b"else", 0, first), ""),)


def _rest(script: Script, node: ast.If) -> tuple[Edit, ...]:
    """Edits that remove the `else` with its lines."""
    behind, end = (script.lines[one.end_lineno or 0] for one in (node.body[-1], node))
    return (Edit(behind, end, ""),) if node.orelse else ()


def _alone(script: Script, node: ast.If, kept: list[ast.stmt]) -> Sequence[Edit]:
    """The lines that an `if` decides on, moved out to its own indentation."""
    first, lines = kept[0], script.lines
    if kept is node.body:
        colon = script.text.index(b":", script.behind(script.end(node.test), script.start(first)))
        start, rest = script.start(node), _rest(script, node)
    else:
        colon = script.text.rindex(b"else", 0, script.start(first))
        colon = script.text.index(b":", colon)
        start, rest = script.start(node), ()
    if lines[first.lineno - 1] < colon:  # the body stands on the line of the colon
        return (Edit(start, script.start(first), ""), *rest) if kept is node.body else ()
    outer, inner = script.before(node), script.before(first)
    if not inner.startswith(outer) or inner.strip() or any(_has_lines(script, one) for one in kept):
        return ()
    number = next(index for index, place in enumerate(lines) if place > colon)  # of the first line behind it
    comment = script.text[colon + 1 : lines[number]].strip().decode()
    head = Edit(start, lines[number], comment + script.newline) if comment else None
    moved = [
        Edit(place + len(outer.encode()), place + len(inner.encode()), "")
        for place in lines[number : kept[-1].end_lineno]
        if script.text[place:].startswith(inner.encode())
    ]
    return (head or Edit(lines[node.lineno - 1], lines[number], ""), *moved, *rest)


def _has_lines(script: Script, statement: ast.stmt) -> bool:
    """Whether a text in a statement spans several lines, whose indentation must stay."""
    text = script.text[script.start(statement) : script.end(statement)]
    return any(one in text for one in (b'"""', b"'''", b"\\\n", b"\\\r\n"))
