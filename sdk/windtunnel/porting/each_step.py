"""What runs in each step on the device: loops, and functions that these hand tensors of the device."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from windtunnel.porting.evaluations import evaluated_models, evaluation_loops
from windtunnel.porting.loaders import taken_apart
from windtunnel.porting.nodes import calls_in, handed, is_method, parameters, receiver
from windtunnel.porting.passes import each_pass
from windtunnel.porting.reads import Tensors
from windtunnel.porting.script import Loop
from windtunnel.porting.subject import Subject

_OF_A_DEVICE = {
    "device", "cuda", "to", "autocast", "mpdeviceloader", "parallelloader", "per_device_loader", "optimizer_step",
    "reduce_gradients", "mark_step", "accelerator",
}  # fmt: skip


LEAVES = (ast.Continue, ast.Return)
"""What follows one of these in a function that a step calls does not run in each step."""


@functools.lru_cache(maxsize=64)
def steps_on_the_device(subject: Subject) -> Sequence[tuple[Loop | ast.FunctionDef, Tensors]]:
    """The steps of a file with their tensors, without steps that run on the host for reference."""
    returning, found = _returning(subject), list[tuple[Loop | ast.FunctionDef, Tensors]]()
    around = [loop for step in subject.steps for loop in _loops_that_step(subject, step)]
    for step in dict.fromkeys([*subject.steps, *around]):
        within = subject.script.scope(step) if isinstance(step, Loop) else step
        callers = [
            (one, one.script.scope(call)) for one, call in subject.calls_of(within) if one is not subject
        ]
        if any(is_of_a_device(*place) for place in [(subject, within), *callers]):
            found.append((step, Tensors(subject.script, step, steps=returning, models=_moved(subject))))
    return found


def _loops_that_step(subject: Subject, inner: ast.AST) -> Iterator[Loop]:
    """The loop around one that accumulates gradients, if the optimizer steps there."""
    for loop in subject.loops_around(inner)[:1]:
        within = {*ast.walk(inner)}
        for call in calls_in(loop):
            owner = ast.unparse(receiver(call)) if is_method(call, "step") else ""
            steps = owner in subject.optimizers or subject.script.is_call_of(call, "optimizer_step")
            if steps and call not in within:
                yield loop


@functools.lru_cache(maxsize=1)
def handed_over(
    program: Sequence[Subject],
) -> dict[tuple[Subject, ast.FunctionDef], tuple[set[str], Subject, ast.Call]]:
    """The program's functions that get tensors of the device in each step: the parameters, and the first such call."""
    found: dict[tuple[Subject, ast.FunctionDef], tuple[set[str], Subject, ast.Call]] = {}
    steps = [(one, *step) for one in program for step in steps_on_the_device(one)]
    run = [(one, each_pass(step.body), tensors) for one, step, tensors in steps]
    while run:
        new: list[tuple[Subject, ast.FunctionDef]] = []
        for one, nodes, tensors in run:
            for call in (node for node in nodes if isinstance(node, ast.Call)):
                for other, function in functions_called(program, one, call):
                    given = {
                        name
                        for name, value in handed(function, call)
                        if tensors.gave(value) or is_method(value, "parameters")
                    }
                    names, where, first = found.get((other, function), (set[str](), one, call))
                    if given:
                        new += [(other, function)] if (other, function) not in found else []
                        found[other, function] = (names | given, where, first)
        run = [
            (one, each_pass(function.body, LEAVES), Tensors(one.script, function, found[one, function][0]))
            for one, function in new
        ]
    return found


def functions_called(
    program: Sequence[Subject], one: Subject, call: ast.Call
) -> Iterator[tuple[Subject, ast.FunctionDef]]:
    """The program's function that a call surely is of: among several of this name the file's own; a method only of the
    same class, or of an object that the file makes of its class.
    """
    name = one.script.called(call)
    known = [other for other in program if name in other.script.functions]
    for other in known if len(known) == 1 else [other for other in known if other is one]:
        function = other.script.functions[name]
        owner = other.script.parents[function]
        if isinstance(owner, ast.ClassDef):
            of = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            its_own = of == "self" and owner in one.script.above(call)
            if not its_own and not any(
                one.script.is_call_of(value, owner.name) for value in one.script.values(of)
            ):
                continue
        if any(to is call for _, to in other.calls_of(function)):
            yield other, function


def _returning(subject: Subject) -> set[str]:
    """The names of functions of the file that compute gradients, and return only values on the device."""
    found = set()
    for function in subject.steps:
        if isinstance(function, Loop) or not is_of_a_device(subject, function):
            continue
        tensors = Tensors(subject.script, function)
        given = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        values = [part for one in given for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
        if values and all(value is not None and tensors.gave(value) for value in values):
            found |= {function.name, f"self.{function.name}"}
    return found


def is_of_a_device(subject: Subject, function: ast.AST) -> bool:
    """Whether a function, or the module, mentions a device, or calls a model that was moved to one outside of it."""
    called = {ast.unparse(call.func) for call in calls_in(function)}
    given = called.intersection(parameters(function))
    return (
        any(
            isinstance(node, ast.Name | ast.Attribute | ast.arg)
            and ast.unparse(node).rpartition(".")[2].lower() in _OF_A_DEVICE
            for node in ast.walk(function)
        )
        or not _moved(subject).isdisjoint(called - given)
        or any(
            ast.unparse(value) in _moved(one)
            for name in given
            for one, value in subject.passed(function, name)
        )
    )


def evaluations_on_the_device(subject: Subject) -> Iterator[tuple[ast.For, Tensors]]:
    """The loops of a file that evaluate a model, with their tensors: what the model gives, and what each loop moves."""
    for loop in evaluation_loops(subject):
        if is_of_a_device(subject, subject.script.scope(loop)):
            models = evaluated_models(subject.script)
            yield loop, Tensors(subject.script, loop, models={*models, *_moved(subject, loop)})


@functools.lru_cache(maxsize=64)
def _moved(one: Subject, loop: Loop | None = None) -> set[str]:
    """What a file, or one loop of it, moves to the device, by the names that it has there."""
    moves = {move for move in one.moves if loop is None or loop in one.script.above(move)}
    made = set[str]()
    for node in one.script.walk(ast.Assign):
        for name, value, _ in taken_apart(node):
            given: ast.AST = value
            if isinstance(value, ast.ListComp | ast.GeneratorExp):
                given = value.elt
            elif isinstance(value, ast.DictComp):
                given = value.value
            made |= {name} if given in moves else set()
    if loop is not None:
        return made  # x of `model(x.to(device))` stays on the host
    owners = map(receiver, moves)
    return made | {ast.unparse(owner) for owner in owners if isinstance(owner, ast.Name | ast.Attribute)}
