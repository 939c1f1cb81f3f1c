"""What single nodes of a syntax tree say, without the script around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

_RANK = re.compile(
    r"(?<!lora[_.])(?<!low_)(?<!re)rank(?!ing|er)|master(?!_?(weight|param|grad))|main_process|is_main|is_root|ordinal|primary|"
    r"process_index|process_zero|global_zero|gpu\w* == 0",
    re.IGNORECASE,
)


def brings_torch(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import brings something of the package torch."""
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(name.partition(".")[0] == "torch" for name in names)


def arguments(call: ast.Call) -> list[ast.expr]:
    """The values of all arguments of a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of this name; None where it is not given."""
    return next((one for one in call.keywords if one.arg == name), None)


def argument(call: ast.Call, name: str, place: int | None = None) -> ast.expr | None:
    """The value of an argument that is given by its name, or at its place; None where it is not given."""
    named = keyword(call, name)
    if named is not None:
        return named.value
    return call.args[place] if place is not None and place < len(call.args) else None


def constant(node: ast.AST | None) -> object:
    """The value of a literal; None for any other node."""
    return node.value if isinstance(node, ast.Constant) else None


def parameters(scope: ast.AST) -> list[str]:
    """The names of a function's parameters."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return []
    return [one.arg for one in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)]


def handed(function: ast.FunctionDef, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """A function's parameters, with what a call passes to them."""
    names = parameters(function)
    given = list(zip(names[names[:1] == ["self"] :], call.args, strict=False))
    return given + [(one.arg, one.value) for one in call.keywords if one.arg]


def branches(node: ast.expr) -> list[ast.expr]:
    """Both values of an ``a if b else c``; for another expression itself."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def default_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> ast.expr | None:
    """The default of a function's parameter; None where it has none."""
    positional = [*function.args.posonlyargs, *function.args.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = []
    pairs += zip(reversed(positional), reversed(function.args.defaults), strict=False)
    pairs += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return next((value for one, value in pairs if one.arg == name), None)


def names_in(*nodes: ast.AST) -> set[str]:
    """The names in nodes; of ``a.b`` that is a."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def calls_in(*nodes: ast.AST) -> Iterator[ast.Call]:
    """The calls in nodes."""
    return (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Call))


def is_method(node: ast.AST | None, *names: str) -> TypeGuard[ast.Call]:
    """Whether a node is ``something.name(...)`` with one of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def receiver(call: ast.Call) -> ast.expr:
    """``model`` of ``model.to(device)``; for what is no method, the function that is called."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def computes_gradients(call: ast.Call) -> bool:
    """Whether a call is ``loss.backward()``, or ``loss_scaler(loss, optimizer, ...)`` as timm's NativeScaler has it."""
    scales = isinstance(call.func, ast.Name) and "scaler" in call.func.id
    return is_method(call, "backward") or (
        scales and any("optim" in ast.unparse(one) for one in arguments(call))
    )


def is_optimizer(name: str) -> bool:
    """Whether a dotted name is of one of torch's optimizers, and not of a schedule or an average."""
    return name.startswith("torch.optim.") and not name.startswith(("torch.optim.lr_", "torch.optim.swa_"))


def names_rank(text: str) -> bool:
    """Whether an expression's text names the rank of a process."""
    return bool(_RANK.search(text))


def is_main(node: ast.AST) -> bool:
    """Whether a node is ``if __name__ == "__main__":``."""
    return isinstance(node, ast.If | ast.IfExp) and "__name__" in ast.unparse(node.test)


def terms(test: ast.AST) -> list[Any]:
    """The expressions that `and` joins; for another node itself."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
