"""Which values surely are, or hold, tensors on the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.nodes import calls_in, constant, is_method, receiver
from windtunnel.porting.subject import Subject

FETCHES = {"item", "tolist", "cpu", "numpy"}
"""Methods of a tensor that bring its value to the host."""
_WEIGHTS = {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"}
_COPIES = {"list", "dict", "tuple", "OrderedDict"}


def holds_device_tensors(subject: Subject, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a value is or holds a tensor on the device: a model's output or weight, or what is moved there."""
    if node in seen:
        return False
    seen |= {node}
    script = subject.script
    if isinstance(node, ast.Name):
        values = list(_values(subject, node))
        if any(_is_fetched(value) for _, value in values):
            return False
        trained = any(
            is_method(call, "backward") and ast.unparse(receiver(call)) == node.id for call, _ in script.calls
        )
        return trained or any(holds_device_tensors(one, value, seen) for one, value in values)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Dict):
        parts = node.values
    elif isinstance(node, ast.List | ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.ListComp | ast.DictComp):
        made = node.elt if isinstance(node, ast.ListComp) else node.value
        parts = [] if _is_fetched(made) else [one.iter for one in node.generators]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Subscript):
        parts = [node.value]
    elif isinstance(node, ast.Attribute) and node.attr in ("weight", "bias"):
        return any(ast.unparse(node).startswith(f"{model}.") for model in script.models)
    elif isinstance(node, ast.Attribute):
        return any(holds_device_tensors(one, value, seen) for one, value in _of_its_class(subject, node))
    elif isinstance(node, ast.Call) and not _is_fetched(node):
        if node in subject.moves or ast.unparse(node.func) in script.models:
            return True
        name = script.dotted(node.func)
        if name in _COPIES or name.startswith("torch."):
            parts = [*node.args, *(one.value for one in node.keywords if name in _COPIES)]
        elif isinstance(node.func, ast.Attribute):
            of_a_model = node.func.attr in _WEIGHTS and ast.unparse(node.func.value) in script.models
            if of_a_model or node.func.attr == "state_dict":
                return True
            parts = [node.func.value]
    return any(holds_device_tensors(subject, part, seen) for part in parts)


def _values(subject: Subject, name: ast.Name) -> Iterator[tuple[Subject, ast.expr]]:
    """The values that a name holds there: assigned to it, appended to the list, or passed by calls of its function."""
    script, scopes = subject.script, subject.script.scopes(name)
    given = script.contents(name.id)
    for call, _ in script.calls:
        if is_method(call, "append", "extend") and ast.unparse(receiver(call)) == name.id:
            given += call.args
    yield from ((subject, value) for value in given if script.scope(value) in scopes)
    yield from subject.passed(scopes[0], name.id)


def _of_its_class(subject: Subject, node: ast.Attribute) -> Iterator[tuple[Subject, ast.expr]]:
    """The values of an object's attribute, as ``ema.shadow``, in the program's class that makes the object."""
    makers = [
        value for value in subject.script.values(ast.unparse(node.value)) if isinstance(value, ast.Call)
    ]
    classes = {subject.script.called(call) for call in makers}
    for one in subject.program:
        for value in one.script.values(f"self.{node.attr}"):
            above = one.script.above(value)
            if any(isinstance(outer, ast.ClassDef) and outer.name in classes for outer in above):
                yield one, value


def _is_fetched(node: ast.expr) -> bool:
    """Whether a part of an expression is moved to the host."""
    return any(
        isinstance(call.func, ast.Attribute)
        and (call.func.attr in FETCHES or any(constant(one) == "cpu" for one in call.args))
        for call in calls_in(node)
    )
