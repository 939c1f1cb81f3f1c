"""A Python script's text and its syntax tree."""

from __future__ import annotations

import ast
import codecs
import io
import itertools
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from windtunnel.errors import SourceError
from windtunnel.local_paths import reading

Placed = ast.expr | ast.stmt | ast.keyword | ast.alias
Loop = ast.For | ast.While
_Node = TypeVar("_Node", bound=ast.AST)
_OPENS = {"open", "io.open", "gzip.open", "bz2.open", "lzma.open"}
_PATHS = {"pathlib.Path", "Path"}
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


class Script:
    """Reads and parses at once.

    Raises:
        SourceError: the file cannot be read, or is no Python.
    """

    def __init__(self, path: Path, source: bytes | None = None) -> None:
        self.path = path
        with reading(path, SourceError):
            self.source = path.read_bytes() if source is None else source
        try:
            self.tree = ast.parse(self.source, str(path))  # bytes: the script may state its encoding
            _ = self.text  # which says whether its comments are in it, as Python does when it runs them
        except SyntaxError as error:
            raise SourceError(f"{path}, line {error.lineno}: {error.msg}. It cannot be imported.") from error
        except (ValueError, RecursionError) as error:  # null bytes, no UTF-8; nested too deeply
            raise SourceError(f"{path}: {error}. It cannot be imported.") from error
        _without_annotations(self.tree)
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @property
    def name(self) -> str:
        """Its path from here, where it lies below."""
        below = self.path.is_absolute() and self.path.is_relative_to(Path.cwd())
        return (self.path.relative_to(Path.cwd()) if below else self.path).as_posix()

    @cached_property
    def encoding(self) -> str:
        """As the script states it, else UTF-8."""
        stated = tokenize.detect_encoding(io.BytesIO(self.source).readline)[0]
        return stated.removesuffix("-sig")  # so that the mark at the start stays in the text

    @cached_property
    def text(self) -> bytes:
        """The text in UTF-8, in which `ast` counts columns."""
        return self.source.decode(self.encoding).encode()

    @cached_property
    def lines(self) -> list[int]:
        """Where each line starts, and where the text ends."""
        ends = itertools.accumulate(map(len, self.text.splitlines(keepends=True)))
        return [len(codecs.BOM_UTF8) if self.text.startswith(codecs.BOM_UTF8) else 0, *ends]

    @cached_property
    def newline(self) -> str:
        """What ends its lines."""
        return "\r\n" if b"\r\n" in self.text else "\n"

    def before(self, node: Placed) -> str:
        """What stands before it on its line."""
        return self.text[self.lines[node.lineno - 1] : self.start(node)].decode()

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether it has its lines to itself, but for a comment."""
        rest = self.text[self.end(statement) : self.lines[statement.end_lineno or 0]].strip()
        return not self.before(statement).strip() and (not rest or rest.startswith(b"#"))

    def start(self, node: Placed) -> int:
        """Offset in `text` of a node's first byte."""
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: Placed) -> int:
        """Offset in `text` behind a node's last byte."""
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: S101 - of a parsed text
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def end_of_arguments(self, call: ast.Call) -> int:
        """Offset behind a call's last argument."""
        return self.behind(max(map(self.end, arguments(call))), self.end(call) - 1)

    def behind(self, end: int, limit: int) -> int:
        """Offset behind the parentheses that are closed between an argument's end and what follows it."""
        between = re.sub(rb"#.*", lambda comment: b" " * len(comment[0]), self.text[end:limit])
        return end + between.rfind(b")") + 1

    def segment(self, node: ast.expr) -> str:
        """A node's own text."""
        return self.text[self.start(node) : self.end(node)].decode()

    # --- names ---

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for: ``{"dist": "torch.distributed", ...}``."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    found[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return found

    @cached_property
    def first_imports(self) -> list[ast.Import | ast.ImportFrom]:
        """The module's own imports that bring torch before anything is defined or looped over; else all of them."""
        begun = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With)
        head = itertools.takewhile(lambda node: not isinstance(node, begun), self.tree.body)
        first, every = (
            [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
            for nodes in (head, self.tree.body)
        )
        return first if any(map(brings_torch, first)) else every

    @cached_property
    def imported_modules(self) -> set[str]:
        """Dotted names of all modules imported anywhere, relative imports left out."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        return found

    @cached_property
    def packages(self) -> set[str]:
        """Top-level names of those modules, but of the standard library's."""
        return {name.partition(".")[0] for name in self.imported_modules} - set(sys.stdlib_module_names)

    def bound_names(self) -> set[str]:
        """Every name that the script gives to anything."""
        stored = {
            node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        given = {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        made = {node.name for node in self.nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        return stored | given | made | set(self.imports)

    def used_names(self) -> set[str]:
        """Every name that it mentions, but where it imports it."""
        return {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @cached_property
    def words(self) -> set[str]:
        """Those names, and the names of attributes and keyword arguments."""
        attributes = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        return (
            self.used_names()
            | attributes
            | {one.arg or "" for one in self.nodes if isinstance(one, ast.keyword)}
        )

    def dotted(self, node: ast.AST) -> str:
        """``torch.cuda.amp.autocast`` of ``autocast``, as imported; empty for what is no dotted name."""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return self.imports.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def called(self, call: ast.Call) -> str:
        """The last name of what is called, as imported: ``step`` of ``make().step()``."""
        attribute = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return self.dotted(call.func).rpartition(".")[2] or attribute

    # --- places ---

    @cached_property
    def _nodes(self) -> list[Placed]:
        placed = [node for node in self.parents if isinstance(node, Placed)]
        return sorted(placed, key=lambda node: (node.lineno, node.col_offset))

    def walk(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """All expressions and statements of these kinds, in the order of the text."""
        return (node for node in self._nodes if isinstance(node, kinds))

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """All calls with the dotted names of what is called."""
        return [(node, self.dotted(node.func)) for node in self.walk(ast.Call)]

    @cached_property
    def assigned(self) -> list[tuple[str, ast.Assign]]:
        """What is assigned to, as an expression, and the statement, in the order of the text."""
        return [(ast.unparse(target), node) for node in self.walk(ast.Assign) for target in node.targets]

    @cached_property
    def _given(self) -> list[tuple[str, ast.expr]]:
        """What is assigned to, or named by a `with`, as an expression, and what it is given."""
        items = [node for node in self.nodes if isinstance(node, ast.withitem)]
        named = [(ast.unparse(one.optional_vars), one.context_expr) for one in items if one.optional_vars]
        return [*((target, node.value) for target, node in self.assigned), *named]

    def values(self, name: str) -> list[ast.expr]:
        """What a name, or another expression, is given."""
        return [value for target, value in self._given if target == name]

    def contents(self, name: str) -> list[ast.expr]:
        """The same, and what its items are given: ``state["model"] = ...``."""
        return [value for target, value in self._given if target.partition("[")[0] == name]

    def opened(self, file: ast.expr) -> ast.expr | None:
        """The path of what is a file on the disk that the script has opened."""
        for made in (file, *self.values(ast.unparse(file))):
            if isinstance(made, ast.Call) and self.dotted(made.func) in _OPENS and made.args:
                return made.args[0]
            if isinstance(made, ast.Call) and is_method(made, "open"):
                path = receiver(made)
                paths = [path, *self.values(ast.unparse(path))]
                if any(self.dotted(part) in _PATHS for one in paths for part in ast.walk(one)):
                    return path
        return None

    @cached_property
    def models(self) -> list[str]:
        """What ``parameters()`` or ``named_parameters()`` is called of, in the order of the text."""
        return [
            ast.unparse(receiver(call))
            for call, _ in self.calls
            if is_method(call, "parameters", "named_parameters")
        ]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scopes(self, node: ast.AST) -> list[Scope]:
        """The functions that a node stands in, from the inside out, and the module."""
        return [one for one in self.above(node) if isinstance(one, Scope)]

    def block_that_gives(self, made: ast.stmt, name: str) -> ast.AST:
        """The block behind which a name is there: its own, or that of an `if` all whose ends give it a value."""
        block = self.parents[made]
        while isinstance(block, ast.If) and all(_gives(end, name) for end in (block.body, block.orelse)):
            block = self.parents[block]
        return block

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that is this expression and nothing else."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, ast.Expr) else None

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The script's own functions by their names, and what a class is called with by the class's."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = node
                outer = self.parents[node]
                if isinstance(outer, ast.ClassDef) and node.name == "__init__":
                    found[outer.name] = node
        return found

    # --- what kind of script it is ---

    def joins_group(self, backend: str) -> bool:
        """Whether it joins a process group of a backend, or of any backend for ``""``."""
        return any(
            name.endswith("init_process_group")
            and (not backend or any(constant(value) == backend for value in arguments(call)))
            for call, name in self.calls
        )

    def calls_any(self, *endings: str) -> bool:
        """Whether it calls something whose dotted name ends so."""
        return any(name == end or name.endswith(f".{end}") for _, name in self.calls for end in endings)


class Assign(ast.Assign):
    """``x: T = value``: an assignment like any other, with the annotation as one child more."""

    _fields = ("targets", "annotation", "value", "type_comment")
    _field_types: ClassVar[dict[str, Any]] = {
        **getattr(ast.Assign, "_field_types", {}),
        "annotation": ast.expr,
    }
    """Python 3.13 and later ask for it."""


def _without_annotations(tree: ast.Module) -> None:
    """Make such assignments of `ast.AnnAssign` with a value, which nothing here tells from those without a type."""
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            for index, one in enumerate(block if isinstance(block, list) else ()):
                if isinstance(one, ast.AnnAssign) and one.value is not None:
                    fields = {"targets": [one.target], "annotation": one.annotation, "value": one.value}
                    made = Assign(**fields, type_comment=None)  # type: ignore[arg-type]
                    block[index] = ast.copy_location(made, one)


def _gives(block: list[ast.stmt], name: str) -> bool:
    """Whether a block assigns to a name, or all ends of an `if` in it do."""
    return any(
        name in map(ast.unparse, one.targets)
        if isinstance(one, ast.Assign)
        else isinstance(one, ast.If) and _gives(one.body, name) and _gives(one.orelse, name)
        for one in block
    )


def brings_torch(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether something of the package torch is imported."""
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(name.partition(".")[0] == "torch" for name in names)


def arguments(call: ast.Call) -> list[ast.expr]:
    """Values of all arguments."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of a name."""
    return next((one for one in call.keywords if one.arg == name), None)


def constant(node: ast.AST | None) -> object:
    """The value of a literal."""
    return node.value if isinstance(node, ast.Constant) else None


def parameters(scope: ast.AST) -> list[str]:
    """Names of a function's parameters."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return []
    return [one.arg for one in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]


def handed(function: ast.FunctionDef, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """A function's parameters, and what a call gives them."""
    names = parameters(function)
    given = list(zip(names[names[:1] == ["self"] :], call.args, strict=False))
    return given + [(one.arg, one.value) for one in call.keywords if one.arg]


def branches(node: ast.expr) -> list[ast.expr]:
    """Both ends of an ``a if b else c``; another expression itself."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def default_of(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What a function's parameter is where a call gives it nothing."""
    positional = [*function.args.posonlyargs, *function.args.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = []
    pairs += zip(reversed(positional), reversed(function.args.defaults), strict=False)
    pairs += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return next((value for one, value in pairs if one.arg == name), None)


def is_method(call: ast.Call, *names: str) -> bool:
    """Whether a call is one of ``something.name(...)``, of one of these names."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in names


def receiver(call: ast.Call) -> ast.expr:
    """``model`` of ``model.to(device)``; of what is no method, what is called."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def is_main(node: ast.AST) -> bool:
    """Whether it is ``if __name__ == "__main__":``."""
    return isinstance(node, ast.If | ast.IfExp) and "__name__" in ast.unparse(node.test)


def is_call_of(script: Script, node: ast.AST, *names: str) -> bool:
    """Whether a node calls something of one of these last names."""
    return isinstance(node, ast.Call) and script.dotted(node.func).rpartition(".")[2] in names
