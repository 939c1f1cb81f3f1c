"""Tied weights, as of an embedding and a head: on XLA, `.to()` makes a new parameter in each place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.porting.classes import is_made_by, that_hold
from windtunnel.porting.finding import Finding, behind
from windtunnel.porting.nodes import receiver
from windtunnel.porting.subject import Subject


@dataclass(frozen=True)
class _Tie:
    """``self.head.weight = self.embedding.weight``, in a class, or of a model that exists."""

    subject: Subject
    made: ast.Assign
    root: str
    owner: ast.ClassDef | None
    """The class whose objects tie weights of their own; None outside of a class."""

    @property
    def names(self) -> tuple[str, str]:
        return ast.unparse(self.made.targets[0]), ast.unparse(self.made.value)


def untied(subject: Subject) -> Iterator[Finding]:
    """Findings on moves to the device of models whose weights are tied before, and not again behind it."""
    if subject.managed or not subject.uses_device:
        return
    ties = [tie for one in subject.program for tie in _ties(one)]
    for tie in ties:
        if any(one.owner is tie.owner and _is_called(one, by_self=False) for one in ties):
            continue  # by model.tie_weights(), wherever that stands
        if tie.owner and not _is_called(tie, by_self=True):
            continue
        known = that_hold(subject.program, tie.owner.name) if tie.owner else set()
        for move in subject.moves:
            its = is_made_by(subject, receiver(move), known) if tie.owner else _is_behind(subject, move, tie)
            if its and not any(_ties_again(subject, one, move) for one in ties):
                yield _remark(subject, move, tie)
                break


def _remark(subject: Subject, move: ast.Call, tie: _Tie) -> Finding:
    there = subject.line_in(tie.subject, tie.made.lineno)
    statement = subject.script.parents[move]
    model = ast.unparse(statement.targets[0] if isinstance(statement, ast.Assign) else receiver(move))
    direct = tie.owner is None or is_made_by(subject, receiver(move), {tie.owner.name})
    again = ""
    if direct and model.replace(".", "").isidentifier():
        again = " = ".join(model + name.removeprefix(tie.root) for name in tie.names)
    sure = not any(isinstance(one, ast.If) for one in tie.subject.script.above(tie.made))
    alone = again and sure and isinstance(statement, ast.Assign | ast.Expr)
    edit = behind(subject.script, statement, again) if alone else None  # type: ignore[arg-type]
    return Finding(
        move.lineno,
        f"{there} makes {' and '.join(tie.names)} one parameter, but on XLA .to() makes each a parameter of its "
        f"own again. Tie them after this line, before the optimizer is made{again and f': {again}'}.",
        (edit,) if edit else (),
        sure=sure,
        kind="untied_weights",
    )


def _ties(one: Subject) -> Iterator[_Tie]:
    for node in one.script.walk(ast.Assign):
        if len(node.targets) != 1:
            continue
        sides = (node.targets[0], node.value)
        parts = [side.value for side in sides if isinstance(side, ast.Attribute) and side.attr == "weight"]
        roots = {ast.unparse(part).partition(".")[0].partition("[")[0] for part in parts}
        whole = any(isinstance(part, ast.Name) for part in parts)  # self.weight = linear.weight
        if len(parts) == len(sides) and len(roots) == 1 and not whole:
            root = roots.pop()
            classes = (outer for outer in one.script.above(node) if isinstance(outer, ast.ClassDef))
            yield _Tie(one, node, root, next(classes, None) if root == "self" else None)


def _is_called(tie: _Tie, *, by_self: bool) -> bool:
    """Whether the object itself runs the method that ties, at its making or by `self`; if not ``by_self``, whether
    others call it.
    """
    method = tie.subject.script.scope(tie.made)
    name = getattr(method, "name", "")
    if tie.owner is None or name == "__init__":
        return by_self
    owners = [
        ast.unparse(call.func.value)
        for _, call in tie.subject.program[0].calls_by_name.get(name, ())
        if isinstance(call.func, ast.Attribute)
    ]
    return any((owner == "self") is by_self for owner in owners)


def _is_behind(subject: Subject, move: ast.Call, tie: _Tie) -> bool:
    """Whether a move is of the tied model, later in the same function."""
    its = ast.unparse(receiver(move)).partition(".")[0] == tie.root
    return its and _is_beside(subject, move, tie) and move.lineno > tie.made.lineno


def _ties_again(subject: Subject, tie: _Tie, move: ast.Call) -> bool:
    """Whether a tie is made behind the move, in the same function."""
    return _is_beside(subject, move, tie) and tie.made.lineno > move.lineno


def _is_beside(subject: Subject, move: ast.Call, tie: _Tie) -> bool:
    """Whether a move and a tie stand in one function."""
    script = subject.script
    return tie.subject is subject and script.scope(move) is script.scope(tie.made)
