"""Files that all processes of an instance delete or write, where only `saves` looks at models."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from windtunnel.porting.finding import Finding, also_in
from windtunnel.porting.nodes import argument, arguments, constant, is_method, keyword, names_rank
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.shared_files import is_for_one

_DELETES = ("os.remove", "os.unlink", "os.rmdir", "shutil.rmtree")
_WRITES = ("numpy.save", "numpy.savez", "numpy.savez_compressed", "numpy.savetxt")
_TEXT = re.compile("[wax]t?[+]?")
"""Modes of `open` that write text; what others write is often a model, of which `saves` tells."""
_OWN = re.compile(r"te?mp|getpid|uuid|null|stdout|stderr|hostname", re.IGNORECASE)
"""In words of paths that are each process's own, or no files."""


def deleted_at_once(subject: Subject) -> Iterator[Finding]:
    """Findings on files that each process deletes: only the first can."""
    for call, name in _calls(subject):
        path_like = is_method(call, "unlink") and not call.args and _is_path(subject, call.func)
        tolerant = constant(argument(call, "ignore_errors", 1)) is True or keyword(call, "missing_ok")
        if (name in _DELETES or path_like) and not tolerant and _is_of_all(subject, call):
            yield Finding(
                call.lineno,
                "each process of an instance deletes this, and all but the first raise FileNotFoundError, even if the "
                f"script checks before that it is there. Let one do it: {_one(subject)}",
            )


def written_at_once(subject: Subject) -> Iterator[Finding]:
    """A note on the first file other than a model that each process writes, with the lines of the others."""
    calls = [
        call
        for call, name in _calls(subject)
        if name in _WRITES or _opens(call, name) or is_method(call, "write_text", "write_bytes")
        if _is_of_all(subject, call)
    ]
    if calls:
        yield Finding(
            calls[0].lineno,
            f"each process of an instance writes to this file{also_in(calls)}: over what the others wrote, or the "
            f"same again. Read values of the device on all processes, and let one write: {_one(subject)}",
            sure=False,
        )


def _one(subject: Subject) -> str:
    return f"if {subject.names.module('xm')}.is_master_ordinal():"


def _calls(subject: Subject) -> list[tuple[ast.Call, str]]:
    here = subject.several and subject.uses_device and subject.trains and not subject.managed
    return subject.script.calls if here else []


def _opens(call: ast.Call, name: str) -> bool:
    mode = argument(call, "mode", 0 if is_method(call, "open") and name != "io.open" else 1)
    opens = name in ("open", "io.open") or is_method(call, "open")
    return opens and bool(_TEXT.fullmatch(str(constant(mode) or "")))


def _is_path(subject: Subject, function: ast.expr) -> bool:
    """Whether a method is of a pathlib.Path, by its text or what its name is given."""
    owner = function.value if isinstance(function, ast.Attribute) else function
    return any("Path" in ast.unparse(one) for one in _origins(subject, owner))


def _origins(subject: Subject, path: ast.expr) -> list[ast.AST]:
    """A path, and what the names in it are given, by assignments, loops around it and calls of its function."""
    script, scope = subject.script, subject.script.scope(path)
    found: list[ast.AST] = [path]
    for one in found:  # grows in the loop
        for name in {
            ast.unparse(part) for part in ast.walk(one) if isinstance(part, ast.Name | ast.Attribute)
        }:
            given = [*script.values(name), *(value for _, value in subject.passed(scope, name))]
            given += [
                loop.iter
                for loop in script.iterations(path)
                if name in map(ast.unparse, ast.walk(loop.target))
            ]
            found += [value for value in given if value not in found]
    return found


def _is_of_all(subject: Subject, call: ast.Call) -> bool:
    """Whether all processes make a call, with a path that may be the same for them."""
    given = [*arguments(call), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    texts = [ast.unparse(one) for value in given for one in _origins(subject, value)]
    return not any(names_rank(text) or _OWN.search(text) for text in texts) and not is_for_one(subject, call)
