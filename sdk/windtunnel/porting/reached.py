"""What of a program's files the one that is started can come to, by the names that are used on the way."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from windtunnel.porting.script import Script, is_main

_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BY_NAME = {"globals", "eval", "exec", "__import__", "import_module"}
"""Give what a text names, which is not read here unless it stands there; and so do these of a module of the program."""
_OF_A_MODULE = {"getattr", "vars"}


class Reached:
    """A name stands for all that bears it, but for one of its own file. Of a program that takes things by names which
    are not in its text, and of decorated functions, all is taken to be reached.
    """

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._defined = {script: _definitions(script) for script in scripts}
        self._reached: set[ast.AST] = set()
        self._all = any(_takes_by_name(script, call) for script in scripts for call, _ in script.calls)
        if self._all or len(scripts) == 1:
            return
        pieces: list[tuple[Script, ast.AST]] = [(scripts[0], scripts[0].tree)]
        for script in scripts[1:]:
            kept = (node for node in script.tree.body if not isinstance(node, _Def) or node.decorator_list)
            pieces += [(script, node) for node in kept if not is_main(node)]
        for script, piece in pieces:  # which grows
            self._reached.add(piece)
            found = (one for name in _names(piece) for one in self._bearing(script, name))
            pieces += [
                one for one in dict.fromkeys(found) if one[1] not in self._reached and one not in pieces
            ]

    def missed(self, script: Script) -> set[int]:
        """The lines of what nothing comes to, of a file that is imported."""
        if self._all:
            return set()
        left = [
            one
            for one in self._defined[script].values()
            if one not in self._reached and not one.decorator_list
        ]
        return {line for one in left for line in range(one.lineno, (one.end_lineno or 0) + 1)}

    def _bearing(self, script: Script, name: str) -> list[tuple[Script, ast.AST]]:
        if name in self._defined[script]:
            return [(script, self._defined[script][name])]
        last = script.imports.get(name, name).rpartition(".")[2]
        return [(one, names[last]) for one, names in self._defined.items() if last in names]


def _definitions(script: Script) -> dict[str, _Def]:
    return {node.name: node for node in script.tree.body if isinstance(node, _Def)}


def _names(piece: ast.AST) -> set[str]:
    """Those that are used there, and texts, which may name something."""
    found: set[str] = set()
    for node in ast.walk(piece):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


def _takes_by_name(script: Script, call: ast.Call) -> bool:
    called, given = script.called(call), [*call.args, None, None]
    if isinstance(call.func, ast.Attribute) and called != "import_module":
        return False  # as model.eval()
    of_module = isinstance(given[0], ast.Name) and given[0].id in script.imports
    plain = called == "getattr" and isinstance(given[1], ast.Constant)
    return called in _BY_NAME or (called in _OF_A_MODULE and of_module and not plain)
