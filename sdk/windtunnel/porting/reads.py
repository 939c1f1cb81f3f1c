"""What fetches values of the device to the host, and which names hold such values in a step."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator

from windtunnel.porting.nodes import (
    arguments,
    calls_in,
    computes_gradients,
    constant,
    handed,
    is_method,
    receiver,
)
from windtunnel.porting.script import Loop, Script
from windtunnel.porting.tensors import FETCHES

_NUMBERS = {"float", "int", "math.isnan", "math.isinf", "math.isfinite", "math.exp"}
"""Functions that need the value of a tensor."""
_LOGGERS = ("wandb.log", "mlflow.log_metric")
_WRITERS = ("add_scalar", "add_scalars", "add_histogram", "set_postfix")
"""Methods of TensorBoard's writer and of progress bars."""
_QUESTIONS = {"torch.isnan", "torch.isinf", "torch.isfinite"}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
"""Comparisons that give a mask of tensors."""
_ON_THE_HOST = {
    "shape", "size", "dim", "ndim", "numel", "nelement", "stride", "dtype", "device", "requires_grad", "is_cuda",
}  # fmt: skip
"""What a tensor knows without asking the device."""


def read_at(script: Script, node: ast.AST) -> tuple[ast.expr, ...] | None:
    """What reads a value at a node, and the expressions of which one must be a tensor for that; None: nothing reads."""
    if isinstance(node, ast.FormattedValue):
        return (node.value, node.value) if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        asked = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if is_method(asked, "any", "all"):
            asked = receiver(asked)
        if isinstance(asked, ast.Call) and asked.args and script.dotted(asked.func) in _QUESTIONS:
            return asked, asked.args[0]
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(constant(node.left), str):
        return node, *(node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and (
        (node.func.attr in FETCHES and not node.args)
        or (node.func.attr == "to" and constant(next(iter(node.args), None)) == "cpu")
    ):
        return node, node.func.value
    if script.dotted(node.func) in _NUMBERS and len(node.args) == 1:
        return node, node.args[0]
    if _is_logger(script, node):
        given = (*node.args, *(one.value for one in node.keywords))
        return node, *(part for one in given for part in (one.values if isinstance(one, ast.Dict) else [one]))
    return None


def question_at(node: ast.AST) -> tuple[ast.expr, ...] | None:
    """What a condition reads, as `read_at` gives it: a comparison, ``mask.any()``; None: nothing."""
    if not isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return None
    asked = node.test
    while isinstance(asked, ast.UnaryOp | ast.BoolOp):  # of `a and b`, only a is always read
        asked = asked.operand if isinstance(asked, ast.UnaryOp) else asked.values[0]
    if is_method(asked, "any", "all"):
        return asked, receiver(asked), *asked.args  # torch.any(mask), too
    if not isinstance(asked, ast.Compare) or not all(isinstance(one, ORDERS) for one in asked.ops):
        return None
    sides = [asked.left, *asked.comparators]
    texts = any(
        isinstance(one, ast.Constant) and (one.value is None or isinstance(one.value, str)) for one in sides
    )
    return None if texts else (asked, *sides)


def _is_logger(script: Script, call: ast.Call) -> bool:
    """Whether a call logs the numbers that it is given, or makes text of them."""
    called = script.dotted(call.func)
    formats = is_method(call, "format") and isinstance(constant(receiver(call)), str)
    return called == "print" or called.startswith(_LOGGERS) or is_method(call, *_WRITERS) or formats


class Tensors:
    """Names that surely hold tensors of the device in a step: `.backward()` is called on them, the trained model
    returns them, or they are computed from such.

    ``given``: parameters that hold such tensors; ``steps``: functions that return them; ``models``: models besides
    those whose parameters the script asks for.
    """

    def __init__(
        self,
        script: Script,
        step: Loop | ast.FunctionDef,
        given: Collection[str] = (),
        steps: Collection[str] = (),
        models: Collection[str] = (),
    ) -> None:
        self._script = script
        self._models = {*script.models, *steps, *models}
        assigned = list(_assignments(step))
        self._assigned = {*given, *(name for name, _ in assigned)}
        self._fetched: dict[str, int] = {}  # the line from which on a name holds a value of the host
        for name, value in assigned:
            if any(read_at(script, part) for part in ast.walk(value)):
                self._fetched.setdefault(name, value.lineno)
        self._names = {"grad", *given}  # what computes gradients leaves them on the device
        for node in calls_in(step):
            for loss in _losses(script, node):
                self._names |= self._sources(loss)
        while found := {name for name, value in assigned if self.gave(value)} - self._names:
            self._names |= found
        self._made = set(self._names)
        while found := {name for name, value in assigned if self.gave(value, widely=True)} - self._made:
            self._made |= found

    def gave(self, node: ast.expr, *, widely: bool = False) -> bool:
        """Whether an expression is computed from one of these names, and is still on the device.

        ``widely``: also by functions that are given one, whatever they make of it, and by the model's methods.
        """
        names = self._made if widely else self._names
        return any(
            name in (names | self._models) and node.lineno <= self._fetched.get(name, sys.maxsize)
            for name in self._sources(node, widely=widely)
        )

    def _sources(self, node: ast.AST, *, widely: bool = False) -> set[str]:
        """Names that an expression is computed from, so that it is a tensor if they are."""
        named = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        if named and ast.unparse(node) in self._assigned:
            return {ast.unparse(node)}
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return {node.attr}
        parts: list[ast.AST] = []
        if isinstance(node, ast.Attribute | ast.Subscript | ast.NamedExpr | ast.Starred):
            parts = [] if isinstance(node, ast.Attribute) and node.attr in _ON_THE_HOST else [node.value]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators] if isinstance(node.ops[0], ORDERS) else []
        elif isinstance(node, ast.Call) and read_at(self._script, node) is None:
            called = ast.unparse(node.func)
            if called in self._models:
                return {called}
            if widely and called.rpartition(".")[0] in self._models:
                return {called.rpartition(".")[0]}
            if widely and not self._reads(node):
                parts = [*node.args]
            if self._script.dotted(node.func).startswith("torch.") or is_method(node, "scale"):
                parts = [*node.args]
            elif isinstance(node.func, ast.Attribute) and node.func.attr not in _ON_THE_HOST:
                parts += [node.func.value]
        elif widely and isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            parts = [] if any(map(self._reads, ast.walk(node))) else [one.iter for one in node.generators]
        return {name for part in parts for name in self._sources(part, widely=widely)}

    def _reads(self, node: ast.AST) -> bool:
        """Whether a node fetches a value, or calls a function of the file that does."""
        function = self._script.functions.get(self._script.called(node))
        within = [node, *(ast.walk(function) if function is not None else ())]
        return any(read_at(self._script, part) is not None for part in within)


def _losses(script: Script, call: ast.Call) -> list[ast.expr]:
    """The loss that a call computes gradients of, perhaps in a function of the file that is given it."""
    if computes_gradients(call):
        # accelerator.backward(loss) has the tensor as its argument, loss.backward() before the point
        of_tensor = is_method(call, "backward") and not call.args
        return [receiver(call) if of_tensor else arguments(call)[0]]
    function = script.functions.get(ast.unparse(call.func).removeprefix("self."))
    if function is None:
        return []
    inside = {
        ast.unparse(loss)
        for part in calls_in(function)
        if computes_gradients(part)
        for loss in _losses(script, part)
    }
    return [value for name, value in handed(function, call) if name in inside]


def _assignments(step: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(step):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    if isinstance(one, ast.Name | ast.Attribute):
                        yield ast.unparse(one), node.value
