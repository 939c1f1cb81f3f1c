"""Finds the folders that a script adds to ``sys.path``."""

from __future__ import annotations

import ast
import os.path
from collections.abc import Iterator
from pathlib import Path

from windtunnel.porting.nodes import constant
from windtunnel.porting.script import Script

_ADD = ("sys.path.append", "sys.path.insert")
_AS_IT_IS = ("str", "pathlib.Path", "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath")
_SAME = ("resolve", "absolute", "as_posix")


def added(script: Script) -> Iterator[Path]:
    """The folders that a script adds to ``sys.path`` by expressions over ``__file__``; no others can be told."""
    for call, name in script.calls:
        if name in _ADD and call.args and (place := _place(script, call.args[-1], call.lineno)):
            yield place


def _place(script: Script, node: ast.expr, line: int) -> Path | None:
    """The path that an expression over ``__file__`` gives in a line; None for any other."""
    if isinstance(node, ast.Name):
        given = [value for value in script.values(node.id) if value.lineno < line]
        if node.id == "__file__":
            return script.path.resolve()
        return _place(script, given[0], given[0].lineno) if len(given) == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _joined(_place(script, node.left, line), [node.right])
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return _up(_place(script, node.value, line), 1)
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "parents"
    ):
        number = constant(node.slice)
        return (
            _up(_place(script, node.value.value, line), number + 1)
            if type(number) is int and number >= 0
            else None
        )
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME and not node.args:
        return _place(script, node.func.value, line)
    name = script.dotted(node.func)
    if not node.args or name not in (*_AS_IT_IS, "os.path.dirname", "os.path.join"):
        return None
    first = _place(script, node.args[0], line)
    return _up(first, 1) if name == "os.path.dirname" else _joined(first, node.args[1:])


def _up(path: Path | None, count: int) -> Path | None:
    return [path, *path.parents][count] if path and count <= len(path.parents) else None


def _joined(path: Path | None, parts: list[ast.expr]) -> Path | None:
    names = [constant(one) for one in parts]
    if path is None or not all(isinstance(one, str) for one in names):
        return None
    return Path(os.path.normpath(path.joinpath(*names)))  # type: ignore[arg-type]
