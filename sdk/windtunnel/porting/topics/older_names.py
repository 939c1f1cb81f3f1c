"""Names that torch_xla had when the script was written, and that the framework version no longer has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.names import GONE
from windtunnel.porting.nodes import is_main
from windtunnel.porting.one_rank import deciding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject


def gone(subject: Subject) -> Iterator[Finding]:
    """A finding on each name at its first use in a file, with the edits of all uses there; a note where all are
    conditional.

    None where the program asks whether the name is there, gives it to torch_xla itself, or goes on without it.
    """
    for (module, name), (last, instead) in GONE.items():
        if subject.names.has_until(last) or any(_names(one.script, name) for one in subject.program):
            continue
        uses = [
            node
            for node in subject.script.walk(ast.Attribute, ast.Name, ast.ImportFrom)
            if _is_use(subject.script, node, module, name) and not _is_asked_for(subject.script, node)
        ]
        if not uses:
            continue
        certain = [node for node in uses if not _is_chosen(subject.script, node)]
        short = f"{subject.names.module('xm') if module.endswith('xla_model') else module}.{name}"
        new = _new(subject, instead)
        yield Finding(
            (certain or uses)[0].lineno,  # type: ignore[attr-defined]
            f"PyTorch {last[0]}.{last[1] + 1} and newer have no {short}, so the script ends there. "
            + (f"Use {new}. " if new else "Nothing replaces it. ")
            + f'framework_version="{last[0]}.{last[1]}" and older have it.',
            tuple(_edits(subject, uses, new)) if new else (),
            sure=bool(certain),
        )


def _new(subject: Subject, instead: str) -> str:
    """What replaces a name, by this script's name for the module."""
    module, _, name = instead.rpartition(".")
    return f"{subject.names.module(module)}.{name}" if name else ""


def _names(script: Script, name: str) -> bool:
    """Whether a script asks for the name, as hasattr() does, or assigns to it."""
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name and isinstance(one.ctx, ast.Store))
        or (isinstance(one, ast.Constant) and one.value == name)
        for one in script.walk(ast.Attribute, ast.Constant)
    )


def _is_use(script: Script, node: ast.AST, module: str, name: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == module and any(alias.name == name for alias in node.names)
    return script.dotted(node) == f"{module}.{name}"


def _is_asked_for(script: Script, node: ast.AST) -> bool:
    """Whether the script goes on if the name is missing, or has looked in torch_xla for one that tells the version."""
    tried = any(
        isinstance(outer, ast.Try) and not all(isinstance(one.body[-1], ast.Raise) for one in outer.handlers)
        for outer in script.above(node)
    )
    return tried or any(
        isinstance(part, ast.Call)
        and script.called(part) == "hasattr"
        and part.args
        and script.dotted(part.args[0]).startswith("torch_xla")
        for test in deciding(script, node)
        for part in ast.walk(test)
    )


def _is_chosen(script: Script, node: ast.AST) -> bool:
    """Whether a use stands under a condition, as ``if args.tpu:``."""
    return any(
        isinstance(outer, ast.If | ast.IfExp | ast.BoolOp) and not is_main(outer)
        for outer in script.above(node)
    )


def _edits(subject: Subject, uses: list[ast.AST], new: str) -> Iterator[Edit]:
    """The edits of all uses; none where one needs more than a new name, as an import, or a call with arguments."""
    script, edits = subject.script, []
    for node in uses:
        outer = script.parents[node]
        given = isinstance(outer, ast.Call) and outer.func is node and (outer.args or outer.keywords)
        if not isinstance(node, ast.Attribute) or given:
            return
        edits.append(Edit(script.start(node), script.end(node), new))
    yield from edits
