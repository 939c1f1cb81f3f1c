"""Makes the edits of all findings in a script's text, as a unified diff."""

from __future__ import annotations

import ast
import difflib
import io
from collections.abc import Iterable, Sequence
from functools import partial

from windtunnel.errors import SourceError
from windtunnel.porting.finding import Edit, Finding, Removal, replaced, without_lines
from windtunnel.porting.names import Names
from windtunnel.porting.nodes import brings_torch
from windtunnel.porting.script import Script
from windtunnel.porting.tidy import needless

_REPLACED = ("torch.cuda", "torch.amp")
"""Modules whose imports the edits may leave unused."""


def diff(script: Script, findings: Sequence[Finding], version: str = "2.9") -> str:
    """The sure part of the port, as a diff for `patch -p1`; empty when there is nothing to change.

    ``findings``: those on the script, as `program.read` gives them for this version of the framework.

    Raises:
        SourceError: the script is not in UTF-8, so that a diff on a terminal would not fit its bytes.
    """
    if not any(finding.edits for finding in findings):
        return ""
    if script.encoding not in ("utf-8", "ascii"):
        raise SourceError(
            f"{script.path} is in {script.encoding}: --diff needs UTF-8. Convert it, and its first line."
        )
    done = ported(script, findings, version)
    return "" if done.text == script.text else _unified(script, done)


def ported(script: Script, findings: Sequence[Finding], version: str = "2.9") -> Script:
    """The script with all sure edits made, and with the imports that they need."""
    edits = [edit for finding in findings for edit in finding.edits]
    if not edits:
        return script
    edited = Script(script.path, apply(script, edits))
    while more := needless(script, edited):
        edited = Script(script.path, apply(edited, more))
    edited = Script(script.path, _without_unused_imports(edited))
    return Script(script.path, _with_imports(script, edited, version))


def apply(script: Script, edits: Iterable[Edit | Removal]) -> bytes:
    """The script's text with the edits made."""
    removed = {edit.statement for edit in edits if isinstance(edit, Removal)}
    places = [edit for edit in edits if isinstance(edit, Edit)]
    gone = [_removal(script, statement, removed) for statement in removed]
    every = {*places, *gone}
    outer = [edit for edit in every if not any(map(partial(_is_within, edit), every))]
    text = script.text
    for edit in sorted(outer, key=lambda edit: (edit.start, edit.end, edit.text), reverse=True):
        text = text[: edit.start] + edit.text.encode() + text[edit.end :]
    return text


def _is_within(edit: Edit, other: Edit) -> bool:
    """Whether an edit lies within a larger one, which replaces it. An insertion at an end of that does not."""
    if edit.start == edit.end:
        return other.start < edit.start < other.end
    return edit != other and other.start <= edit.start and edit.end <= other.end


def _removal(script: Script, statement: ast.stmt, removed: set[ast.stmt]) -> Edit:
    """The edit that removes a statement: with its lines if it is alone there; `pass` where the block would be empty."""
    block = script.block(statement)
    if not script.is_alone(statement) or (removed.issuperset(block) and statement is block[0]):
        return replaced(script, statement, "pass")
    return without_lines(script, statement)


def _without_unused_imports(edited: Script) -> bytes:
    """The text without imports of CUDA's modules whose names are used no more."""
    used = edited.used_names()
    unused = [
        Removal(node)
        for node in edited.walk(ast.ImportFrom)
        if (node.module or "").startswith(_REPLACED)
        and not used & {alias.asname or alias.name for alias in node.names}
    ]
    return apply(edited, unused)


def _with_imports(script: Script, edited: Script, version: str) -> bytes:
    """The text with the imports that the edits need, behind the last import of torch, else behind the last import."""
    names = Names(script, version)
    imports = edited.first_imports
    torch = [node for node in imports if brings_torch(node)]
    lines = names.missing_imports(edited)
    edits = []
    if names.sampler() in edited.used_names() - edited.bound_names():
        data = [
            node.names[-1]
            for node in torch
            if isinstance(node, ast.ImportFrom) and node.module == "torch.utils.data"
        ]
        if not data:
            lines.insert(0, "from torch.utils.data import DistributedSampler")
        elif data[0].name != "*":  # a star brings it
            edits.append(Edit(edited.end(data[0]), edited.end(data[0]), ", DistributedSampler"))
    place = _place_of_imports(edited, (torch or imports)[-1:])
    edits.append(Edit(place, place, "".join(line + edited.newline for line in lines)))
    return apply(edited, edits)


def _place_of_imports(edited: Script, last: list[ast.Import | ast.ImportFrom]) -> int:
    """The offset behind the last import, or before its line if other code is on that; at the top if there is none."""
    if last:
        future = any(
            node.lineno == last[0].lineno and node.module == "__future__"
            for node in edited.tree.body
            if isinstance(node, ast.ImportFrom)
        )  # nothing may stand before this import
        line = last[0].end_lineno if future or edited.is_alone(last[0]) else last[0].lineno - 1
        return edited.lines[line or 0]
    documented = ast.get_docstring(edited.tree, clean=False) is not None
    first = edited.tree.body[documented]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    return edited.lines[min([first.lineno, *(node.lineno for node in decorators)]) - 1]


def _unified(script: Script, edited: Script) -> str:
    name = script.name.lstrip("/")
    # Lines as `patch` counts them: those of a str also end at a form feed, those of bytes at a lone "\r".
    before, after = ([*map(bytes.decode, io.BytesIO(one.text))] for one in (script, edited))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
