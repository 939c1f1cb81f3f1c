"""The parts of a program that never run on trn1."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import is_main, terms
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BY_NAME = {"globals", "locals", "eval", "exec", "__import__", "import_module"}
"""Functions that give what a text names, which cannot be read here; the next ones do so for a module of the program."""
_OF_A_MODULE = {"getattr", "vars"}
_XLA = re.compile(r"(?<![a-z])(xla|tpus?|neuron|trainium)(?![a-z])", re.IGNORECASE)
"""Each must be a word of its own, as in ``use_tpu``: the letters "tpu" are in "output", too."""
_RANK = re.compile("rank|ordinal", re.IGNORECASE)
_WINDOWS = re.compile(
    r"os\.name == 'nt'|(sys\.platform|platform\.system\(\)) == '(win32|darwin|Windows|Darwin)'"
)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class LeftOut:
    """The parts of a program that never run on trn1.

    These are the branches for other systems or, in a program that has torch_xla, for other devices, such as one end of
    ``if is_xla(): ... else: ...`` or of ``if torch.cuda.is_available():``; and functions and classes that nothing
    names on the way from the file that is started.

    A name stands for everything that bears it; without a dot before it, for what its own file defines, if that does.
    Taken to be reached are: everything in a program that looks things up by names which are not in its text, decorated
    functions, and what nothing in the first file names.
    """

    def __init__(self, program: Sequence[Subject]) -> None:
        scripts = [one.script for one in program]
        self._first = scripts[0]
        xla = any(one.xla for one in program)
        self._theirs = {script: _lines(script, _asks_for_linux) for script in scripts}
        of_xla = {script: _lines(script, _asks) for script in scripts} if xla else {}
        self._asks = any(of_xla.values())
        for script, lines in of_xla.items():
            self._theirs[script] |= lines | (_lines(script, _asks_for_cuda) if self._asks else set())
        self._defined = {script: _definitions(script) for script in scripts}
        self._own = {script: script.bound_names() - set(script.imports) for script in scripts}
        """Names that each script assigns itself; they do not name functions of other files."""
        self._reached: set[ast.AST] = set()
        modules = {
            one.parent.name if one.stem == "__init__" else one.stem for one in (s.path for s in scripts)
        }
        self._all = any(_takes_by_name(script, node, modules) for script in scripts for node in script.nodes)
        if self._all or (len(scripts) == 1 and not self._theirs[scripts[0]]):
            return
        pieces = list(self._first_pieces(scripts))
        for script, piece in pieces:  # grows in the loop
            self._reached.add(piece)
            found = (
                one for name in _names(piece, self._theirs[script]) for one in self._bearing(script, name)
            )
            pieces += [
                one for one in dict.fromkeys(found) if one[1] not in self._reached and one not in pieces
            ]

    def without(self, script: Script, findings: Sequence[Finding]) -> list[Finding]:
        """The findings outside of these parts. If the program asks for the device, findings on it become notes: the
        code may be for other devices.
        """
        lines = self._theirs[script].union(*self._missed(script))
        if script is not self._first:
            lines = lines.union(*(_lines_of(node) for node in script.tree.body if is_main(node)))
        return [
            replace(one, sure=False, edits=()) if self._asks and one.kind == "device_unused" else one
            for one in findings
            if one.line not in lines
        ]

    def _missed(self, script: Script) -> Iterator[range]:
        """The lines of definitions that nothing reaches."""
        if self._reached:
            for one in self._defined[script].values():
                if one not in self._reached and not one.decorator_list:
                    yield _lines_of(one)

    def _first_pieces(self, scripts: Sequence[Script]) -> Iterator[tuple[Script, ast.AST]]:
        """The code that runs when the files are imported or started, and what nothing in the first file names."""
        named = {
            name
            for script in scripts
            for node in script.tree.body
            for name in _names(node) - {getattr(node, "name", "")}
        }
        for script in scripts:
            for node in script.tree.body:
                unnamed = script is scripts[0] and getattr(node, "name", "") not in named
                runs = not isinstance(node, _Def) or bool(node.decorator_list) or unnamed
                if runs and (script is scripts[0] or not is_main(node)):
                    yield script, node

    def _bearing(self, script: Script, name: str) -> list[tuple[Script, ast.AST]]:
        if name in self._defined[script]:
            return [(script, self._defined[script][name])]
        if name in self._own[script]:
            return []
        last = script.imports.get(name, name).rpartition(".")[2]  # also of ".name"
        return [(one, names[last]) for one, names in self._defined.items() if last in names]


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or 0) + 1)


def _definitions(script: Script) -> dict[str, _Def]:
    return {node.name: node for node in script.tree.body if isinstance(node, _Def)}


def _names(piece: ast.AST, without: Collection[int] = ()) -> set[str]:
    """The names used in a piece of code, except on some lines. Attributes are also given with their dot; texts count if
    they may be names.
    """
    found: set[str] = set()
    for node in ast.walk(piece):
        if getattr(node, "lineno", None) in without:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found |= {node.attr, f".{node.attr}"}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            last = node.value.rpartition(".")[2]  # of "losses.Loss", too
            found |= {last} if last.isidentifier() else set()
    return found


def _takes_by_name(script: Script, node: ast.AST, modules: Collection[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "__dict__" and _is_module(script, node.value, modules)
    if not isinstance(node, ast.Call):
        return False
    called, given = script.called(node), [*node.args, None, None]
    if isinstance(node.func, ast.Attribute) and called != "import_module":
        return False  # such as model.eval()
    of_module = _is_module(script, given[0], modules)
    plain = called == "getattr" and isinstance(given[1], ast.Constant)
    return called in _BY_NAME or (called in _OF_A_MODULE and of_module and not plain)


def _is_module(script: Script, node: ast.expr | None, modules: Collection[str]) -> bool:
    """Whether an expression is a module of the program, also by ``sys.modules[...]``, or an attribute of one."""
    if isinstance(node, ast.Subscript):
        return script.dotted(node.value) == "sys.modules"
    return node is not None and not set(script.dotted(node).split(".")).isdisjoint(modules)


def _lines(script: Script, asks: Callable[[Script, ast.expr], bool | None]) -> set[int]:
    """The lines that a test leaves to other systems or devices. ``asks``: whether the test holds on trn1."""
    found: set[int] = set()
    for node in script.walk(ast.If):
        asked = asks(script, node.test)
        if asked is None:
            continue
        others = node.orelse if asked else node.body
        if asked and not others and isinstance(node.body[-1], _ENDS):
            block = script.block(node)
            others = block[block.index(node) + 1 :]
        found = found.union(*map(_lines_of, others))
    return found


def _asks_for_linux(_: Script, test: ast.expr) -> bool | None:
    """False for a test that never holds on Linux, as ``os.name == "nt"``; None: it asks for something else."""
    return False if _WINDOWS.fullmatch(ast.unparse(test)) else None


def _asks_for_cuda(script: Script, test: ast.expr) -> bool | None:
    """Whether a test for a GPU is true without one; None: it tests something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks_for_cuda(script, test.operand)
        return None if asked is None else not asked
    return False if "torch.cuda.is_available" in map(script.callee, terms(test)) else None


