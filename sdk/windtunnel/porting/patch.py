"""The edits of all remarks, made in a script's text, as a unified diff."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence

from windtunnel.errors import SourceError
from windtunnel.porting.finding import Edit, Finding, Removal
from windtunnel.porting.names import Names
from windtunnel.porting.script import Script

_REPLACED = ("torch.cuda", "torch.amp")
"""Modules whose names the edits take out of use."""


def diff(script: Script, findings: Sequence[Finding], version: str = "2.9") -> str:
    """What is sure of the port, as `patch -p1` takes it; empty when there is nothing to change.

    ``findings``: on the script, as `reading.read` gives them for this version of the framework.

    Raises:
        SourceError: the script is not in UTF-8, so that a diff on a terminal would not fit its bytes.
    """
    if script.encoding not in ("utf-8", "ascii"):
        raise SourceError(
            f"{script.path} is in {script.encoding}: --diff needs UTF-8. Convert it, and its first line."
        )
    done = ported(script, findings, version)
    return "" if done.text == script.text else _unified(script, done)


def ported(script: Script, findings: Sequence[Finding], version: str = "2.9") -> Script:
    """The script with all sure edits made, and their imports."""
    edits = [edit for finding in findings for edit in finding.edits]
    if not edits:
        return script
    edited = Script(script.path, apply(script, edits))
    edited = Script(script.path, _without_unused_imports(edited))
    return Script(script.path, _with_imports(script, edited, version))


def apply(script: Script, edits: Iterable[Edit | Removal]) -> bytes:
    """The script's text with the edits made."""
    removed = {edit.statement for edit in edits if isinstance(edit, Removal)}
    places = [edit for edit in edits if isinstance(edit, Edit)]
    gone = [_removal(script, statement, removed) for statement in removed]
    inside = [edit for edit in places if not any(one.start <= edit.start < one.end for one in gone)]
    text = script.text
    for edit in sorted({*inside, *gone}, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text.encode() + text[edit.end :]
    return text


def _removal(script: Script, statement: ast.stmt, removed: set[ast.stmt]) -> Edit:
    """Its lines, where it has them to itself; `pass` where the block would be empty."""
    block = next(
        body
        for field in ("body", "orelse", "finalbody")
        if statement in (body := getattr(script.parents[statement], field, None) or [])
    )
    start, end = script.start(statement), script.end(statement)
    first, last = script.lines[statement.lineno - 1], script.lines[statement.end_lineno or 0]
    rest = script.text[end:last].strip()
    alone = not script.text[first:start].strip() and (not rest or rest.startswith(b"#"))
    if not alone or (removed.issuperset(block) and statement is block[0]):
        return Edit(start, end, "pass")
    return Edit(first, last, "")


def _without_unused_imports(edited: Script) -> bytes:
    """Without imports of CUDA's modules whose names only the script before the edits uses."""
    used = edited.used_names()
    unused = [
        Removal(node)
        for node in edited.walk(ast.ImportFrom)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(_REPLACED)
        and not used & {alias.asname or alias.name for alias in node.names}
    ]
    return apply(edited, unused)


def _with_imports(script: Script, edited: Script, version: str) -> bytes:
    """With imports of what the edits use, behind the last import of torch's, else behind the last import."""
    names = Names(script, version)
    imports = [node for node in edited.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if not imports:
        return edited.text
    torch = [node for node in imports if _module(node).partition(".")[0] == "torch"]
    place = edited.lines[(torch or imports)[-1].end_lineno or 0]
    lines = names.missing_imports(edited)
    edits = []
    if names.sampler() in edited.used_names() - edited.bound_names():
        data = [
            node for node in torch if isinstance(node, ast.ImportFrom) and node.module == "torch.utils.data"
        ]
        if data:
            end = edited.end(data[0].names[-1])
            edits.append(Edit(end, end, ", DistributedSampler"))
        else:
            lines.insert(0, "from torch.utils.data import DistributedSampler")
    edits.append(Edit(place, place, "".join(line + edited.newline for line in lines)))
    return apply(edited, edits)


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name


def _unified(script: Script, edited: Script) -> str:
    name = script.name.lstrip("/")
    before, after = (one.text.decode().splitlines(keepends=True) for one in (script, edited))
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
