"""The forward passes of a file's modules, and the tensors of the device in them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windtunnel.porting.classes import is_made_by, that_hold
from windtunnel.porting.nodes import calls_in, constant, handed, parameters, receiver
from windtunnel.porting.passes import each_pass
from windtunnel.porting.reads import Tensors
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

LEAVES = (ast.Continue, ast.Return)
"""What follows one of these in a function that a step calls does not run in each step."""
_OF_TENSORS = {
    "view", "reshape", "permute", "transpose", "flatten", "unsqueeze", "squeeze", "detach", "contiguous", "softmax",
    "float", "long", "size", "dim", "mean", "sum",
}  # fmt: skip
"""Methods that tell a parameter to be a tensor."""


@dataclass(frozen=True)
class Forward:
    """A module's forward pass, or a function that it always calls, with its tensors and the module's buffers."""

    module: ast.ClassDef
    function: ast.FunctionDef
    tensors: Tensors
    buffers: set[str]


@functools.lru_cache(maxsize=64)
def forward_passes(subject: Subject) -> Sequence[Forward]:
    """Those of the modules of a file, in a program that trains."""
    return [*_forward_passes(subject)] if subject.trains else []


def is_trained(program: Sequence[Subject], module: ast.ClassDef) -> bool:
    """Whether a model whose parameters the program asks for surely is, or has, an object of a class."""
    known = that_hold(program, module.name)
    return any(
        is_made_by(one, receiver(call), known)
        for name in ("parameters", "named_parameters")
        for one, call in program[0].calls_by_name.get(name, ())
    )


def _forward_passes(subject: Subject) -> Iterator[Forward]:
    script = subject.script
    for module in (node for node in script.nodes if isinstance(node, ast.ClassDef)):
        methods = {one.name: one for one in module.body if isinstance(one, ast.FunctionDef)}
        buffers = {
            f"self.{constant(part.args[0])}"
            for part in calls_in(module)
            if part.args and ast.unparse(part.func) == "self.register_buffer"
        }
        is_module = any(ast.unparse(base).endswith("Module") for base in module.bases)
        if "forward" not in methods or not (buffers or is_module):
            continue
        layers = {
            target
            for target, node in script.assigned
            if script.callee(node.value).startswith("torch.nn.") and module in script.above(node)
        }
        given = {methods["forward"]: _used_as_tensors(script, methods["forward"], layers)}
        reached = [*given]
        for function in reached:  # grows in the loop
            tensors = Tensors(script, function, buffers | given[function], models=layers)
            yield Forward(module, function, tensors, buffers)
            for part in each_pass(function.body, LEAVES):
                of_self = isinstance(part, ast.Call) and ast.unparse(part.func).startswith("self.")
                known = methods if of_self else script.functions
                called = known.get(script.called(part))
                if isinstance(part, ast.Call) and called and (of_self or isinstance(part.func, ast.Name)):
                    names = {name for name, value in handed(called, part) if tensors.gave(value)}
                    given.setdefault(called, set()).update(names)
                    reached += [called] if called not in reached else []


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
