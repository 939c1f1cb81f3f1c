"""The DataLoaders of a script: what makes each, and which one a loop goes over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from windtunnel.porting.nodes import handed
from windtunnel.porting.script import Loop, Script

LOADERS = ("DataLoader", "StatefulDataLoader")
"""Classes of DataLoaders: torch's, and torchdata's, which takes the same arguments."""
_BARS = ("enumerate", "iter", "tqdm", "track")
"""Calls that pass a loader's batches on, and whose result often gets a name before the loop."""


class Loaders:
    """The DataLoaders of one file."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @cached_property
    def all(self) -> dict[str, ast.Call | None]:
        """Expressions that are DataLoaders, with the call that makes each; None: made elsewhere.

        Names are not told apart by their scope: a parameter is a loader if any call passes it one.
        """
        found: dict[str, ast.Call | None] = {}
        while True:
            pairs = [
                (name, made)
                for name, made in self._loaders_by_name(found)
                if name not in found or (made and found[name] is None)
            ]
            if not pairs:
                return found
            found.update(pairs)

    def _loaders_by_name(self, found: dict[str, ast.Call | None]) -> Iterator[tuple[str, ast.Call | None]]:
        """Loaders by name, from assignments, annotations, `return` and arguments, and from those found so far."""
        given: list[tuple[str, ast.expr, str]] = []
        for node in self._script.nodes:
            if isinstance(node, ast.Assign):
                names = [*map(ast.unparse, node.targets)]
                given += taken_apart(node)
                given += [(f"{name}[]", value, "") for name in names for value in _values(node.value)]
            elif isinstance(node, ast.Return) and node.value is not None:
                made = f"{self._script.scope_name(node)}()"
                several = node.value.elts if isinstance(node.value, ast.Tuple) else []
                given.append((made, node.value, ""))
                given += [(f"{made}[{index}]", value, "") for index, value in enumerate(several)]
            elif isinstance(node, ast.arg) and node.annotation is not None:
                yield from [(node.arg, None)] if ast.unparse(node.annotation).endswith("DataLoader") else []
        given += [(name, value, "") for _, name, value in self._given]
        for name, value, index in given:
            yield from ((name, maker) for maker in self._makers(value, found, index))

    @cached_property
    def _given(self) -> list[tuple[ast.FunctionDef, str, ast.expr]]:
        """What the script's own functions are called with: the function, its parameter, the argument."""
        given: list[tuple[ast.FunctionDef, str, ast.expr]] = []
        for call, called in self._script.calls:
            if called in self._script.functions:
                function = self._script.functions[called]
                given += [(function, *pair) for pair in handed(function, call)]
        return given

    def maker(self, name: str, loop: Loop) -> ast.Call | None:
        """The call that makes the loader of a loop; for a parameter, the one that its function is called with."""
        here = self._script.scope(loop)
        own = [value for function, parameter, value in self._given if function is here and parameter == name]
        made = [call for value in own for call in self._makers(value, self.all)]
        return next(filter(None, made), None) if own else self.all.get(name)

    def _makers(
        self, node: ast.expr, found: dict[str, ast.Call | None], index: str = ""
    ) -> list[ast.Call | None]:
        """The call that makes the DataLoader that an expression is; empty if it is no DataLoader. ``index``: that of
        one part of what a call returns, as "[0]".
        """
        if self._script.is_call_of(node, *LOADERS):
            return [] if index else [node]
        name = ast.unparse(node)
        if isinstance(node, ast.Call):
            name = f"{self._script.dotted(node.func).removeprefix('self.')}(){index}"
        return [found[name]] if name in found else []

    def bar(self, loop: Loop) -> tuple[ast.stmt, ast.expr] | None:
        """The statement that names what a loop goes over, and the call in it, as in ``bar = tqdm(loader)`` and ``with
        tqdm(loader) as bar:``.
        """
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Name) or loop.iter.id in self.all:
            return None
        name, around = loop.iter.id, list(self._script.above(loop))
        made: list[tuple[ast.Assign | ast.With, ast.expr]] = []
        for target, node in self._script.assigned:
            if target == name and node.lineno < loop.lineno and self._script.parents[node] in around:
                made.append((node, node.value))
        items = [(outer, item) for outer in around if isinstance(outer, ast.With) for item in outer.items]
        for outer, item in items:
            if item.optional_vars and ast.unparse(item.optional_vars) == name:
                made.append((outer, item.context_expr))
        statement, value = max(made, key=lambda one: one[0].lineno, default=(None, None))
        if statement is None or value is None or not self._script.is_call_of(value, *_BARS):
            return None
        return statement, value

    def gone_over(self, loop: Loop) -> list[ast.AST]:
        """What a loop goes over, with all its parts; empty for a loop that takes its batches with `next`."""
        if not isinstance(loop, ast.For):
            return []
        bar = self.bar(loop)
        return list(_iterated_parts(loop.iter if bar is None else bar[1]))

    def iterated(self, loop: Loop) -> ast.expr | None:
        """The DataLoader that a loop goes over, perhaps through enumerate() or tqdm()."""
        parts = self.gone_over(loop)
        found = [
            node
            for node in parts
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in self.all
        ]
        others = ("MpDeviceLoader", "ParallelLoader", "len", "range")
        wrapped = any(self._script.is_call_of(node, *others) for node in parts)
        return found[0] if len(found) == 1 and not wrapped else None


def taken_apart(assigned: ast.Assign) -> Iterator[tuple[str, ast.expr, str]]:
    """The names that an assignment gives, with what each gets: a value, or the part of it at an index, as "[0]"."""
    value = assigned.value
    for target in assigned.targets:
        yield ast.unparse(target), value, ""
        for place, one in enumerate(target.elts if isinstance(target, ast.Tuple | ast.List) else ()):
            if isinstance(value, ast.Tuple) and len(value.elts) > place:
                yield ast.unparse(one), value.elts[place], ""
            else:
                yield ast.unparse(one), value, f"[{place}]"


def _values(node: ast.expr) -> list[ast.expr]:
    """The values of a dict that is written out. Only the first, as it stands for all loaders of ``loaders[phase]``."""
    if isinstance(node, ast.DictComp):
        return [node.value]
    return node.values[:1] if isinstance(node, ast.Dict) else []


def _iterated_parts(node: ast.AST) -> Iterator[ast.AST]:
    """An expression with all its parts, but without the length of a progress bar: `tqdm(..., total=len(loader))`."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.keyword) or part.arg != "total":
            yield from _iterated_parts(part)
