"""One finding on a script, and the edits that settle it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.porting.nodes import arguments
from windtunnel.porting.script import Placed, Script


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes from ``start`` to ``end`` of the script's text; where both are equal, inserts there."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Removal:
    """Removes a whole statement."""

    statement: ast.stmt


@dataclass(frozen=True)
class Finding:
    """What happens on Trainium, and what to do.

    Attributes:
        line: the line of the script, from 1.
        text: the remark; empty where the edits alone say it.
        edits: what settles the finding; empty where that is not sure.
        kind: the diagnostic that says the same of a script that runs (`device_unused`, ...); empty: there is none.
        sure: False where it depends on what the text does not tell, such as the length of the data.
    """

    line: int
    text: str
    edits: tuple[Edit | Removal, ...] = ()
    kind: str = ""
    sure: bool = True

    def __str__(self) -> str:
        words = ("" if self.sure else "note", self.kind, self.text)
        return f"{self.line}: {' '.join(': '.join(filter(None, words)).split())}"


def also_in(nodes: Sequence[ast.expr]) -> str:
    """`` (also in lines 4, 5)``, of the nodes on other lines than the first; empty where there are none."""
    _, *more = dict.fromkeys(str(one.lineno) for one in nodes)
    return f" (also in line{'s' * (len(more) > 1)} {', '.join(more)})" if more else ""


def replaced(script: Script, node: Placed, text: str) -> Edit:
    """Replace a node."""
    return Edit(script.start(node), script.end(node), text)


def without_lines(script: Script, node: Placed) -> Edit:
    """Remove a node with its lines."""
    return Edit(script.lines[node.lineno - 1], script.lines[node.end_lineno or 0], "")


def unwrapped(script: Script, call: ast.Call, given: ast.expr) -> tuple[Edit | Removal, ...]:
    """Edits that leave one argument in the place of its call.

    They are two, so that the argument may have edits of its own; where ``model = model`` would be left, the statement
    is removed.
    """
    outer = script.parents[call]
    if isinstance(outer, ast.Assign) and [*map(ast.unparse, outer.targets)] == [ast.unparse(given)]:
        return (Removal(outer),)
    simple = isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    left, right = ("", "") if simple and _ends_no_line(script.segment(given)) else ("(", ")")
    return (
        Edit(script.start(call), script.start(given), left),
        Edit(script.end(given), script.end(call), right),
    )


def behind(script: Script, statement: ast.stmt, line: str) -> Edit | None:
    """Insert a line behind a statement, with its indentation; None where other code stands on the statement's lines."""
    place = script.lines[statement.end_lineno or 0]
    if not script.is_alone(statement) or not script.text[:place].endswith(b"\n"):
        return None
    return Edit(place, place, f"{script.before(statement)}{line}{script.newline}")


def before(script: Script, statement: ast.stmt, *lines: str) -> Edit:
    """Insert lines before a statement, with its indentation."""
    place, indent = script.start(statement), script.before(statement)
    end = "; " if indent.strip() else f"{script.newline}{indent}"
    return Edit(place, place, "".join(f"{line}{end}" for line in lines))


def with_argument(script: Script, call: ast.Call, text: str) -> Edit:
    """Give a call one more argument, behind the others."""
    given = arguments(call)
    end = script.end(call) - 1
    place = script.behind(max(map(script.end, given)), end) if given else end
    return Edit(place, place, f", {text}" if given else text)


def without_argument(script: Script, call: ast.Call, given: ast.keyword) -> Edit:
    """Remove a keyword argument, with its comma."""
    earlier = [end for end in map(script.end, arguments(call)) if end <= script.start(given)]
    if earlier:
        return Edit(script.behind(max(earlier), script.start(given)), script.end(given), "")
    after = [one for one in call.keywords if script.start(one) > script.start(given)]
    return Edit(script.start(given), script.start(after[0]) if after else script.end(call) - 1, "")


def _ends_no_line(text: str) -> bool:
    """Whether an expression is valid without brackets around it: its line breaks are inside brackets of its own."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
