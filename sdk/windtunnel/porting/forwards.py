"""The forward passes of a program's modules, and the tensors of the device in them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windtunnel.porting.classes import is_made_by, that_hold
from windtunnel.porting.each_step import LEAVES, functions_called
from windtunnel.porting.nodes import calls_in, constant, handed, parameters, receiver
from windtunnel.porting.passes import each_pass
from windtunnel.porting.reads import Tensors
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_OF_TENSORS = {
    "view", "reshape", "permute", "transpose", "flatten", "unsqueeze", "squeeze", "detach", "contiguous", "softmax",
    "float", "long", "size", "dim", "mean", "sum",
}  # fmt: skip
"""Methods that tell a parameter to be a tensor."""


@dataclass(frozen=True)
class Forward:
    """A module's forward pass, or a function that it always calls, with its file, its tensors, the module's buffers."""

    module: ast.ClassDef
    subject: Subject
    function: ast.FunctionDef
    tensors: Tensors
    buffers: set[str]


def forward_passes(subject: Subject) -> list[Forward]:
    """Those in a file, of a program that trains."""
    return [one for one in _all(tuple(subject.program)) if one.subject is subject] if subject.trains else []


@functools.lru_cache(maxsize=1)
def _all(program: Sequence[Subject]) -> Sequence[Forward]:
    return [one for subject in program for one in _of(subject)]


def is_trained(program: Sequence[Subject], module: ast.ClassDef) -> bool:
    """Whether a model whose parameters the program asks for surely is, or has, an object of a class."""
    known = that_hold(program, module.name)
    return any(
        is_made_by(one, receiver(call), known)
        for name in ("parameters", "named_parameters")
        for one, call in program[0].calls_by_name.get(name, ())
    )


def _of(subject: Subject) -> Iterator[Forward]:
    """The forward passes of a file's modules, and what they call."""
    script, modules = subject.script, _modules(tuple(subject.program))
    for module in (node for node in script.nodes if isinstance(node, ast.ClassDef)):
        methods = {one.name: one for one in module.body if isinstance(one, ast.FunctionDef)}
        buffers = {
            f"self.{constant(part.args[0])}"
            for part in calls_in(module)
            if part.args and ast.unparse(part.func) == "self.register_buffer"
        }
        if "forward" not in methods or not (buffers or module.name in modules):
            continue
        layers = {
            target
            for target, node in script.assigned
            if script.callee(node.value).startswith("torch.nn.") or script.called(node.value) in modules
            if module in script.above(node)
        }
        given = {methods["forward"]: _used_as_tensors(script, methods["forward"], layers)}
        reached = [(subject, methods["forward"])]
        for place in reached:  # grows in the loop
            one, function = place
            tensors = Tensors(one.script, function, buffers | given[function], models=layers)
            yield Forward(module, one, function, tensors, buffers)
            for call in (part for part in each_pass(function.body, LEAVES) if isinstance(part, ast.Call)):
                of_self = ast.unparse(call.func).startswith("self.") and one is subject
                its_own = methods.get(one.script.called(call)) if of_self else None
                called = [(one, its_own)] if its_own else functions_called(subject.program, one, call)
                for other, to in called:
                    names = {name for name, value in handed(to, call) if tensors.gave(value)}
                    if names or its_own:
                        given.setdefault(to, set()).update(names)
                        reached += [(other, to)] if (other, to) not in reached else []


@functools.lru_cache(maxsize=1)
def _modules(program: Sequence[Subject]) -> set[str]:
    """The names of the program's classes of modules."""
    classes = [node for one in program for node in one.script.nodes if isinstance(node, ast.ClassDef)]
    return {one.name for one in classes if any(ast.unparse(base).endswith("Module") for base in one.bases)}


def _used_as_tensors(script: Script, function: ast.FunctionDef, layers: set[str]) -> set[str]:
    """Parameters, and items of them, that are used as tensors: by such a method, in a layer, in torch's functional."""
    used: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            used.append(node.value)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TENSORS:
                used.append(node.func.value)
            if ast.unparse(node.func) in layers or script.callee(node).startswith("torch.nn.functional."):
                used += node.args[:1]
    names = {*parameters(function)} - {"self"}
    return {ast.unparse(one) for one in used if _root(one) in names}


def _root(node: ast.expr) -> str:
    """``x`` of ``x`` and ``x[0]["y"]``; empty for other expressions."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
