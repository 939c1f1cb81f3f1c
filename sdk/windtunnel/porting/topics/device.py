"""The device: CUDA's, which is not there, and torch_xla's, which no code names."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, Removal, replaced
from windtunnel.porting.gpu_tests import FUNCTIONS, QUESTIONS, asks_cuda_more, decides, is_dead, undecided
from windtunnel.porting.nodes import (
    argument,
    constant,
    default_of,
    handed,
    is_method,
    keyword,
    parameters,
    receiver,
)
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.precision import CUDA_PRECISIONS

_UNUSED = "device_unused"
_KNOWN_BASES = {"torch", "object", "abc"}
"""Packages of base classes that put nothing on a device."""
_BF16 = "torch.cuda.is_bf16_supported"
_OF_TEXTS = ("replace", "removeprefix", "split", "partition", "strip", "lstrip", "count", "find", "index")
_OPTIONS = ("add_argument", "field", "option", "Option")
"""Calls that declare an option of a command line: argparse's, those of dataclasses, click's, typer's."""


def uses_of_cuda(subject: Subject) -> Iterator[Finding]:
    """Findings on mentions of CUDA devices and on `.cuda()`, each once."""
    yield from _questions(subject)
    yield from _devices(subject)
    yield from _moves(subject)
    yield from _pinned(subject)


def unused_device(subject: Subject) -> Iterator[Finding]:
    """A finding on a script that trains, has torch_xla, and names no device of it."""
    if not subject.xla or subject.cuda or subject.managed or not subject.training_loops or not subject.whole:
        return
    if not any(map(_names_xla, subject.program)) and not _inherits(subject, subject.training_loops[0]):
        line = subject.training_loops[0].lineno
        yield Finding(
            line,
            "the loop trains on the host's CPU: nothing names torch_xla's device. Move the model to it "
            f"(model.to({subject.names.device()})), and iterate over pl.MpDeviceLoader(loader, device).",
            kind=_UNUSED,
        )


def _inherits(subject: Subject, loop: ast.AST) -> bool:
    """Whether a loop stands in a class that gets its model, and perhaps the device, from a class that was not read."""
    read = {
        node.name for one in subject.program for node in one.script.nodes if isinstance(node, ast.ClassDef)
    }
    bases = [
        subject.script.dotted(base)
        for outer in subject.script.above(loop)
        if isinstance(outer, ast.ClassDef)
        for base in outer.bases
    ]
    return any(
        base.rpartition(".")[2] not in read and base.partition(".")[0] not in _KNOWN_BASES for base in bases
    )


def _names_xla(subject: Subject) -> bool:
    named = ("xla_device", "torch_xla.device", "torch_xla.devices", "MpDeviceLoader")
    texts = (node for node in subject.script.nodes if constant(node) in ("xla", "xla:0"))
    return subject.script.calls_any(*named) or not all(_is_handled(subject, node) for node in texts)


def _questions(subject: Subject) -> Iterator[Finding]:
    """``torch.cuda.is_available()``, ``x.is_cuda`` and ``is_bf16_supported()``, where the script's way to its device,
    or its number format, depends on them.
    """
    script = subject.script
    for node in script.walk(ast.Call, ast.Attribute):
        name = script.callee(node)
        on_cuda = isinstance(node, ast.Attribute) and node.attr == "is_cuda"
        if subject.xla or not (on_cuda or name in (*QUESTIONS, _BF16)):
            continue
        above = list(itertools.takewhile(lambda one: not isinstance(one, ast.stmt), script.above(node)))
        if any(subject.is_cuda_device(one) or asks_cuda_more(subject, one) for one in above):
            continue
        for_cuda = any(isinstance(one, ast.keyword) and one.arg in CUDA_PRECISIONS for one in above)
        if name != _BF16 and for_cuda:
            continue  # True would turn on what only CUDA has
        outer = script.parents[above[-1] if above else node]
        said = f"{script.segment(node)} is False on trn1"
        edit = replaced(script, node, "True")
        if on_cuda and isinstance(node, ast.Attribute):
            if any(_moves_by(subject, one) for one in (outer, *above)):
                there = f'{script.segment(node.value)}.device.type == "xla"'
                edit = Edit(edit.start, edit.end, there)
                yield Finding(
                    node.lineno,
                    f"{said}, even for tensors on the device. Write {there}.",
                    (edit,),
                    kind=_UNUSED,
                )
        elif name == _BF16:
            text = f"{said}, although trn1 has bf16: code that depends on it uses fp16 or fp32."
            yield Finding(node.lineno, text, (edit,))
        elif isinstance(outer, ast.Assert):
            asked = [one for one in ast.walk(outer.test) if FUNCTIONS.match(script.dotted(one))]
            other = isinstance(outer.test, ast.BoolOp) and len(asked) == 1
            edits = (edit,) if other else (Removal(outer),)
            yield Finding(node.lineno, f"{said}: this raises.", edits)
        elif (isinstance(outer, ast.If) and not decides(subject, outer)) or (
            isinstance(outer, ast.Assign) and {*map(ast.unparse, outer.targets)} & undecided(subject)
        ):
            continue
        elif isinstance(outer, ast.If | ast.Assign) or any(_moves_by(subject, one) for one in above):
            text = (
                f"{said}: code that depends on it does not run, or uses the CPU. "
                f"There is a device: {subject.names.device()}."
            )
            yield Finding(node.lineno, text, (edit,), kind=_UNUSED)


