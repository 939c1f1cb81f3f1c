"""Files that every rank saves over the others'."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from windtunnel.porting.finding import Edit, Finding, replaced
from windtunnel.porting.models import is_model, makers_of
from windtunnel.porting.names import SAVE_ALONE
from windtunnel.porting.nodes import (
    argument,
    arguments,
    constant,
    is_method,
    keyword,
    names_in,
    names_rank,
    receiver,
)
from windtunnel.porting.one_rank import is_by_one, is_in_a_step, leaves_out_the_first, taken_out
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.tensors import holds_device_tensors
from windtunnel.porting.topics.model_paths import PICKLES

_XM_SAVE = "torch_xla.core.xla_model.save"
_RUNS = ("mark_step", "torch_xla.sync", "rendezvous")
"""Calls that run what is pending, so that a save behind them has nothing to run."""

_EMPTIED = "Each process that opens the file empties it: give xm.save the path."


def saves(subject: Subject) -> Iterator[Finding]:
    """Findings on `torch.save` of device tensors; where no test of the rank is around, also that every rank writes."""
    script = subject.script
    if not subject.trains or not subject.uses_device:
        return
    for call, name in script.calls:
        if name not in ("torch.save", _XM_SAVE, *PICKLES) or not call.args or _is_on_the_host(subject, call):
            continue
        one = is_by_one(subject, call)
        if name == _XM_SAVE or (one and not subject.cuda):  # the file is right where torch_xla reads it
            yield from _alone_in_a_step(subject, call) if one else _emptied(subject, call)
            continue
        what = (
            "tensors of the device"
            if one or not subject.several
            else "every rank saves tensors of the device, over the others' file"
        )
        model = ast.unparse(call.args[0])
        is_whole = _is_whole(subject, call.args[0])  # code that reads the file expects no state_dict
        saving = f"xm.save({model}.state_dict(), ...)" if is_whole else "xm.save"
        out = taken_out(subject, call, partial(_is_of_the_device, subject)) if one and not is_whole else ()
        waits = (
            one and subject.several and (subject.names.version < SAVE_ALONE or is_in_a_step(subject, call))
        )
        for_all = (
            ": let all processes call it, outside of the test of the rank" if one and (out or waits) else ""
        )
        why = "" if out or not waits else ", as one alone would wait for the others"
        other = _of_torch_alone(call)
        stays = other or (out is None and (waits or leaves_out_the_first(subject, call)))
        without = f" It takes no {other}: leave that out." if other else ""
        named = keyword(call, "f")
        path = (
            [Edit(script.start(named), script.start(named.value), "file_or_path=")]
            if named is not None
            else []
        )
        file = None if one else _file_of(subject, call)
        if file is not None:
            without += f" {_EMPTIED}"
            path, stays = [*path, _its_path(subject, file)], stays or not isinstance(file, ast.Call)
        edit = replaced(script, call.func, f"{subject.names.module('xm')}.save")
        stays = stays or is_whole or name in PICKLES
        yield Finding(
            call.lineno,
            f"{name}: {what}. {saving} moves them to the host, and only the master writes{for_all}{why}."
            f"{without}",
            (edit, *path, *(out or ())) if not stays else (),
        )


def _file_of(subject: Subject, call: ast.Call) -> ast.expr | None:
    """The open file that a call saves to."""
    given = argument(call, "f") or argument(call, "file_or_path", 1)
    return given if given is not None and subject.script.opened(given) else None


def _emptied(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """A file that all processes open for an xm.save, which empties it."""
    if subject.several and _file_of(subject, call) is not None:
        yield Finding(call.lineno, f"rank 0 alone writes here. {_EMPTIED}")


def _its_path(subject: Subject, file: ast.expr) -> Edit:
    """Replace ``open(path, "wb")`` by the path."""
    path = subject.script.opened(file)
    assert path is not None  # noqa: S101 - of an open file
    return replaced(subject.script, file, subject.script.segment(path))


def _alone_in_a_step(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """A save by one process before the step has run, unless the script ends steps by itself."""
    if subject.several and is_in_a_step(subject, call) and not subject.script.calls_any(*_RUNS):
        yield Finding(
            call.lineno,
            "one process alone saves in the loop: it runs the step, and waits for the others' exchange. Let all call "
            f"xm.save, which tests the rank itself, or end the step before it: {subject.names.end_of_step()}.",
            sure=False,
        )


def _is_of_the_device(subject: Subject, call: ast.Call) -> bool:
    """Whether a call is a `torch.save` of device tensors, as a state_dict, but of no whole model."""
    saves = subject.script.dotted(call.func) == "torch.save" and bool(call.args)
    plain = saves and not _of_torch_alone(call)
    return plain and not _is_on_the_host(subject, call) and not _is_whole(subject, call.args[0])


def _of_torch_alone(call: ast.Call) -> str:
    """An argument that xm.save does not take, as ``pickle_protocol``; empty: none."""
    given = [one.arg for one in call.keywords if one.arg not in ("f", None)]
    return given[0] or "" if given else "third argument" if len(call.args) > 2 else ""


def _is_whole(subject: Subject, saved: ast.expr) -> bool:
    """Whether what is saved is a model, and not its state."""
    return ast.unparse(saved).removesuffix(".module") in subject.script.models or _is_of_an_object(
        subject, saved
    )


def _is_of_an_object(subject: Subject, saved: ast.expr) -> bool:
    """Whether it is as ``solver.model``, where the solver's class in the program trains its ``self.model``."""
    if not isinstance(saved, ast.Attribute):
        return False
    classes = {subject.script.called(call) for call in makers_of(subject.script, ast.unparse(saved.value))}
    return any(
        f"self.{saved.attr}" in one.script.models and classes & set(one.script.functions)
        for one in subject.program
    )


