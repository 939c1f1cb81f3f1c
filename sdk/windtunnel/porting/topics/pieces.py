"""``tensor.split([2, 4], dim)``, which silently cuts other pieces on trn1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, replaced
from windtunnel.porting.names import WITHOUT_FUNCTIONALIZATION
from windtunnel.porting.nodes import argument, constant
from windtunnel.porting.subject import Subject

_VARIABLE = "XLA_DISABLE_FUNCTIONALIZATION"
_NAMES = ("split", "split_with_sizes")


def of_sizes(subject: Subject) -> Iterator[Finding]:
    """Findings in forward passes, whose tensors are on the device. `tensor_split` takes starts, not sizes."""
    script = subject.script
    if subject.names.version < WITHOUT_FUNCTIONALIZATION or any(map(_asks_for_it, subject.program)):
        return
    for call, name in script.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _NAMES:
            continue
        module = name.rpartition(".")[0]
        if constant(call.func.value) is not None or (module != "torch" and module in script.imports.values()):
            continue
        place = 1 if module == "torch" else 0
        sizes = call.args[place] if len(call.args) > place else None
        if not isinstance(sizes, ast.List | ast.Tuple) or len(sizes.elts) < 2 or _is_first(call, place + 1):
            continue
        if script.scope_name(call) == "forward":
            yield Finding(
                call.lineno,
                f"{call.func.attr}() with a list of sizes gives other values on trn1, without an error "
                "(https://github.com/pytorch/xla/issues/8640). Use tensor_split.",
                tuple(_edits(subject, call.func, sizes)),
                kind="wrong_split",
            )


def _edits(subject: Subject, function: ast.Attribute, sizes: ast.List | ast.Tuple) -> Iterator[Edit]:
    """Edits that give the start of each piece but the first, if the sizes may be written twice."""
    script = subject.script
    if all(map(_is_simple, sizes.elts)):
        pieces = [script.segment(one) for one in sizes.elts]
        begins = ", ".join(" + ".join(pieces[:count]) for count in range(1, len(pieces)))
        end = script.end(function)
        yield Edit(end - len(function.attr), end, "tensor_split")
        yield replaced(script, sizes, f"[{begins}]")


def _is_simple(size: ast.expr) -> bool:
    """Whether a size is a number, a name or a product of these, which can be repeated in a sum."""
    if isinstance(size, ast.BinOp):
        return (
            isinstance(size.op, ast.Mult | ast.FloorDiv) and _is_simple(size.left) and _is_simple(size.right)
        )
    if isinstance(size, ast.Attribute):
        return _is_simple(size.value)
    return isinstance(size, ast.Name) or isinstance(constant(size), int)


def _asks_for_it(subject: Subject) -> bool:
    """Whether a file of the program sets the variable to anything but 1."""
    script = subject.script
    given = [node.value for target, node in script.assigned if target.endswith(f"[{_VARIABLE!r}]")]
    given += [
        call.args[1]
        for call, _ in script.calls
        if len(call.args) == 2 and constant(call.args[0]) == _VARIABLE
    ]
    return any(str(constant(value)).lower() not in ("1", "true") for value in given)


def _is_first(call: ast.Call, place: int) -> bool:
    """Whether a call splits along the first dimension, which is right; a dimension with a name may be any."""
    dim = argument(call, "dim", place)
    return dim is None or constant(dim) == 0
