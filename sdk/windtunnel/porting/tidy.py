"""What the edits of a script make needless: conditions that are true by now."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from windtunnel.porting.finding import Edit, Removal
from windtunnel.porting.script import Script, constant

_OF_THE_FUNCTION = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
"""Without it the function around would be another."""


def needless(before: Script, edited: Script) -> Sequence[Edit | Removal]:
    """The edits that take out one condition; none where none is left, or the script had such before."""
    if any(map(_is_settled, before.nodes)):
        return ()
    for node in edited.walk(ast.If, ast.IfExp):
        edits: Sequence[Edit | Removal] = ()
        if isinstance(node, ast.If) and _is_settled(node):
            edits = _of_statement(edited, node)
        elif isinstance(node, ast.IfExp) and constant(node.test) is True:
            edits = _of_expression(edited, node)
        if edits:
            return edits
    return ()


def _is_settled(node: ast.AST) -> bool:
    """Whether it is an ``if True`` or ``if not True``."""
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    return constant(test) is True


def _of_expression(script: Script, node: ast.IfExp) -> tuple[Edit, ...]:
    if any(isinstance(one, ast.JoinedStr) for one in script.above(node)):
        return ()  # of whose parts Python tells no places
    end = script.behind(script.end(node.body), script.start(node.test))
    return (Edit(end, script.end(node), ""),)


def _of_statement(script: Script, node: ast.If) -> Sequence[Edit | Removal]:
    true = constant(node.test) is True
    kept, gone = (node.body, node.orelse) if true else (node.orelse, node.body)
    if any(isinstance(part, _OF_THE_FUNCTION) for one in gone for part in ast.walk(one)):
        return ()
    if script.text[script.start(node) :].startswith(b"elif"):
        return _of_elif(script, node) if true else ()
    if not script.is_alone(node):
        return ()
    return _alone(script, node, kept) if kept else (Removal(node),)


def _of_elif(script: Script, node: ast.If) -> tuple[Edit, ...]:
    """It becomes the `else`, and nothing comes behind that."""
    end = script.behind(script.end(node.test), script.start(node.body[0]))
    return (Edit(script.start(node), end, "else"), *_rest(script, node))


def _rest(script: Script, node: ast.If) -> tuple[Edit, ...]:
    """The lines of its `else`."""
    behind, end = (script.lines[one.end_lineno or 0] for one in (node.body[-1], node))
    return (Edit(behind, end, ""),) if node.orelse else ()


def _alone(script: Script, node: ast.If, kept: list[ast.stmt]) -> Sequence[Edit]:
    """The lines that it decides on, as far in as itself."""
    first, lines = kept[0], script.lines
    if kept is node.body:
        colon = script.text.index(b":", script.behind(script.end(node.test), script.start(first)))
        start, rest = script.start(node), _rest(script, node)
    else:
        colon = script.text.rindex(b"else", 0, script.start(first))
        colon = script.text.index(b":", colon)
        start, rest = script.start(node), ()
    if lines[first.lineno - 1] < colon:  # it has no line of its own
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
    """Whether a text in it goes on over lines, which are its own."""
    text = script.text[script.start(statement) : script.end(statement)]
    return any(one in text for one in (b'"""', b"'''", b"\\\n", b"\\\r\n"))