def safetensors_of_the_device(subject: Subject) -> Iterator[Finding]:
    """Findings on `save_pretrained` of a model that has been trained, and is still on the device."""
    script = subject.script
    if not (subject.uses_device or subject.managed):
        return
    for call, _ in script.calls:
        if not is_method(call, "save_pretrained"):
            continue
        name = ast.unparse(receiver(call))
        other = (
            name in _at_home(script)
            or _is_loaded_since(subject, call)
            or _saves_by_itself(subject, name)
            or keyword(call, "state_dict")
            or constant(argument(call, "safe_serialization")) is False
        )
        if not other and is_model(script, receiver(call)) and _has_trained(subject, call):
            yield Finding(
                call.lineno,
                f"{name}.save_pretrained raises while the model is on the device, whose memory safetensors cannot "
                f'read. After training, call {name}.to("cpu") before it; or pass state_dict= with tensors of the '
                "host.",
            )


def _is_loaded_since(subject: Subject, call: ast.Call) -> bool:
    """Whether the saved model was read from files after the training, on the host: a base, to merge adapters into."""
    script, scope = subject.script, subject.script.scope(call)
    name = ast.unparse(receiver(call))
    given = [value for value in script.values(name) if script.scope(value) is scope]
    for value in sorted((one for one in given if one.lineno < call.lineno), key=lambda one: -one.lineno):
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return False
        if is_method(value, "from_pretrained"):
            moves = (
                one
                for one, _ in script.calls
                if is_method(one, "to", "cuda")
                if value.lineno < one.lineno < call.lineno
            )
            moved = {ast.unparse(receiver(one)) for one in moves}
            return name not in moved and subject.has_trained(value)
        if ast.unparse(value.func.value) != name:  # else as model = model.merge_and_unload()
            return False
    return False


def _saves_by_itself(subject: Subject, owner: str) -> bool:
    """Whether the saved object is of a class of the program that has a `save_pretrained` of its own."""
    classes = {subject.script.called(call) for call in makers_of(subject.script, owner)}
    return any(
        isinstance(outer := one.script.parents[method], ast.ClassDef) and outer.name in classes
        for one in subject.program
        for method in one.script.walk(ast.FunctionDef)
        if method.name == "save_pretrained"
    )


def _at_home(script: Script) -> set[str]:
    """Expressions that are moved to the host somewhere."""
    return {
        ast.unparse(receiver(call))
        for call, _ in script.calls
        if is_method(call, "cpu")
        or (is_method(call, "to") and constant(next(iter(call.args), None)) == "cpu")
    }


def _has_trained(subject: Subject, call: ast.Call) -> bool:
    """Whether something trains before a call, in its function or before a call of that with a model on the device."""
    scope = subject.script.scope(call)
    return subject.has_trained(call) or any(
        one.has_trained(to) and _at_home(one.script).isdisjoint(map(ast.unparse, arguments(to)))
        for one, to in subject.calls_of(scope)
    )


def _is_on_the_host(subject: Subject, call: ast.Call) -> bool:
    """Whether what is saved has been moved to the host, or each rank has its own file, or saves to memory."""
    if isinstance(call.args[0], ast.Starred):
        return False  # save_on_master(*args), which is made for checkpoints
    given = " ".join(ast.unparse(one) for one in call.args)
    names = {one.id for one in arguments(call) if isinstance(one, ast.Name)}
    made = " ".join(ast.unparse(value) for name in names for value in subject.script.contents(name))
    scope = subject.script.scope(call)
    made += " ".join(ast.unparse(value) for name in names for _, value in subject.passed(scope, name))
    if "BytesIO" in made:
        return True
    path = " ".join(ast.unparse(one) for one in arguments(call)[1:])
    known = "state_dict" in given + made or _is_whole(subject, call.args[0])
    if not known and (_is_of_a_sample(subject, call) or not holds_device_tensors(subject, call.args[0])):
        return True  # results, data, a list of losses
    return "cpu" in given or "cpu" in made or names_rank(path) or names_rank(made)


def _is_of_a_sample(subject: Subject, call: ast.Call) -> bool:
    """Whether a loop around a call gives the file its name: each rank may have files of its own."""
    script = subject.script
    loops = (loop for loop in subject.loops_around(call) if isinstance(loop, ast.For))
    paths = [one for path in arguments(call)[1:] for one in (path, *script.contents(ast.unparse(path)))]
    return not names_in(*(loop.target for loop in loops)).isdisjoint(names_in(*paths))
