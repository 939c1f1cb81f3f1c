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
from typing import Any, ClassVar, TypeGuard, TypeVar

from windtunnel.errors import SourceError
from windtunnel.local_paths import reading
from windtunnel.porting.nodes import arguments, brings_torch, constant, is_main, is_method, receiver

Placed = ast.expr | ast.stmt | ast.keyword | ast.alias
Loop = ast.For | ast.While
_Node = TypeVar("_Node", bound=ast.AST)
_OPENS = {"open", "io.open", "gzip.open", "bz2.open", "lzma.open"}
_PATHS = {"pathlib.Path", "Path"}
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


class Script:
    """Reads and parses a script when it is made.

    Raises:
        SourceError: the file cannot be read, or is no Python.
    """

    def __init__(self, path: Path, source: bytes | None = None) -> None:
        self.path = path
        with reading(path, SourceError):
            self.source = path.read_bytes() if source is None else source
        try:
            self.tree = ast.parse(self.source, str(path))  # bytes, as the script may state its encoding
            _ = self.text  # fails on comments in another encoding, as Python does when it runs the script
        except SyntaxError as error:
            raise SourceError(f"{path}, line {error.lineno}: {error.msg}. It cannot be imported.") from error
        except (ValueError, RecursionError) as error:  # null bytes, not UTF-8; nested too deeply
            raise SourceError(f"{path}: {error}. It cannot be imported.") from error
        _without_annotations(self.tree)
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @property
    def name(self) -> str:
        """Its path, relative to the current directory where it lies below that."""
        below = self.path.is_absolute() and self.path.is_relative_to(Path.cwd())
        return (self.path.relative_to(Path.cwd()) if below else self.path).as_posix()

    @cached_property
    def encoding(self) -> str:
        """The encoding that the script states, else UTF-8."""
        stated = tokenize.detect_encoding(io.BytesIO(self.source).readline)[0]
        return stated.removesuffix("-sig")  # so that the byte order mark stays in the text

    @cached_property
    def text(self) -> bytes:
        """The text as UTF-8, in which `ast` counts columns."""
        return self.source.decode(self.encoding).encode()

    @cached_property
    def lines(self) -> list[int]:
        """Offsets in `text` of the start of each line, and of the end of the text."""
        ends = itertools.accumulate(map(len, self.text.splitlines(keepends=True)))
        return [len(codecs.BOM_UTF8) if self.text.startswith(codecs.BOM_UTF8) else 0, *ends]

    @cached_property
    def newline(self) -> str:
        """What ends the lines of the script."""
        return "\r\n" if b"\r\n" in self.text else "\n"

    def before(self, node: Placed) -> str:
        """The text before a node on its line."""
        return self.text[self.lines[node.lineno - 1] : self.start(node)].decode()

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines to itself, except for a comment."""
        rest = self.text[self.end(statement) : self.lines[statement.end_lineno or 0]].strip()
        return not self.before(statement).strip() and (not rest or rest.startswith(b"#"))

    def start(self, node: Placed) -> int:
        """Offset in `text` of a node's first byte."""
        return self.lines[node.lineno - 1] + node.col_offset

    def is_elif(self, node: ast.stmt) -> bool:
        """Whether an `if` continues another one as its `elif`."""
        return self.text.startswith(b"elif", self.start(node))

    def end(self, node: Placed) -> int:
        """Offset in `text` behind a node's last byte."""
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: S101 - of a parsed text
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def behind(self, end: int, limit: int) -> int:
        """Offset behind the parentheses that close between an argument's end and what follows it."""
        between = re.sub(rb"#.*", lambda comment: b" " * len(comment[0]), self.text[end:limit])
        return end + between.rfind(b")") + 1

    def segment(self, node: ast.expr) -> str:
        """The text of a node."""
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
        """The module's own imports before its first definition or loop, if any brings torch; else all its imports."""
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
        """Top-level names of the imported modules, without the standard library's."""
        return {name.partition(".")[0] for name in self.imported_modules} - set(sys.stdlib_module_names)

    def bound_names(self) -> set[str]:
        """Every name that the script gives to something."""
        stored = {
            node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        given = {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        made = {node.name for node in self.nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        return stored | given | made | set(self.imports)

    def used_names(self) -> set[str]:
        """Every name that the script mentions, except in its imports."""
        return {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @cached_property
    def words(self) -> set[str]:
        """Every name that the script mentions, with those of attributes and keyword arguments."""
        attributes = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        return (
            self.used_names()
            | attributes
            | {one.arg or "" for one in self.nodes if isinstance(one, ast.keyword)}
        )

    def dotted(self, node: ast.AST) -> str:
        """The dotted name of an expression, as imported: ``torch.cuda.amp.autocast`` for ``autocast``; else empty."""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return self.imports.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def callee(self, node: ast.AST | None) -> str:
        """The dotted name of what a call calls, as imported; empty for another node."""
        return self.dotted(node.func) if isinstance(node, ast.Call) else ""

    def called(self, node: ast.AST | None) -> str:
        """The last name of what a call calls, as imported: ``step`` for ``make().step()``; empty for another node."""
        if not isinstance(node, ast.Call):
            return ""
        attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return self.dotted(node.func).rpartition(".")[2] or attribute

    def is_call_of(self, node: ast.AST | None, *names: str) -> TypeGuard[ast.Call]:
        """Whether a node calls something whose last name is one of these."""
        return self.callee(node).rpartition(".")[2] in names

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
        """All calls, with the dotted names of what they call."""
        return [(node, self.dotted(node.func)) for node in self.walk(ast.Call)]

    @cached_property
    def assigned(self) -> list[tuple[str, ast.Assign]]:
        """The targets of assignments, as text, with their statements, in the order of the text."""
        return [(ast.unparse(target), node) for node in self.walk(ast.Assign) for target in node.targets]

    @cached_property
    def _given(self) -> list[tuple[str, ast.expr]]:
        """The names that assignments and `with` give, as text, with their values."""
        items = [node for node in self.nodes if isinstance(node, ast.withitem)]
        named = [(ast.unparse(one.optional_vars), one.context_expr) for one in items if one.optional_vars]
        return [*((target, node.value) for target, node in self.assigned), *named]

    def values(self, name: str) -> list[ast.expr]:
        """The values that a name, or another expression, is given."""
        return [value for target, value in self._given if target == name]

    def contents(self, name: str) -> list[ast.expr]:
        """The values that a name and its items are given, as by ``state["model"] = ...``."""
        return [value for target, value in self._given if target.partition("[")[0] == name]

    def opened(self, file: ast.expr) -> ast.expr | None:
        """The path of a file that the script has opened; None for what is no such file."""
        for made in (file, *self.values(ast.unparse(file))):
            if isinstance(made, ast.Call) and self.dotted(made.func) in _OPENS and made.args:
                return made.args[0]
            if is_method(made, "open"):
                path = receiver(made)
                paths = [path, *self.values(ast.unparse(path))]
                if any(self.dotted(part) in _PATHS for one in paths for part in ast.walk(one)):
                    return path
        return None

    @cached_property
    def models(self) -> list[str]:
        """What ``parameters()`` or ``named_parameters()`` is called on, in the order of the text."""
        return [
            ast.unparse(receiver(call))
            for call, _ in self.calls
            if is_method(call, "parameters", "named_parameters")
        ]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def above_within(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node in the same function, from the inside out."""
        return itertools.takewhile(lambda one: not isinstance(one, Scope), self.above(node))

    def iterations(self, node: ast.AST) -> Iterator[ast.For | ast.comprehension]:
        """What goes over something around a node, from the inside out: `for` loops, and parts of comprehensions."""
        for outer in self.above(node):
            yield from [outer] if isinstance(outer, ast.For) else getattr(outer, "generators", ())

    def scopes(self, node: ast.AST) -> list[Scope]:
        """The functions around a node, from the inside out, and the module."""
        return [one for one in self.above(node) if isinstance(one, Scope)]

    def scope(self, node: ast.AST) -> Scope:
        """The function that a node is in; the module if it is in none."""
        return next(one for one in self.above(node) if isinstance(one, Scope))

    def scope_name(self, node: ast.AST) -> str:
        """The name of the function that a node is in; empty for the module."""
        return getattr(self.scope(node), "name", "")

    def statement_with(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression is in."""
        return next(one for one in self.above(node) if isinstance(one, ast.stmt))

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the block that a statement is in."""
        blocks = (getattr(self.parents[statement], name, []) for name in ("body", "orelse", "finalbody"))
        return next(block for block in blocks if statement in block)

    def is_chosen(self, node: ast.AST, *also: type[ast.AST]) -> bool:
        """Whether a node stands under a condition of its function, as ``if args.flash:``, other than that of
        ``__name__``. ``also``: what else counts as one.
        """
        conditions = (ast.If, ast.IfExp, *also)
        return any(isinstance(outer, conditions) and not is_main(outer) for outer in self.above_within(node))

    def is_tried(self, node: ast.AST) -> bool:
        """Whether a `try` is around a node after which the script goes on, or `contextlib.suppress`."""
        return any(map(self._goes_on, self.above(node)))

    def _goes_on(self, outer: ast.AST) -> bool:
        if isinstance(outer, ast.Try):
            return not all(isinstance(one.body[-1], ast.Raise) for one in outer.handlers)
        items = outer.items if isinstance(outer, ast.With) else []
        return any(self.callee(item.context_expr) == "contextlib.suppress" for item in items)

    def block_that_gives(self, made: ast.stmt, name: str) -> ast.AST:
        """The block where a name has a value after a statement: its own, or that of an `if` whose ends all give one."""
        block = self.parents[made]
        while isinstance(block, ast.If) and all(_gives(end, name) for end in (block.body, block.orelse)):
            block = self.parents[block]
        return block

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that consists of this expression alone; None if there is none."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, ast.Expr) else None

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The script's own functions by their names, and each class's ``__init__`` by the name of the class."""
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
        """Whether the script joins a process group of a backend, or of any backend for ``""``."""
        return any(
            name.endswith("init_process_group")
            and (not backend or any(constant(value) == backend for value in arguments(call)))
            for call, name in self.calls
        )

    def calls_any(self, *endings: str) -> bool:
        """Whether the script calls something whose dotted name ends with one of these."""
        return any(name == end or name.endswith(f".{end}") for _, name in self.calls for end in endings)


class Assign(ast.Assign):
    """``x: T = value`` as an assignment like any other, with the annotation as an additional child."""

    _fields = ("targets", "annotation", "value", "type_comment")
    _field_types: ClassVar[dict[str, Any]] = {
        **getattr(ast.Assign, "_field_types", {}),
        "annotation": ast.expr,
    }
    """Python 3.13 and later need this field."""


def _without_annotations(tree: ast.Module) -> None:
    """Replace each `ast.AnnAssign` with a value by an `Assign`, so that nothing here need tell the two apart."""
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            for index, one in enumerate(block if isinstance(block, list) else ()):
                if isinstance(one, ast.AnnAssign) and one.value is not None:
                    fields = {"targets": [one.target], "annotation": one.annotation, "value": one.value}
                    made = Assign(**fields, type_comment=None)  # type: ignore[arg-type]
                    block[index] = ast.copy_location(made, one)


def _gives(block: list[ast.stmt], name: str) -> bool:
    """Whether a block assigns to a name, or an `if` in it does at all its ends."""
    return any(
        name in map(ast.unparse, one.targets)
        if isinstance(one, ast.Assign)
        else isinstance(one, ast.If) and _gives(one.body, name) and _gives(one.orelse, name)
        for one in block
    )
