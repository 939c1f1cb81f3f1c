"""Names that torch_xla, or torch, had when the script was written, and that are gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, replaced
from windtunnel.porting.names import GONE
from windtunnel.porting.nodes import calls_in, names_in
from windtunnel.porting.one_rank import deciding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_SIX = "torch._six"
_STILL_IN_TORCH = ("inf", "nan")
_VERSION = re.compile("version|major|minor", re.IGNORECASE)
_OF_SIX = {
    "string_classes": "{} = (str, bytes)",
    "int_classes": "{} = int",
    "container_abcs": "import collections.abc as {}",
}
"""What replaces names of torch._six, by the name that the script gives them."""


def gone(subject: Subject) -> Iterator[Finding]:
    """A finding on each name at its first use in a file, with the edits of all uses there; a note where all are
    conditional.

    None where the program asks whether the name is there, gives it to torch_xla itself, or goes on without it.
    """
    for (module, name), (last, instead) in GONE.items():
        if subject.names.version <= last:
            continue
        uses = [
            node
            for node in subject.script.walk(ast.Attribute, ast.Name, ast.ImportFrom)
            if _is_use(subject.script, node, module, name) and not _is_asked_for(subject.script, node)
        ]
        if not uses or any(_names(one.script, name) for one in subject.program):
            continue
        certain = [node for node in uses if not subject.script.is_chosen(node, ast.BoolOp)]
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


def gone_from_torch(subject: Subject) -> Iterator[Finding]:
    """Findings on imports of torch._six, with edits where all of its names have a successor."""
    script = subject.script
    for node in script.nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        from_it = isinstance(node, ast.ImportFrom) and node.module == _SIX
        named = from_it or any(alias.name == _SIX for alias in node.names)
        if not named or script.is_tried(node) or _asks_for_version(script, node):
            continue
        lines = [
            _OF_SIX[one.name].format(one.asname or one.name) for one in node.names if one.name in _OF_SIX
        ]
        same = [one for one in node.names if one.name in _STILL_IN_TORCH]
        if same:
            lines.append(f"from torch import {', '.join(ast.unparse(one) for one in same)}")
        known = from_it and len(lines) + max(len(same) - 1, 0) == len(node.names)
        text = f"{script.newline}{' ' * node.col_offset}".join(lines)
        yield Finding(
            node.lineno,
            'PyTorch 2 has no torch._six, so the script ends here; on AWS it runs up to framework_version="1.13". Take '
            "inf and nan from torch, and (str, bytes) for string_classes.",
            (replaced(script, node, text),) if known and script.is_alone(node) else (),
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
    return script.is_tried(node) or any(
        script.called(call) == "hasattr" and call.args and script.dotted(call.args[0]).startswith("torch_xla")
        for call in calls_in(*deciding(script, node))
    )


def _asks_for_version(script: Script, node: ast.AST) -> bool:
    """Whether a test of a version stands before it, perhaps by names: such a script has newer names, too."""
    tests = [*deciding(script, node)]
    names = names_in(*tests)
    made = [value for name in names for value in script.values(name)]
    return any(_VERSION.search(ast.unparse(one)) for one in (*tests, *made))


def _edits(subject: Subject, uses: list[ast.AST], new: str) -> Iterator[Edit]:
    """The edits of all uses; none where one needs more than a new name, as an import, or a call with arguments."""
    script, edits = subject.script, []
    for node in uses:
        outer = script.parents[node]
        given = isinstance(outer, ast.Call) and outer.func is node and (outer.args or outer.keywords)
        if not isinstance(node, ast.Attribute) or given:
            return
        edits.append(replaced(script, node, new))
    yield from edits
