"""One remark on a script, and the edits that settle it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from windtunnel.porting.script import Script


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes from ``start`` to ``end`` of the script's text; equal: inserts there."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Removal:
    """Takes a whole statement out."""

    statement: ast.stmt


@dataclass(frozen=True)
class Finding:
    """What happens on Trainium, and what to do.

    Attributes:
        line: of the script, from 1.
        kind: the diagnostic that says the same of a script that runs (`device_unused`, ...); empty: it has none.
        text: the remark; empty where the edits alone say it.
        edits: what settles it; none where that is not sure.
        sure: whether it is so; else it depends on what the text does not tell, as the length of the data.
    """

    line: int
    kind: str
    text: str
    edits: tuple[Edit | Removal, ...] = ()
    sure: bool = True

    def __str__(self) -> str:
        words = ("" if self.sure else "note", self.kind, self.text)
        return f"{self.line}: {' '.join(': '.join(filter(None, words)).split())}"


def unwrapped(script: Script, call: ast.Call, given: ast.expr) -> tuple[Edit | Removal, ...]:
    """Leave one argument of a call in its place. Two edits, so that what is inside may have edits of its own; where
    ``model = model`` would be left, the statement goes.
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
    """A line behind a statement that has its lines to itself, as far in as that one; None where it has not."""
    place = script.lines[statement.end_lineno or 0]
    if not script.is_alone(statement) or not script.text[:place].endswith(b"\n"):
        return None
    return Edit(place, place, f"{script.before(statement)}{line}{script.newline}")


def _ends_no_line(text: str) -> bool:
    """Whether an expression needs no brackets around it, having its line ends inside of its own."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