def _asks(script: Script, test: ast.expr) -> bool | None:
    """True for a test that holds only on torch_xla's device, False for one that holds only on others; None: it asks for
    something else.

    That is so of what torch_xla answers, such as its rank, and of whether the device is a "TPU": trn1 is none.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks(script, test.operand)
        return None if asked is None else not asked
    for node in ast.walk(test):
        if script.callee(node).startswith("torch_xla."):
            return None
        if isinstance(node, ast.Constant) and node.value == "TPU":
            return None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        none = isinstance(value := test.comparators[0], ast.Constant) and value.value is None
        if none and isinstance(test.ops[0], ast.Is | ast.IsNot):
            return isinstance(test.ops[0], ast.IsNot) if _names_xla(script, test.left) else None
        if not isinstance(test.ops[0], ast.Eq | ast.NotEq) or not _XLA.search(ast.unparse(test)):
            return None
        no = any(isinstance(one, ast.Constant) and one.value in (False, 0) for one in (test.left, value))
        if no and _RANK.search(ast.unparse(test)):
            return None  # asks for the first process
        return isinstance(test.ops[0], ast.Eq) is not no
    named = test.func if isinstance(test, ast.Call) else test
    return True if _names_xla(script, named) else None


def _names_xla(script: Script, node: ast.expr) -> bool:
    """Whether an expression names torch_xla's device, or a module of torch_xla, which other devices do not have."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return bool(_XLA.search(ast.unparse(node))) or script.dotted(node).startswith("torch_xla")
