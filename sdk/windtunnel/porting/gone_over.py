"""The DataLoaders that the loops of a program go over: those that train, or those that evaluate."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence

from windtunnel.porting.loaders import LOADERS, taken_apart
from windtunnel.porting.nodes import argument, calls_in, handed, parameters
from windtunnel.porting.script import Loop
from windtunnel.porting.subject import Subject

_Loops = Callable[[Subject], Sequence[Loop]]


def training(one: Subject) -> Sequence[Loop]:
    """The training loops of a file. Beside it stands `evaluations.evaluation_loops`."""
    return one.training_loops


@functools.lru_cache(maxsize=64)
def loaders_gone_over(subject: Subject, loops: _Loops) -> list[tuple[str, ast.Call, Loop | None]]:
    """Loaders that such loops of a file go over: the expression in the loop, the call that makes it, each once, and the
    loop. This is None if it takes its batches with `next`, or is in another file to whose function the loader goes.
    """
    here: dict[str, tuple[ast.Call, Loop | None]] = {}
    for loop in loops(subject):
        for node in subject.loaders.gone_over(loop):
            name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            name = f"{ast.unparse(node.value)}[]" if isinstance(node, ast.Subscript) else name
            call = subject.loaders.maker(name, loop)
            if call is not None and all(call is not other for other, _ in here.values()):
                here[name] = (call, loop)
    here |= {name: (call, None) for name, call in _taken_loaders(subject, loops) if name not in here}
    known = [call for call, _ in here.values()]
    handed_on = _names_gone_over(tuple(subject.program), loops)  # of a parameter, what it is given counts
    names = {name for one, scope, name in handed_on if one is subject and name not in parameters(scope)}
    names |= {made for one, _, name in handed_on for made in _made_by_functions(subject, one, name)}
    elsewhere = {_maker(subject, name): name for name in sorted(names)}
    return [
        *((name, call, loop) for name, (call, loop) in here.items()),
        *((name, call, None) for call, name in elsewhere.items() if call is not None and call not in known),
    ]


def _maker(subject: Subject, name: str) -> ast.Call | None:
    """The call that makes a DataLoader, which may have been passed to an MpDeviceLoader."""
    script, known = subject.script, subject.loaders.all
    if name in known:
        return known[name]
    wrapped = [value for value in script.values(name) if script.is_call_of(value, "MpDeviceLoader")]
    wrapped += [call for call, _ in script.calls if "MpDeviceLoader" in name and ast.unparse(call) == name]
    for given in (argument(call, "loader", 0) for call in wrapped):
        made = (
            given if script.is_call_of(given, *LOADERS) else known.get(ast.unparse(given)) if given else None
        )
        if made is not None:
            return made
    return None


def _made_by_functions(subject: Subject, one: Subject, name: str) -> Iterator[str]:
    """Functions of this file whose result another file gives this name, as `Loaders` writes it: ``make_loader()``."""
    for node in one.script.walk(ast.Assign) if one is not subject else ():
        for target, value, index in taken_apart(node):
            if target == name and one.script.called(value) in subject.script.functions:
                yield f"{one.script.called(value)}(){index}"


def _taken_loaders(subject: Subject, loops: _Loops) -> Iterator[tuple[str, ast.Call]]:
    """Loaders from which such loops take batches with `next`, perhaps through a function of the script that repeats
    them for ever: ``batches = cycle(DataLoader(...))``.
    """
    script = subject.script
    taken = {
        ast.unparse(call.args[0])
        for loop in loops(subject)
        for call in calls_in(loop)
        if call.args and script.is_call_of(call, "next")
        # Not of an occasional evaluation.
        if not any(isinstance(one, ast.If) and loop in script.above(one) for one in script.above(call))
    }
    for name in sorted(taken):
        for part in (part for value in script.values(name) for part in ast.walk(value)):
            known = isinstance(part, ast.Name | ast.Attribute)
            made = subject.loaders.all.get(ast.unparse(part)) if known else part
            if isinstance(made, ast.Call) and script.is_call_of(made, *LOADERS):
                yield name, made


@functools.lru_cache(maxsize=2)
def _names_gone_over(program: Sequence[Subject], loops: _Loops) -> set[tuple[Subject, ast.AST, str]]:
    """What such loops go over, and what calls pass on to that, as a file, a function, and a name in it."""
    handed_on = [
        (
            (one, one.script.scope(call), ast.unparse(value)),
            (other, other.script.functions[last], parameter),
        )
        for one in program
        for call, dotted in one.script.calls
        for last in [one.script.called(call)]  # of Trainer().fit(loader), too
        for name in [dotted or last]
        for other in _that_define(program, one, name)
        for parameter, value in handed(other.script.functions[last], call)
    ]
    found: set[tuple[Subject, ast.AST, str]] = {
        (one, one.script.scope(loop), ast.unparse(node))
        for one in program
        for loop in loops(one)
        for node in one.loaders.gone_over(loop)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    while more := {given for given, parameter in handed_on if parameter in found} - found:
        found |= more
    return found


def _that_define(program: Sequence[Subject], one: Subject, name: str) -> list[Subject]:
    """The files whose function a file calls by this dotted name; if several have one, those that the name points to."""
    *before, last = name.split(".")
    known = [other for other in program if last in other.script.functions]
    here = [other for other in known if other.script.path.stem in before or (other is one and not before)]
    return known if len(known) == 1 else here