def _moves_by(subject: Subject, outer: ast.AST) -> bool:
    """Whether a node is an `if` or an ``a if b else c`` that moves something to the device, or names one."""
    if not isinstance(outer, ast.If | ast.IfExp):
        return False
    body = outer.body if isinstance(outer.body, list) else [outer.body]
    return any(
        node in subject.moves or subject.is_cuda_device(node) for part in body for node in ast.walk(part)
    )


def _devices(subject: Subject) -> Iterator[Finding]:
    script = subject.script
    for node in script.walk(ast.expr):
        parent = script.parents.get(node)
        if not subject.is_cuda_device(node) or subject.is_cuda_device(parent) or is_dead(subject, node):
            continue
        word = isinstance(parent, ast.JoinedStr | ast.Expr | ast.Attribute)
        word |= is_method(parent, *_OF_TEXTS)
        if isinstance(parent, ast.keyword) and parent.arg == "map_location":
            continue  # told below
        if word or (isinstance(parent, ast.Dict) and node in parent.keys) or _is_handled(subject, node):
            continue
        if isinstance(parent, ast.arguments) and _is_always_given(subject, node, parent):
            continue
        if isinstance(parent, ast.Compare) or is_method(parent, "startswith"):
            test = script.parents[parent]
            if not subject.xla and not (isinstance(test, ast.If) and not decides(subject, test)):
                text = f"{script.segment(parent)} is False on Trainium: check what depends on it."
                there = (replaced(script, node, '"xla"'),)
                guards = isinstance(parent, ast.Compare) and _guards_a_move(subject, node, parent)
                yield Finding(node.lineno, text, there if guards else ())
            continue
        said = script.segment(node)
        device = _device_there(subject, node, parent)
        edits = (replaced(script, node, device),) if device else ()
        yield Finding(
            node.lineno,
            f"device {said} does not exist on Trainium; use torch_xla's device: {subject.names.device()}.",
            edits,
            kind=_UNUSED,
        )
    for call, name in script.calls:
        place = argument(call, "map_location")
        loads = name == "torch.load" and place and subject.is_cuda_place(place)
        if place and (loads or (subject.is_cuda_device(place) and not is_dead(subject, place))):
            edit = replaced(script, place, '"cpu"')
            said = f"map_location={script.segment(place)}"
            yield Finding(
                call.lineno,
                f'{said}: files cannot be loaded to a NeuronCore directly. Load to "cpu".',
                (edit,),
            )


def _is_always_given(subject: Subject, default: ast.expr, of: ast.arguments) -> bool:
    """Whether all calls of a function of the program pass the argument that this is the default of."""
    function = subject.script.parents[of]
    if not isinstance(function, ast.FunctionDef):
        return False
    name = _parameter(subject, default, of)
    calls = [call for _, call in subject.calls_of(function)]
    return bool(calls) and all(name in dict(handed(function, call)) for call in calls)


def _parameter(subject: Subject, default: ast.expr, of: ast.arguments) -> str:
    """The parameter that this is the default of."""
    function = subject.script.parents[of]
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)  # noqa: S101 - has parameters
    return next(name for name in parameters(function) if default_of(function, name) is default)


def _guards_a_move(subject: Subject, node: ast.expr, asked: ast.Compare) -> bool:
    """Whether it is as ``device.type == "cuda"`` before a ``.cuda()`` that is edited: left False, the model would stay
    on the host, and no finding would say so in a script that has torch_xla.
    """
    kind = asked.left if asked.left is not node else asked.comparators[0]
    if not isinstance(kind, ast.Attribute) or kind.attr != "type" or not isinstance(asked.ops[0], ast.Eq):
        return False
    test = subject.script.statement_with(node)
    return isinstance(test, ast.If) and any(
        is_method(part, "cuda") for one in test.body for part in ast.walk(one)
    )


