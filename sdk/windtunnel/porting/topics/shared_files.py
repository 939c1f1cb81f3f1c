"""Files that all processes of an instance make at once: folders, and data that is downloaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, with_argument
from windtunnel.porting.nodes import argument, constant, is_method, keyword
from windtunnel.porting.one_rank import is_by_one, knows_rank
from windtunnel.porting.subject import Subject

_WAITS = ("rendezvous", "barrier", "main_process_first", "local_main_process_first")
"""A function that calls one of these lets one process go before the others."""
_MAKES = ("os.mkdir", "os.makedirs")


def made_at_once(subject: Subject) -> Iterator[Finding]:
    """Findings on folders that only the first process can make, and on downloads to one place."""
    if not subject.several or not subject.uses_device or not subject.trains:
        return
    for call, name in subject.script.calls:
        folder = (name in _MAKES or is_method(call, "mkdir")) and not keyword(call, "exist_ok")
        if not folder and constant(argument(call, "download")) is not True:
            continue
        if is_for_one(subject, call):  # last, as it walks the program
            continue
        if folder:
            yield from _folder(subject, call, name)
        else:
            yield Finding(
                call.lineno,
                "each process of an instance downloads to the same files at once, and may read what another is still "
                "writing. Give the data as a channel. Or let one process download first: it calls "
                f"{subject.names.module('xm')}.rendezvous(name) after the download, the others before it.",
                sure=False,
            )


def is_for_one(subject: Subject, call: ast.Call) -> bool:
    """Whether only one process makes a call, or each has a place of its own, or nothing calls its function."""
    script = subject.script
    function = script.scope(call)
    waits = any(script.called(one) in _WAITS and script.scope(one) is function for one, _ in script.calls)
    called = not isinstance(function, ast.FunctionDef) or subject.calls_of(function)
    tried = any(
        isinstance(one, ast.Try) and any(call in ast.walk(part) for part in one.body)
        for one in script.above(call)
    )
    return (
        tried or waits or not called or knows_rank(subject.script, call) or _is_reached_by_one(subject, call)
    )


def _is_reached_by_one(subject: Subject, call: ast.Call, seen: tuple[ast.AST, ...] = ()) -> bool:
    """Whether a test of the rank stands around a call, or on each way to it."""
    function = subject.script.scope(call)
    calls = subject.calls_of(function) if function not in seen else []
    return is_by_one(subject, call) or (
        bool(calls) and all(_is_reached_by_one(one, to, (*seen, function)) for one, to in calls)
    )


def _folder(subject: Subject, call: ast.Call, name: str) -> Iterator[Finding]:
    script = subject.script
    statement = script.statement(call)
    if (
        statement is None
        or len(call.args) != (name in _MAKES)
        or not {"parents", "mode"}.issuperset(one.arg or "" for one in call.keywords)
    ):
        return
    edits = [with_argument(script, call, "exist_ok=True")]
    if name == "os.mkdir":
        edits.append(Edit(script.end(call.func) - len("mkdir"), script.end(call.func), "makedirs"))
    yield Finding(
        call.lineno,
        "each process makes this folder, and all but the first raise FileExistsError, even if the script checks "
        "before that it is not there. Pass exist_ok=True.",
        tuple(edits),
    )
