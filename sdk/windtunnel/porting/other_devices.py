"""Parts of a program that run on other devices: beside them stands what it does on torch_xla's."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from windtunnel.porting.finding import Finding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_XLA = re.compile(r"(?<![a-z])(xla|tpus?|neuron|trainium)(?![a-z])", re.IGNORECASE)
"""A word of its own, as in ``use_tpu``: there is one in "output"."""
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class OtherDevices:
    """What of a program a test of the device leaves to others, as the end of ``if is_xla(): ... else: ...``.

    None of a program that has no torch_xla.
    """

    def __init__(self, program: Sequence[Subject]) -> None:
        self._program = program if any(one.xla for one in program) else ()
        self._lines = {one.script: _lines(one.script) for one in self._program}
        self._asks = any(self._lines.values())
        more = True
        while more:
            more = False
            for one in self._program:
                more = self._take_in(one) or more

    def without_theirs(self, script: Script, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, but for those of such parts. What a device is called elsewhere may be what is asked for: these
        are notes.
        """
        lines = self._lines.get(script, set())
        return [
            replace(one, sure=False, edits=()) if self._asks and one.kind == "device_unused" else one
            for one in findings
            if one.line not in lines
        ]

    def _take_in(self, subject: Subject) -> bool:
        """Functions that such parts alone name are such parts; whether there were more."""
        more = False
        for function in set(subject.script.functions.values()):
            calls = subject.calls_of(function)
            lines = set(range(function.lineno, (function.end_lineno or 0) + 1))
            theirs = bool(calls) and all(call.lineno in self._lines[one.script] for one, call in calls)
            if theirs and not lines <= self._lines[subject.script] and not self._is_handed_on(function.name):
                self._lines[subject.script] |= lines
                more = True
        return more

    def _is_handed_on(self, name: str) -> bool:
        """Whether other parts name a function without calling it, as xmp.spawn is given one."""
        for one in self._program:
            for node in one.script.walk(ast.Name, ast.Attribute):
                assert isinstance(node, ast.Name | ast.Attribute)  # noqa: S101 - of the walk
                named = node.id if isinstance(node, ast.Name) else node.attr
                outer = one.script.parents[node]
                called = isinstance(outer, ast.Call) and outer.func is node
                if named == name and not called and node.lineno not in self._lines[one.script]:
                    return True
        return False


def _lines(script: Script) -> set[int]:
    found: set[int] = set()
    for node in script.walk(ast.If):
        asked = _asks(script, node.test)
        if asked is None:
            continue
        others = node.orelse if asked else node.body
        if asked and not others and isinstance(node.body[-1], _ENDS):
            others = _behind(script, node)
        for one in others:
            found |= set(range(one.lineno, (one.end_lineno or 0) + 1))
    return found


def _asks(script: Script, test: ast.expr) -> bool | None:
    """Whether it holds on torch_xla's device alone, or on others alone; None: it asks for something else.

    What torch_xla answers is something else, as its rank, and whether the device is a "TPU": on trn1 it is none.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks(script, test.operand)
        return None if asked is None else not asked
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and script.dotted(node.func).startswith("torch_xla."):
            return None
        if isinstance(node, ast.Constant) and node.value == "TPU":
            return None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        none = isinstance(value := test.comparators[0], ast.Constant) and value.value is None
        if none and isinstance(test.ops[0], ast.Is | ast.IsNot):
            return isinstance(test.ops[0], ast.IsNot) if _names_xla(script, test.left) else None
        if not isinstance(test.ops[0], ast.Eq | ast.NotEq) or not _XLA.search(ast.unparse(test)):
            return None
        return isinstance(test.ops[0], ast.Eq)
    named = test.func if isinstance(test, ast.Call) else test
    return True if _names_xla(script, named) else None


def _names_xla(script: Script, node: ast.expr) -> bool:
    """Whether it is a name for torch_xla's device, or a module of torch_xla's, which others have not."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return bool(_XLA.search(ast.unparse(node))) or script.dotted(node).startswith("torch_xla")


def _behind(script: Script, node: ast.If) -> list[ast.stmt]:
    """What follows a statement in its block."""
    outer = script.parents[node]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, [])
        if node in block:
            return list(block[block.index(node) + 1 :])
    return []