def _is_handled(subject: Subject, node: ast.AST) -> bool:
    """Whether another topic reports on the call around a node."""
    names = ("autocast", "GradScaler", "init_process_group", "set_device", "cuda", "load", "Generator")
    for outer in subject.script.above(node):
        if isinstance(outer, ast.Call):
            return subject.script.dotted(outer.func).rpartition(".")[2] in names or is_method(outer, "cuda")
        if isinstance(outer, ast.stmt):
            return False
    return False


def _device_there(subject: Subject, node: ast.expr, parent: ast.AST | None) -> str:
    """What replaces CUDA's device in this place; empty where it may be more than a device."""
    if isinstance(parent, ast.Assign | ast.Return):
        return subject.names.device() if _is_object(subject, node) else '"xla"'  # a string stays a string
    if isinstance(parent, ast.IfExp):
        outer = subject.script.parents[parent]
        if isinstance(outer, ast.Assign | ast.Return) or subject.script.is_call_of(outer, "device"):
            return subject.device_at(node) if _is_object(subject, node) else '"xla"'
        return ""
    if isinstance(parent, ast.keyword):
        call = subject.script.parents[parent]
        is_device = (
            parent.arg == "device" and isinstance(call, ast.Call) and not is_method(call, "add_argument")
        )
        option = isinstance(call, ast.Call) and subject.script.called(call) in _OPTIONS
        if parent.arg == "default" and option and isinstance(node, ast.Constant):
            return "" if keyword(call, "choices") else '"xla"'  # type: ignore[arg-type]
        return subject.device_at(node) if is_device else ""
    if isinstance(parent, ast.arguments) and _parameter(subject, node, parent).endswith("device"):
        there = f'{subject.names.module("torch")}.device("xla")'
        return there if _is_object(subject, node) else '"xla"'
    return subject.device_at(node) if is_method(parent, "to") else ""


def _is_object(subject: Subject, node: ast.expr) -> bool:
    """Whether it is a torch.device, whose ``.type`` may be read, and not a string."""
    if isinstance(node, ast.IfExp):
        return _is_object(subject, node.body if subject.is_cuda_device(node.body) else node.orelse)
    return isinstance(node, ast.Call) and not is_method(node, "format")


def _moves(subject: Subject) -> Iterator[Finding]:
    """``x.cuda()``, and ``x.to(rank)`` or ``torch.zeros(2, device=rank)`` where the rank is a GPU's number."""
    script, numbers = subject.script, subject.gpu_numbers
    for call, _ in script.calls:
        if not isinstance(call.func, ast.Attribute):
            continue
        is_cuda = is_method(call, "cuda") and script.dotted(call.func.value) != "torch"
        number = None if is_cuda else subject.device_given(call)
        is_number = number is not None and ast.unparse(number) in numbers
        if not (is_cuda or is_number) or is_dead(subject, call):
            continue
        device = subject.device_at(call)
        if number is None:
            kept = [script.segment(one.value) for one in call.keywords if one.arg == "non_blocking"]
            given = ", ".join([device, *(f"non_blocking={value}" for value in kept)])
            edit = Edit(script.end(call.func) - len("cuda"), script.end(call), f"to({given})")
            yield Finding(
                call.lineno,
                f".cuda() does not exist on Trainium; use torch_xla's device: .to({subject.names.device()}).",
                (edit,),
                kind=_UNUSED,
            )
        else:
            yield Finding(
                call.lineno,
                f"device {script.segment(number)} is a GPU's number; use torch_xla's device: "
                f"{subject.names.device()}.",
                (replaced(script, number, device),),
                kind=_UNUSED,
            )


def _pinned(subject: Subject) -> Iterator[Finding]:
    """Pinned memory, which needs a GPU's driver. DataLoader's pin_memory=True is ignored without one."""
    script = subject.script
    for call, name in script.calls:
        asked = argument(call, "pin_memory")
        if is_method(call, "pin_memory") and not call.args:
            place = script.behind(script.end(receiver(call)), script.end(call.func))
            edit = Edit(place, script.end(call), "")
        elif asked and constant(asked) is True and name.startswith("torch.") and name.count(".") == 1:
            edit = replaced(script, asked, "False")
        else:
            continue
        if subject.uses_device and not is_dead(subject, call):
            yield Finding(call.lineno, "without a GPU's driver pinned memory raises: leave it out.", (edit,))
